package informers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/kube/listwatch"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// podSelector selects the pods that run BIND.
const podSelector = "app.kubernetes.io/name=bind9"

// listerWatchers finds where each kind of a Kubernetes cluster is listed and watched.
func listerWatchers(config *rest.Config) (func(example runtime.Object) cache.ListerWatcher, error) {
	own, err := listwatch.NewClients(config)
	if err != nil {
		return nil, err
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for pods: %w", err)
	}
	namespaces := cache.NewListWatchFromClient(core.CoreV1().RESTClient(), "namespaces", metav1.NamespaceAll, fields.Everything())
	pods := cache.NewFilteredListWatchFromClient(core.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, func(o *metav1.ListOptions) { o.LabelSelector = podSelector })
	return func(example runtime.Object) cache.ListerWatcher {
		if from, ok := own.Of(example); ok {
			return from
		}
		if _, ok := example.(*corev1.Namespace); ok {
			return namespaces
		}
		return pods
	}, nil
}

func newLiveReader(client metadata.Interface) LiveReader {
	return func(ctx context.Context, kind subject.Kind, namespace, name string) (metav1.Object, error) {
		resource := kind.GroupVersion().WithResource(kind.Resource)
		if name == "" || len(content.IsPathSegmentName(name))+len(content.IsPathSegmentName(namespace)) > 0 {
			return nil, apierrors.NewNotFound(resource.GroupResource(), name) // such as "..", which leads elsewhere
		}
		if kind == subject.GlobalClusterKind || kind == subject.ProviderKind {
			namespace = ""
		}
		return client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

// maxListed bounds a list past the caches.
const maxListed = 500

func newLiveLister(client metadata.Interface) LiveLister {
	return func(ctx context.Context, kind subject.Kind, namespace string) ([]metav1.Object, string, error) {
		resource := kind.GroupVersion().WithResource(kind.Resource)
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: maxListed})
		if err != nil || list.Continue != "" {
			return nil, "", err
		}
		all := make([]metav1.Object, len(list.Items))
		for i := range list.Items {
			all[i] = &list.Items[i]
		}
		return all, list.ResourceVersion, nil
	}
}

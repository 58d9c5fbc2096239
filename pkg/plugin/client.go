package plugin

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

const statusResource = "syncstatuses"

// statusClient reads SyncStatus objects.
type statusClient struct {
	rest rest.Interface
	// namespace is the one to look in, "" for all.
	namespace string
}

// kubeconfig merges kubeconfig and flags; files are read when it is asked.
func (o *commandOptions) kubeconfig() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(o.loading, &o.overrides)
}

// newClient returns a client from kubeconfig and flags; nothing is asked yet.
func (o *commandOptions) newClient() (*statusClient, error) {
	c := &statusClient{}
	var err error
	if c.rest, err = o.newRESTClient(v1alpha1.SchemeGroupVersion, v1alpha1.AddToScheme); err != nil || o.allNamespaces {
		return c, err
	}
	c.namespace, err = o.namespace()
	return c, err
}

// newRESTClient returns a client of one API from kubeconfig and flags.
func (o *commandOptions) newRESTClient(api schema.GroupVersion, addToScheme func(*runtime.Scheme) error) (rest.Interface, error) {
	config, err := o.kubeconfig().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return nil, fmt.Errorf("kinds of the API: %w", err)
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &api
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.UserAgent, config.QPS = "kubectl-lockstep", -1
	return rest.RESTClientFor(config)
}

// namespace returns the one to look in, from kubeconfig and flags.
func (o *commandOptions) namespace() (string, error) {
	namespace, _, err := o.kubeconfig().Namespace()
	if err != nil {
		return "", fmt.Errorf("kubeconfig: %w", err)
	}
	return namespace, nil
}

// statusQuery selects objects in the client's namespace.
type statusQuery struct {
	fields fields.Set
	labels string
}

func (q statusQuery) applyTo(o *metav1.ListOptions) {
	o.FieldSelector, o.LabelSelector = q.fields.AsSelector().String(), q.labels
}

// getStatus asks for one object. The answer is about the object as it is in the cluster now.
func (c *statusClient) getStatus(ctx context.Context, t target) (*v1alpha1.SyncStatus, error) {
	s := &v1alpha1.SyncStatus{}
	err := c.rest.Get().Namespace(c.namespace).Resource(statusResource).Name(t.statusName()).Do(ctx).Into(s)
	return s, c.explainError(err, t)
}

// listStatuses asks for what any of the queries selects.
func (c *statusClient) listStatuses(ctx context.Context, queries ...statusQuery) ([]v1alpha1.SyncStatus, error) {
	found := statusSet{}
	for _, q := range queries {
		var o metav1.ListOptions
		q.applyTo(&o)
		all := &v1alpha1.SyncStatusList{}
		err := c.rest.Get().Namespace(c.namespace).Resource(statusResource).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(all)
		if err != nil {
			return nil, c.explainError(err, target{})
		}
		for i := range all.Items {
			found.put(&all.Items[i])
		}
	}
	return found.sortedItems(), nil
}

// explainError says what an error of the API means to the one who asked. t is what was asked for, without a name for a list.
func (c *statusClient) explainError(err error, t target) error {
	api := v1alpha1.SchemeGroupVersion
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// No API gave this answer, but kube-apiserver, which knows of none at that path.
		return fmt.Errorf("this cluster does not serve SyncStatus (%s): is Lockstep installed? See kubectl get apiservice %s.%s",
			api, api.Version, api.Group)
	case apierrors.IsNotFound(err) && t.name != "":
		return fmt.Errorf("there is no %s %s in namespace %s", t.kind.Kind, t.name, c.namespace)
	case apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("the API server of Lockstep does not answer (%w): see kubectl get apiservice %s.%s", err, api.Version, api.Group)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: the role view would do", err)
	}
	return err
}

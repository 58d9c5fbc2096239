package informers

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
)

// inNamespaceOfInstances sets the namespace of cluster-scoped clusters to that of their instances, so that they are found
// like the objects there: that namespace has their SyncStatus.
func inNamespaceOfInstances(from cache.ListerWatcher, systemNamespace string) cache.ListerWatcher {
	wrapped := cache.ToListerWatcherWithContext(from)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := wrapped.ListWithContext(ctx, o)
			if err == nil {
				err = meta.EachListItem(list, func(o runtime.Object) error { overrideNamespace(o, systemNamespace); return nil })
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := wrapped.WatchWithContext(ctx, o)
			if err != nil {
				return nil, err
			}
			return watch.Filter(w, func(e watch.Event) (watch.Event, bool) { overrideNamespace(e.Object, systemNamespace); return e, true }), nil
		},
	}
}

func overrideNamespace(o runtime.Object, systemNamespace string) {
	switch c := o.(type) {
	case *v1beta1.Bind9GlobalCluster:
		c.Namespace = membership.InstanceNamespace(c, systemNamespace)
	case *v1beta1.ClusterBind9Provider:
		c.Namespace = membership.InstanceNamespace(c, systemNamespace)
	}
}

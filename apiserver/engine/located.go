package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
)

// located gives cluster-scoped clusters the namespace of their instances, so that everything here finds them like objects
// of that namespace: that is where their SyncStatus is.
func located(from cache.ListerWatcher, home string) cache.ListerWatcher {
	wrapped := cache.ToListerWatcherWithContext(from)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := wrapped.ListWithContext(ctx, o)
			if err == nil {
				err = meta.EachListItem(list, func(o runtime.Object) error { locate(o, home); return nil })
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := wrapped.WatchWithContext(ctx, o)
			if err != nil {
				return nil, err
			}
			return watch.Filter(w, func(e watch.Event) (watch.Event, bool) { locate(e.Object, home); return e, true }), nil
		},
	}
}

func locate(o runtime.Object, home string) {
	switch c := o.(type) {
	case *v1beta1.Bind9GlobalCluster:
		c.Namespace = membership.InstanceNamespace(c, home)
	case *v1beta1.ClusterBind9Provider:
		c.Namespace = membership.InstanceNamespace(c, home)
	}
}

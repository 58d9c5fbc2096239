package registry

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/listing"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// statusStorage is the resource syncstatuses.
type statusStorage struct {
	table
	verdicts *Verdicts
}

// Storage are the resources of the API group, by path.
func (v *Verdicts) Storage() map[string]rest.Storage {
	storage := map[string]rest.Storage{"syncstatuses": &statusStorage{verdicts: v}}
	for _, k := range subject.Kinds() {
		storage[k.Resource] = parentStorage{k}
		storage[k.Resource+"/syncstatus"] = &subresourceStorage{kind: k, verdicts: v}
	}
	return storage
}

var (
	_ rest.Scoper               = &statusStorage{}
	_ rest.Getter               = &statusStorage{}
	_ rest.Lister               = &statusStorage{}
	_ rest.Watcher              = &statusStorage{}
	_ rest.SingularNameProvider = &statusStorage{}
	_ rest.ShortNamesProvider   = &statusStorage{}
	_ rest.CategoriesProvider   = &statusStorage{}
)

// New implements rest.Storage.
func (s *statusStorage) New() runtime.Object { return &syncv1.SyncStatus{} }

// NewList implements rest.Lister.
func (s *statusStorage) NewList() runtime.Object { return &syncv1.SyncStatusList{} }

// Destroy implements rest.Storage.
func (s *statusStorage) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (s *statusStorage) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (s *statusStorage) GetSingularName() string { return "syncstatus" }

// ShortNames implements rest.ShortNamesProvider.
func (s *statusStorage) ShortNames() []string { return []string{"sync"} }

// Categories implements rest.CategoriesProvider. The category all is left out: an outage of this server must not break
// `kubectl get all`.
func (s *statusStorage) Categories() []string { return []string{"dns"} }

// Get implements rest.Getter.
func (s *statusStorage) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	kind, object, ok := subject.ParseName(name)
	if !ok {
		err := apierrors.NewNotFound(syncv1.Resource("syncstatuses"), name)
		err.ErrStatus.Message += ": the name of a SyncStatus is its object's kind in lower case, a dot and the object's name, for example arecord.www"
		return nil, err
	}
	return s.verdicts.getResource(ctx, kind, object, o)
}

// getResource reads the SyncStatus of an object in the namespace of the request.
func (v *Verdicts) getResource(ctx context.Context, kind subject.Kind, name string, o *metav1.GetOptions) (runtime.Object, error) {
	if o != nil {
		if err := v.store.CheckResourceVersion(o.ResourceVersion); err != nil {
			return nil, err
		}
	}
	return v.getVerdict(ctx, desired.Key{Kind: kind.Kind, Namespace: request.NamespaceValue(ctx), Name: name})
}

// waitReady fails while the caches are being filled, as an empty answer would be wrong, and waits while they do not follow the Kubernetes
// cluster.
func (v *Verdicts) waitReady(ctx context.Context) error {
	if !v.informers.HasSynced() {
		return apierrors.NewServiceUnavailable("the caches of this server are being filled")
	}
	return v.informers.WaitForCaches(ctx)
}

// getVerdict makes one SyncStatus by answers that are not older than the call, about the object as it is in the Kubernetes cluster now.
// Errors are API errors.
func (v *Verdicts) getVerdict(ctx context.Context, key desired.Key) (*syncv1.SyncStatus, error) {
	if err := v.waitReady(ctx); err != nil {
		return nil, err
	}
	s, err := v.refresher.CurrentVerdict(ctx, key, time.Now())
	if s == nil && err == nil {
		err = errorFor(ctx, key)
	}
	return s, err
}

// errorFor is the API error for an object without a verdict.
func errorFor(ctx context.Context, key desired.Key) error {
	if ctx.Err() != nil {
		return apierrors.NewTimeoutError("the request has ended before the servers have answered", 1)
	}
	return apierrors.NewNotFound(syncv1.Resource("syncstatuses"), nameOf(key))
}

// List implements rest.Lister.
func (s *statusStorage) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	if o == nil {
		o = &internalversion.ListOptions{}
	}
	if err := s.checkResourceVersion(o); err != nil {
		return nil, err
	}
	q, err := newQuery(ctx, o)
	if err != nil {
		return nil, err
	}
	list, err := s.verdicts.listVerdicts(ctx, q)
	if err != nil {
		return nil, err
	}
	return &listing.List{SyncStatusList: list}, nil
}

// checkResourceVersion refuses what no answer about the present can satisfy.
func (s *statusStorage) checkResourceVersion(o *internalversion.ListOptions) error {
	switch {
	case o.Continue != "" && o.ResourceVersion != "" && o.ResourceVersion != "0":
		return apierrors.NewBadRequest("resourceVersion cannot be given together with continue, which holds its own")
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		return apierrors.NewResourceExpired("the state at a past resourceVersion is not available: the servers answer for the present")
	}
	return s.verdicts.store.CheckResourceVersion(o.ResourceVersion)
}

// Watch implements rest.Watcher.
func (s *statusStorage) Watch(ctx context.Context, o *internalversion.ListOptions) (watch.Interface, error) {
	q, err := newQuery(ctx, o)
	if err != nil {
		return nil, err
	}
	return s.verdicts.startWatch(ctx, q, store.WatchOptions{
		ResourceVersion:   o.ResourceVersion,
		SendInitialEvents: o.SendInitialEvents,
		Bookmarks:         o.AllowWatchBookmarks,
	})
}

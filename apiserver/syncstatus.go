package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/lockstep-dns/lockstep/apiserver/engine"
	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// statuses is the resource syncstatuses.
type statuses struct {
	table
	engine *engine.Engine
}

var (
	_ rest.Storage              = &statuses{}
	_ rest.Scoper               = &statuses{}
	_ rest.Getter               = &statuses{}
	_ rest.Lister               = &statuses{}
	_ rest.Watcher              = &statuses{}
	_ rest.SingularNameProvider = &statuses{}
	_ rest.ShortNamesProvider   = &statuses{}
	_ rest.CategoriesProvider   = &statuses{}
)

// New implements rest.Storage.
func (s *statuses) New() runtime.Object { return &v1alpha1.SyncStatus{} }

// NewList implements rest.Lister.
func (s *statuses) NewList() runtime.Object { return &v1alpha1.SyncStatusList{} }

// Destroy implements rest.Storage.
func (s *statuses) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (s *statuses) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (s *statuses) GetSingularName() string { return "syncstatus" }

// ShortNames implements rest.ShortNamesProvider.
func (s *statuses) ShortNames() []string { return []string{"sync"} }

// Categories implements rest.CategoriesProvider. The category all is left out: an outage of this server must not break
// `kubectl get all`.
func (s *statuses) Categories() []string { return []string{"dns"} }

// Get implements rest.Getter.
func (s *statuses) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	if err := checkGet(s.engine, o); err != nil {
		return nil, err
	}
	kind, object, ok := syncstatus.ParseName(name)
	if !ok {
		err := apierrors.NewNotFound(v1alpha1.Resource("syncstatuses"), name)
		err.ErrStatus.Message += ": a SyncStatus is called by its object's kind in lower case, a dot and the object's name, for example arecord.www"
		return nil, err
	}
	return s.engine.Get(ctx, kind, request.NamespaceValue(ctx), object)
}

// List implements rest.Lister.
func (s *statuses) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	if o == nil {
		o = &internalversion.ListOptions{}
	}
	if err := s.check(o); err != nil {
		return nil, err
	}
	if err := checkKind(o.FieldSelector); err != nil {
		return nil, err
	}
	return s.engine.List(ctx, query(ctx, o))
}

// check refuses what cannot be told. Everything that is told is of the present, and so not older than what anybody has
// seen.
func (s *statuses) check(o *internalversion.ListOptions) error {
	switch {
	case o.Continue != "" && o.ResourceVersion != "" && o.ResourceVersion != "0":
		return apierrors.NewBadRequest("resourceVersion cannot be given together with continue, which holds its own")
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		return apierrors.NewResourceExpired("the state at a past resourceVersion cannot be asked for: the servers answer for the present")
	}
	return s.engine.CheckResourceVersion(o.ResourceVersion)
}

func checkGet(e *engine.Engine, o *metav1.GetOptions) error {
	if o == nil {
		return nil
	}
	return e.CheckResourceVersion(o.ResourceVersion)
}

// checkKind refuses a kind that nothing has: a mistyped one would select nothing, and a script would take that for good news.
func checkKind(s fields.Selector) error {
	if s == nil {
		return nil
	}
	for _, r := range s.Requirements() {
		if r.Field != v1alpha1.FieldKind {
			continue
		}
		var known []string
		for _, k := range syncstatus.Kinds() {
			known = append(known, k.Kind)
		}
		if !slices.Contains(known, r.Value) {
			return apierrors.NewBadRequest(fmt.Sprintf("%s is never %q: only %s", r.Field, r.Value, strings.Join(known, ", ")))
		}
	}
	return nil
}

// Watch implements rest.Watcher.
func (s *statuses) Watch(ctx context.Context, o *internalversion.ListOptions) (watch.Interface, error) {
	if err := checkKind(o.FieldSelector); err != nil {
		return nil, err
	}
	return s.engine.Watch(ctx, query(ctx, o), engine.WatchOptions{
		ResourceVersion:   o.ResourceVersion,
		SendInitialEvents: o.SendInitialEvents,
		Bookmarks:         o.AllowWatchBookmarks,
	})
}

func query(ctx context.Context, o *internalversion.ListOptions) engine.Query {
	return engine.Query{
		Namespace: request.NamespaceValue(ctx), Labels: o.LabelSelector, Fields: o.FieldSelector,
		Limit: o.Limit, Continue: o.Continue,
	}
}

package apiserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/lockstep-dns/lockstep/apiserver/engine"
	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// parent is a resource without verbs: it is there so that its subresource has a place in discovery. The objects
// themselves are in group bindy.firestoned.io.
type parent struct{ kind syncstatus.Kind }

var (
	_ rest.Storage                  = parent{}
	_ rest.Scoper                   = parent{}
	_ rest.SingularNameProvider     = parent{}
	_ rest.GroupVersionKindProvider = parent{}
)

// New implements rest.Storage.
func (p parent) New() runtime.Object { return &v1alpha1.TrackedObject{} }

// Destroy implements rest.Storage.
func (p parent) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (p parent) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (p parent) GetSingularName() string { return p.kind.Singular }

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (p parent) GroupVersionKind(gv schema.GroupVersion) schema.GroupVersionKind {
	return gv.WithKind(p.kind.Kind)
}

// subresource is the virtual subresource syncstatus of one kind.
type subresource struct {
	table
	kind   syncstatus.Kind
	engine *engine.Engine
}

var (
	_ rest.Storage        = &subresource{}
	_ rest.Getter         = &subresource{}
	_ rest.TableConvertor = &subresource{}
)

// New implements rest.Storage.
func (s *subresource) New() runtime.Object { return &v1alpha1.SyncStatus{} }

// Destroy implements rest.Storage.
func (s *subresource) Destroy() {}

// Get implements rest.Getter: the name is that of the parent.
func (s *subresource) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	if err := checkGet(s.engine, o); err != nil {
		return nil, err
	}
	return s.engine.Get(ctx, s.kind, request.NamespaceValue(ctx), name)
}

package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// parentStorage is a resource without verbs: it is there so that its subresource has a place in discovery. The objects
// themselves are in group bindy.firestoned.io.
type parentStorage struct{ kind subject.Kind }

var (
	_ rest.Storage                  = parentStorage{}
	_ rest.Scoper                   = parentStorage{}
	_ rest.SingularNameProvider     = parentStorage{}
	_ rest.GroupVersionKindProvider = parentStorage{}
)

// New implements rest.Storage.
func (p parentStorage) New() runtime.Object { return &v1alpha1.TrackedObject{} }

// Destroy implements rest.Storage.
func (p parentStorage) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (p parentStorage) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (p parentStorage) GetSingularName() string { return p.kind.Singular }

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (p parentStorage) GroupVersionKind(gv schema.GroupVersion) schema.GroupVersionKind {
	return gv.WithKind(p.kind.Kind)
}

// subresourceStorage is the virtual subresource syncstatus of one kind.
type subresourceStorage struct {
	table
	kind     subject.Kind
	verdicts *Verdicts
}

var (
	_ rest.Storage        = &subresourceStorage{}
	_ rest.Getter         = &subresourceStorage{}
	_ rest.TableConvertor = &subresourceStorage{}
)

// New implements rest.Storage.
func (s *subresourceStorage) New() runtime.Object { return &v1alpha1.SyncStatus{} }

// Destroy implements rest.Storage.
func (s *subresourceStorage) Destroy() {}

// Get implements rest.Getter: the name is that of the parent.
func (s *subresourceStorage) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	return s.verdicts.getResource(ctx, s.kind, name, o)
}

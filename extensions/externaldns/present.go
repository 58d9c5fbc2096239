package externaldns

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// singleReads is how many objects of one kind and namespace are read one by one, before all of them are listed.
const singleReads = 20

// presentObjects reads the metadata of the objects that one batch of changes is about. It is for that batch only: what it has listed may
// be as old as the batch.
type presentObjects struct {
	client client.Reader
	mu     sync.Mutex
	kinds  map[kindInNamespace]*presentKind
}

type kindInNamespace struct {
	kind      schema.GroupVersionKind
	namespace string
}

// presentKind is what was read of a kind in a namespace.
type presentKind struct {
	reads int
	list  func() (map[string]*metav1.PartialObjectMetadata, error)
}

func newPresentObjects(c client.Reader) *presentObjects {
	return &presentObjects{client: c, kinds: map[kindInNamespace]*presentKind{}}
}

// get returns the metadata of an object, or an error that apierrors.IsNotFound or IsForbidden reports.
func (p *presentObjects) get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	all, many := p.countRead(ctx, kindInNamespace{kind, key.Namespace})
	if !many {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(kind)
		if err := p.client.Get(ctx, key, o); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
		}
		return o, nil
	}
	present, err := all()
	if err != nil {
		return nil, fmt.Errorf("listing %s in namespace %s: %w", kind.Kind, key.Namespace, err)
	}
	if o := present[key.Name]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
}

// countRead counts a read, and reports whether there were enough to list all objects, which the returned function does once.
func (p *presentObjects) countRead(ctx context.Context, k kindInNamespace) (all func() (map[string]*metav1.PartialObjectMetadata, error), many bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.kinds[k]
	if known == nil {
		known = &presentKind{list: sync.OnceValues(func() (map[string]*metav1.PartialObjectMetadata, error) { return p.listAll(ctx, k) })}
		p.kinds[k] = known
	}
	known.reads++
	return known.list, known.reads > singleReads
}

func (p *presentObjects) listAll(ctx context.Context, k kindInNamespace) (map[string]*metav1.PartialObjectMetadata, error) {
	present := map[string]*metav1.PartialObjectMetadata{}
	list := &metav1.PartialObjectMetadataList{}
	for more := true; more; more = list.Continue != "" {
		list.SetGroupVersionKind(k.kind.GroupVersion().WithKind(k.kind.Kind + "List"))
		if err := p.client.List(ctx, list, client.InNamespace(k.namespace), client.Limit(pageSize), client.Continue(list.Continue)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			o := &list.Items[i]
			o.SetGroupVersionKind(k.kind)
			present[o.Name] = o
		}
	}
	return present, nil
}

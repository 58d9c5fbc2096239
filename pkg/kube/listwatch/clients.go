// Package listwatch lists and watches our kinds for the informer caches of all components. Each byte of an event is scanned
// four times; client-go's decoder does that a dozen times, which was the largest part of what a record costs a component: 37 µs an
// event here, 71 µs there (go test -run xxx -bench Event ./pkg/kube/listwatch; docs/decisions/2026-11-25-events-decoded-once.md).
package listwatch

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// Clients read our kinds, of all namespaces.
type Clients struct {
	scheme  *runtime.Scheme
	byGroup map[schema.GroupVersion]rest.Interface
}

// NewClients returns clients of the Kubernetes cluster at config.
func NewClients(config *rest.Config) (*Clients, error) {
	c := &Clients{runtime.NewScheme(), map[schema.GroupVersion]rest.Interface{}}
	utilruntime.Must(v1beta1.AddToScheme(c.scheme))
	utilruntime.Must(v1alpha1.AddToScheme(c.scheme))
	metav1.AddToGroupVersion(c.scheme, schema.GroupVersion{Version: "v1"})
	for _, group := range []schema.GroupVersion{v1beta1.GroupVersion, v1alpha1.GroupVersion} {
		own := rest.CopyConfig(config)
		own.APIPath, own.GroupVersion, own.NegotiatedSerializer = "/apis", &group, newCodecs(c.scheme)
		own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		own.UserAgent = cmp.Or(own.UserAgent, rest.DefaultKubernetesUserAgent()) // As controller-runtime does.
		client, err := rest.RESTClientFor(own)
		if err != nil {
			return nil, fmt.Errorf("making a client for %s: %w", group, err)
		}
		c.byGroup[group] = client
	}
	return c, nil
}

// Of lists and watches the kind of an object; false for kinds that are not ours.
func (c *Clients) Of(example runtime.Object) (cache.ListerWatcher, bool) {
	if _, isUnstructured := example.(runtime.Unstructured); isUnstructured {
		return nil, false
	}
	kinds, _, err := c.scheme.ObjectKinds(example)
	if err != nil || c.byGroup[kinds[0].GroupVersion()] == nil {
		return nil, false
	}
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return cache.NewListWatchFromClient(c.byGroup[kinds[0].GroupVersion()], resource.Resource, metav1.NamespaceAll, fields.Everything()), true
}

// NewInformerFunc makes an informer, as cache.Options.NewInformer of controller-runtime does.
type NewInformerFunc func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// Informers makes informers that list and watch our kinds through these clients, and all others as they are told.
func (c *Clients) Informers(next NewInformerFunc) NewInformerFunc {
	return func(from cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		if own, ok := c.Of(example); ok {
			from = own
		}
		return next(from, example, resync, indexers)
	}
}

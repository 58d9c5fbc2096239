package apply

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeMemory is how long a write is remembered at least: longer than a watch of an informer lasts, which is renewed after
// ten minutes at most.
const writeMemory = 15 * time.Minute

// NewClient returns a client whose Get never yields an object as it was before this client last changed it. Informers lag behind the
// writes of their own process; whoever compares with what they have takes a status that was just replaced for the present one, and leaves
// out the write that would correct it. While the cache has an older object, Get reads from kube-apiserver. List reads from the cache
// alone.
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	cached, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	options.Cache = nil
	live, err := client.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making a client without a cache: %w", err)
	}
	return &currentClient{Client: cached, live: live, writes: &ownWrites{now: time.Now}}, nil
}

// currentClient is what NewClient returns.
type currentClient struct {
	client.Client
	live   client.Reader
	writes *ownWrites
}

// Get implements client.Reader.
func (c *currentClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, o, options...); err != nil || !c.writes.isOutdated(o) {
		return err
	}
	kind := o.GetObjectKind().GroupVersionKind()
	reflect.ValueOf(o).Elem().SetZero()         // Decoding leaves alone what the response does not have.
	o.GetObjectKind().SetGroupVersionKind(kind) // Without it, nobody knows of what kind metadata alone is.
	return c.live.Get(ctx, key, o, options...)
}

// Patch implements client.Writer.
func (c *currentClient) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	err := c.Client.Patch(ctx, o, patch, options...)
	if err == nil {
		c.writes.record(o)
	}
	return err
}

// Status implements client.StatusClient.
func (c *currentClient) Status() client.SubResourceWriter {
	return &statusClient{SubResourceWriter: c.Client.Status(), writes: c.writes}
}

type statusClient struct {
	client.SubResourceWriter
	writes *ownWrites
}

// Apply implements client.SubResourceWriter.
func (c *statusClient) Apply(ctx context.Context, o runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
	err := c.SubResourceWriter.Apply(ctx, o, options...)
	if written, ok := o.(metav1.Object); ok && err == nil {
		c.writes.record(written)
	}
	return err
}

// Patch implements client.SubResourceWriter.
func (c *statusClient) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	err := c.SubResourceWriter.Patch(ctx, o, patch, options...)
	if err == nil {
		c.writes.record(o)
	}
	return err
}

// ownWrites has the resource version of the last write to each object, by UID, for writeMemory at least and twice as long
// at most. It is safe for concurrent use.
type ownWrites struct {
	now func() time.Time

	mu sync.Mutex
	// recent are those since a moment, former those of the time before it.
	recent, former map[types.UID]string
	since          time.Time
}

func (w *ownWrites) record(o metav1.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.now(); w.recent == nil || now.Sub(w.since) >= writeMemory {
		w.recent, w.former, w.since = map[types.UID]string{}, w.recent, now
	}
	if !isOlder(o.GetResourceVersion(), w.recent[o.GetUID()]) {
		w.recent[o.GetUID()] = o.GetResourceVersion()
	}
}

// isOutdated compares an object with the last write to it.
func (w *ownWrites) isOutdated(o metav1.Object) bool {
	return isOlder(o.GetResourceVersion(), w.last(o))
}

// last returns the version that our last write gave an object; empty if none is known.
func (w *ownWrites) last(o metav1.Object) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.recent[o.GetUID()], w.former[o.GetUID()])
}

// isOlder compares resource versions of one object. None is older than one that is not known.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

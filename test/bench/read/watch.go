package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// within is how long one change may take to reach all watchers.
const within = 30 * time.Second

// watch measures how long after a change is served everywhere the last of many watchers of the namespace knows that it is,
// beside as many watchers of the namespace's ConfigMaps from kube-apiserver's answer to a change of one.
func (b *bench) watch(ctx context.Context) error {
	if err := b.Client.Create(ctx, b.configMap("watched", 0)); err != nil {
		return err
	}
	ours, err := b.crowd(ctx, b.SyncStatuses(""))
	if err != nil {
		return err
	}
	defer ours.disperse()
	peers, err := b.crowd(ctx, b.ConfigMaps(""))
	if err != nil {
		return err
	}
	defer peers.disperse()
	time.Sleep(3 * time.Second) // until all have begun, whatever came with that
	ours.count()
	var fromServed, fromChanged rig.Times
	for i := range *changes {
		took, err := b.change(ctx, ours, i)
		if err != nil {
			return err
		}
		fromServed = append(fromServed, took)
		if took, err = b.touch(ctx, peers, i); err != nil {
			return err
		}
		fromChanged = append(fromChanged, took)
	}
	fmt.Printf("a watcher of all kinds is told %.1f times of a change\n", float64(ours.count())/float64(*watchers**changes))
	fmt.Printf("from served everywhere to all %d watchers:         %s\n", *watchers, fromServed)
	fmt.Printf("from a ConfigMap's change to all its %d watchers: %s\n", *watchers, fromChanged)
	b.Result("watch", rig.Ms(fromServed.Quantile(.5)), rig.Ms(fromChanged.Quantile(.5)), "ms",
		fmt.Sprintf("kube-apiserver's answer to a change of a ConfigMap of the same size until all its %d watchers have it; medians", *watchers))
	return nil
}

// change gives a record another address, and measures from when all servers answer with it until every watcher was told
// that they do.
func (b *bench) change(ctx context.Context, c *crowd, i int) (time.Duration, error) {
	time.Sleep(10 * rest)
	address := fmt.Sprintf("172.16.%d.%d", i/250, i%250+1)
	all := c.await(`"`+address+`"`, `"inSync":true`)
	record := &v1beta1.ARecord{ObjectMeta: b.Meta(object+"-0", nil)}
	patch := fmt.Appendf(nil, `{"spec":{"ipv4Addresses":[%q]}}`, address)
	if err := b.Client.Patch(ctx, record, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return 0, err
	}
	if _, err := b.Until(ctx, "host-0."+apex, address); err != nil {
		return 0, err
	}
	served := time.Now()
	return c.since(ctx, served, all)
}

// touch changes a ConfigMap, and measures from the answer until every watcher has the change.
func (b *bench) touch(ctx context.Context, c *crowd, i int) (time.Duration, error) {
	time.Sleep(10 * rest)
	mark := fmt.Sprintf("turn-%d", i)
	all := c.await(`"` + mark + `"`)
	patch := fmt.Appendf(nil, `{"data":{"turn":%q}}`, mark)
	if err := b.Client.Patch(ctx, b.configMap("watched", 0), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return 0, err
	}
	return c.since(ctx, time.Now(), all)
}

// crowd is many watches of one path.
type crowd struct {
	disperse context.CancelFunc
	failed   chan error

	mu sync.Mutex
	// awaited is what a line has to contain, told whom it has reached; all is closed when that is everybody.
	awaited []string
	told    map[int]bool
	last    time.Time
	all     chan struct{}
	// lines counts what all of them have read.
	lines int
}

// crowd begins the watches, of what comes after a list, and returns when each has been answered.
func (b *bench) crowd(ctx context.Context, resource string) (*crowd, error) {
	body, _, err := b.Read(ctx, resource)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	if err := json.Unmarshal(body, list); err != nil {
		return nil, err
	}
	path := resource + "?watch=1&resourceVersion=" + list.ResourceVersion
	ctx, cancel := context.WithCancel(ctx)
	c := &crowd{disperse: cancel, failed: make(chan error, *watchers)}
	began := time.Now()
	begin := &errgroup.Group{}
	begin.SetLimit(32)
	for i := range *watchers {
		begin.Go(func() error {
			begun := make(chan struct{})
			go func() {
				err := b.Lines(ctx, path, func() { close(begun) }, func(line []byte) { c.hear(i, line) })
				c.failed <- fmt.Errorf("watch %d of %s has ended: %w", i, path, err)
			}()
			select {
			case <-begun:
				return nil
			case err := <-c.failed:
				return err
			}
		})
	}
	if err = begin.Wait(); err != nil {
		cancel()
	}
	fmt.Printf("%d watches of %s begun in %.1f s\n", *watchers, resource, time.Since(began).Seconds())
	return c, err
}

// await begins to wait for lines that contain all of these.
func (c *crowd) await(parts ...string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited, c.told, c.all = parts, map[int]bool{}, make(chan struct{})
	return c.all
}

func (c *crowd) hear(watcher int, line []byte) {
	at := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines++
	if c.awaited == nil || c.told[watcher] {
		return
	}
	for _, part := range c.awaited {
		if !bytes.Contains(line, []byte(part)) {
			return
		}
	}
	c.told[watcher], c.last = true, at
	if len(c.told) == *watchers {
		c.awaited = nil
		close(c.all)
	}
}

// count gives how many lines have come since it was last asked.
func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.lines
	c.lines = 0
	return n
}

// since waits until everybody was told, and measures until then.
func (c *crowd) since(ctx context.Context, began time.Time, all <-chan struct{}) (time.Duration, error) {
	select {
	case <-all:
	case err := <-c.failed:
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(within):
		c.mu.Lock()
		defer c.mu.Unlock()
		return 0, fmt.Errorf("%d of %d watchers were not told within %s", *watchers-len(c.told), *watchers, within)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.last.Sub(began)), nil
}

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

// watchTimeout is how long one change may take to reach all watchers.
const watchTimeout = 30 * time.Second

// measureWatch measures how long after a change is served everywhere the last of many watchers of the namespace knows that it is,
// beside as many watchers of the namespace's ConfigMaps from kube-apiserver's answer to a change of one.
func (b *readBench) measureWatch(ctx context.Context) error {
	if err := b.Client.Create(ctx, b.newConfigMap("watched", 0)); err != nil {
		return err
	}
	ours, err := b.startWatchers(ctx, b.SyncStatusPath(""))
	if err != nil {
		return err
	}
	defer ours.stop()
	peers, err := b.startWatchers(ctx, b.ConfigMapPath(""))
	if err != nil {
		return err
	}
	defer peers.stop()
	time.Sleep(3 * time.Second) // until all have begun, whatever came with that
	ours.takeLineCount()
	var fromServed, fromChanged rig.Times
	for i := range *changes {
		took, err := b.changeRecord(ctx, ours, i)
		if err != nil {
			return err
		}
		fromServed = append(fromServed, took)
		if took, err = b.changeConfigMap(ctx, peers, i); err != nil {
			return err
		}
		fromChanged = append(fromChanged, took)
	}
	fmt.Printf("a watcher of all kinds reads %.1f lines for a change\n", float64(ours.takeLineCount())/float64(*watchers**changes))
	fmt.Printf("from served everywhere to all %d watchers:         %s\n", *watchers, fromServed)
	fmt.Printf("from a ConfigMap's change to all its %d watchers: %s\n", *watchers, fromChanged)
	b.AddResult("watch", rig.Milliseconds(fromServed.Quantile(.5)), rig.Milliseconds(fromChanged.Quantile(.5)), "ms",
		fmt.Sprintf("kube-apiserver's answer to a change of a ConfigMap of the same size until all its %d watchers have it; medians", *watchers))
	return nil
}

// changeRecord gives a record another address, and measures from when all servers answer with it until every watcher has
// read that they do.
func (b *readBench) changeRecord(ctx context.Context, c *watcherGroup, i int) (time.Duration, error) {
	time.Sleep(10 * pause)
	address := fmt.Sprintf("172.16.%d.%d", i/250, i%250+1)
	all := c.expectLine(`"`+address+`"`, `"inSync":true`)
	record := &v1beta1.ARecord{ObjectMeta: b.ObjectMeta(object+"-0", nil)}
	patch := fmt.Appendf(nil, `{"spec":{"ipv4Addresses":[%q]}}`, address)
	if err := b.Client.Patch(ctx, record, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return 0, err
	}
	if _, err := b.WaitAnswered(ctx, "host-0."+apex, address); err != nil {
		return 0, err
	}
	served := time.Now()
	return c.waitReceived(ctx, served, all)
}

// changeConfigMap changes a ConfigMap, and measures from the answer until every watcher has the change.
func (b *readBench) changeConfigMap(ctx context.Context, c *watcherGroup, i int) (time.Duration, error) {
	time.Sleep(10 * pause)
	mark := fmt.Sprintf("turn-%d", i)
	all := c.expectLine(`"` + mark + `"`)
	patch := fmt.Appendf(nil, `{"data":{"turn":%q}}`, mark)
	if err := b.Client.Patch(ctx, b.newConfigMap("watched", 0), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return 0, err
	}
	return c.waitReceived(ctx, time.Now(), all)
}

// watcherGroup is many watches of one path.
type watcherGroup struct {
	stop   context.CancelFunc
	failed chan error

	mu sync.Mutex
	// expected is what a line has to contain, received who has read such a line; all is closed when that is everybody.
	expected []string
	received map[int]bool
	last     time.Time
	all      chan struct{}
	// lines counts what all of them have read.
	lines int
}

// startWatchers begins the watches, of what comes after a list, and returns when each has been answered.
func (b *readBench) startWatchers(ctx context.Context, resource string) (*watcherGroup, error) {
	body, _, err := b.ReadPath(ctx, resource)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	if err := json.Unmarshal(body, list); err != nil {
		return nil, err
	}
	path := resource + "?watch=1&resourceVersion=" + list.ResourceVersion
	ctx, cancel := context.WithCancel(ctx)
	c := &watcherGroup{stop: cancel, failed: make(chan error, *watchers)}
	began := time.Now()
	begin := &errgroup.Group{}
	begin.SetLimit(32)
	for i := range *watchers {
		begin.Go(func() error {
			begun := make(chan struct{})
			go func() {
				err := b.ReadLines(ctx, path, func() { close(begun) }, func(line []byte) { c.receiveLine(i, line) })
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

// expectLine begins to wait for lines that contain all of these.
func (c *watcherGroup) expectLine(parts ...string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected, c.received, c.all = parts, map[int]bool{}, make(chan struct{})
	return c.all
}

func (c *watcherGroup) receiveLine(watcher int, line []byte) {
	at := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines++
	if c.expected == nil || c.received[watcher] {
		return
	}
	for _, part := range c.expected {
		if !bytes.Contains(line, []byte(part)) {
			return
		}
	}
	c.received[watcher], c.last = true, at
	if len(c.received) == *watchers {
		c.expected = nil
		close(c.all)
	}
}

// takeLineCount returns how many lines have come since it was last asked.
func (c *watcherGroup) takeLineCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.lines
	c.lines = 0
	return n
}

// waitReceived waits until all watchers have read the line, and measures until then.
func (c *watcherGroup) waitReceived(ctx context.Context, began time.Time, all <-chan struct{}) (time.Duration, error) {
	select {
	case <-all:
	case err := <-c.failed:
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(watchTimeout):
		c.mu.Lock()
		defer c.mu.Unlock()
		return 0, fmt.Errorf("%d of %d watchers did not read it within %s", *watchers-len(c.received), *watchers, watchTimeout)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.last.Sub(began)), nil
}

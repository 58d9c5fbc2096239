package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// leastController is the least that a controller of the bare kind does: it decodes each event of a watch, writes the status of each
// object once, and takes off the finalizer of each that is deleted. It keeps nothing and asks nobody.
type leastController struct {
	*bulkBench
	created, deleted chan string
}

// bareEvent is what it needs of an event.
type bareEvent struct {
	Object struct {
		Metadata struct {
			Name              string
			DeletionTimestamp *time.Time
			Finalizers        []string
		}
		Spec   map[string]any
		Status struct{ Conditions []json.RawMessage }
	}
}

// measureLeast measures objects of the bare kind with a webhook that looks at nothing and a controller that does the least.
func (b *bulkBench) measureLeast(ctx context.Context) (p phaseTimes, err error) {
	all, err := b.encodeObjects(rig.BareAPIVersion, rig.BareKind, object)
	if err != nil {
		return p, err
	}
	removeWebhook, err := b.StartBareWebhook(ctx)
	if err != nil {
		return p, err
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	c := &leastController{b, make(chan string, len(all)), make(chan string, len(all))}
	running.Go(func() { c.watch(ctx) })
	for range *clients {
		running.Go(func() {
			for name := range c.deleted {
				if err := b.ReleaseBare(ctx, name); err != nil && ctx.Err() == nil {
					fmt.Println("releasing", name, "failed:", err) // Whoever waits for its end fails.
				}
			}
		})
	}
	p, err = b.measureRound(ctx, "least", round{
		objects: all, path: b.BarePath, release: leaveAlone,
		awaitStatuses: func(ctx context.Context) (time.Time, error) { return c.writeStatuses(ctx, all) },
	})
	return p, errors.Join(err, removeWebhook())
}

// watch notes what has no status yet, and what is to be released, until the context ends.
func (c *leastController) watch(ctx context.Context) {
	defer close(c.deleted)
	err := c.ReadLines(ctx, c.BarePath("")+"?watch=1&resourceVersion=0", func() {}, func(line []byte) {
		var e bareEvent
		if json.Unmarshal(line, &e) != nil || ctx.Err() != nil {
			return
		}
		switch o := e.Object; {
		case o.Metadata.DeletionTimestamp == nil && len(o.Status.Conditions) == 0:
			c.created <- o.Metadata.Name
		case o.Metadata.DeletionTimestamp != nil && len(o.Metadata.Finalizers) > 0:
			c.deleted <- o.Metadata.Name
		}
	})
	if ctx.Err() == nil {
		fmt.Println("the watch has ended:", err)
	}
}

// writeStatuses writes the statuses after the last creation: before, they would only delay it.
func (c *leastController) writeStatuses(ctx context.Context, all []encodedObject) (time.Time, error) {
	err := rig.ForEachParallel(ctx, *clients, "status-patched", all, func(ctx context.Context, _ encodedObject) error {
		select {
		case name := <-c.created:
			return c.writeBareStatus(ctx, name)
		case <-time.After(*limit):
			return errors.New("the watch shows too few objects")
		}
	})
	return time.Now(), err
}

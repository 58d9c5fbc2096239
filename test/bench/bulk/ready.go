package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// recordEvent is what a watch says of a record, as far as it matters here.
type recordEvent struct {
	Object struct {
		Metadata struct {
			Name       string
			Generation int64
		}
		Status struct {
			Conditions []struct {
				Type, Status       string
				ObservedGeneration int64
			}
		}
	}
}

// isReady reports whether the record is ready as it is now.
func (e recordEvent) isReady() bool {
	for _, c := range e.Object.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True" && c.ObservedGeneration == e.Object.Metadata.Generation
		}
	}
	return false
}

// watchRecords calls back with what exists and with each change, until the context ends. kube-apiserver ends the watch of a
// client that it finds too slow: then it begins anew.
func (b *bulkBench) watchRecords(ctx context.Context, selector string, see func(recordEvent)) error {
	var broken error
	for {
		err := b.ReadLines(ctx, b.ARecordPath("")+"?watch=1&resourceVersion=0"+selector, func() {}, func(line []byte) {
			var e recordEvent
			if err := json.Unmarshal(line, &e); err != nil {
				broken = err
			}
			see(e)
		})
		if !errors.Is(err, io.EOF) || broken != nil {
			return errors.Join(broken, err)
		}
	}
}

// waitReady waits until so many records are ready, and returns when the last one was seen to be.
func (b *bulkBench) waitReady(ctx context.Context, count int) (last time.Time, err error) {
	ctx, stop := context.WithTimeout(ctx, *limit)
	defer stop()
	ready := make(map[string]struct{}, count)
	err = b.watchRecords(ctx, "", func(e recordEvent) {
		if !e.isReady() || len(ready) == count {
			return
		}
		ready[e.Object.Metadata.Name] = struct{}{}
		if len(ready) == count {
			last = time.Now()
			stop()
		}
	})
	if len(ready) < count {
		return last, fmt.Errorf("%d of %d records are ready: %w", len(ready), count, err)
	}
	return last, nil
}

// measureSingles changes one record again and again. It measures from the API server's answer on until all servers serve
// the change, and until the record says that it is ready.
func (b *bulkBench) measureSingles(ctx context.Context, name string) error {
	if err := b.WaitQuiet(ctx, 2*time.Second); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	type sighting struct {
		generation int64
		at         time.Time
	}
	ready := make(chan sighting, *changes+1)
	watching.Go(func() {
		_ = b.watchRecords(ctx, "&fieldSelector=metadata.name%3D"+name, func(e recordEvent) {
			if e.isReady() {
				select {
				case ready <- sighting{e.Object.Metadata.Generation, time.Now()}:
				case <-ctx.Done():
				}
			}
		})
		close(ready)
	})
	owner := rig.Objects.WantedRecords(zone, 1)[0].Name
	for i := range *changes {
		address := fmt.Sprintf("172.16.%d.%d", i/250, i%250+1)
		body, err := b.SendRequest(ctx, http.MethodPatch, b.ARecordPath(name), rig.MergePatch, fmt.Appendf(nil, `{"spec":{"ipv4Addresses":[%q]}}`, address))
		if err != nil {
			return err
		}
		answered := time.Now()
		var changed recordEvent
		if err := json.Unmarshal(body, &changed.Object); err != nil {
			return err
		}
		served, err := b.WaitAnswered(ctx, owner, address)
		if err != nil {
			return err
		}
		for {
			seen, ok := <-ready
			if !ok {
				return fmt.Errorf("the watch of %s has ended", name)
			}
			if seen.generation == changed.Object.Metadata.Generation {
				b.served, b.ready = append(b.served, served), append(b.ready, max(0, seen.at.Sub(answered)))
				break
			}
		}
	}
	return nil
}

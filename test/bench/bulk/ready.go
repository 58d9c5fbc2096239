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
func watchRecords(ctx context.Context, r *rig.Rig, selector string, see func(recordEvent)) error {
	var broken error
	for {
		err := r.ReadLines(ctx, r.ARecordPath("")+"?watch=1&resourceVersion=0"+selector, func() {}, func(line []byte) {
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
func waitReady(ctx context.Context, r *rig.Rig, count int) (last time.Time, err error) {
	ctx, stop := context.WithTimeout(ctx, *limit)
	defer stop()
	ready := make(map[string]struct{}, count)
	err = watchRecords(ctx, r, "", func(e recordEvent) {
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

// singleChanges are changes of one record, one after the other.
type singleChanges struct {
	*rig.Rig
	// zone is the DNS name of the record's zone, record its object, which declares the zone's first host.
	zone, record string
}

// readySighting is that a record was seen to be ready.
type readySighting struct {
	generation int64
	at         time.Time
}

// measure changes the record again and again. It returns, for each change, how long it took from the API server's answer on until
// all servers served it, and until the record said that it is ready.
func (s singleChanges) measure(ctx context.Context, more func(done int) bool) (served, ready rig.Times, err error) {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	seen := make(chan readySighting)
	watching.Go(func() {
		defer close(seen)
		_ = watchRecords(ctx, s.Rig, "&fieldSelector=metadata.name%3D"+s.record, func(e recordEvent) {
			if e.isReady() {
				select {
				case seen <- readySighting{e.Object.Metadata.Generation, time.Now()}:
				case <-ctx.Done():
				}
			}
		})
	})
	for i := 0; more(i); i++ {
		toServed, toReady, err := s.change(ctx, fmt.Sprintf("172.16.%d.%d", i/250%250, i%250+1), seen)
		if err != nil {
			return nil, nil, err
		}
		served, ready = append(served, toServed), append(ready, toReady)
	}
	return served, ready, nil
}

// change gives the record another address.
func (s singleChanges) change(ctx context.Context, address string, seen <-chan readySighting) (served, ready time.Duration, err error) {
	body, err := s.SendRequest(ctx, http.MethodPatch, s.ARecordPath(s.record), rig.MergePatch, fmt.Appendf(nil, `{"spec":{"ipv4Addresses":[%q]}}`, address))
	if err != nil {
		return 0, 0, err
	}
	answered := time.Now()
	var changed recordEvent
	if err := json.Unmarshal(body, &changed.Object); err != nil {
		return 0, 0, err
	}
	sighted := make(chan time.Time, 1)
	go func() {
		defer close(sighted)
		for at := range seen {
			if at.generation == changed.Object.Metadata.Generation {
				sighted <- at.at
				return
			}
		}
	}()
	if served, err = s.WaitAnswered(ctx, rig.Objects.WantedRecords(s.zone, 1)[0].Name, address); err != nil {
		return 0, 0, err
	}
	at, ok := <-sighted
	if !ok {
		return 0, 0, fmt.Errorf("the watch of %s has ended", s.record)
	}
	return served, max(0, at.Sub(answered)), nil
}

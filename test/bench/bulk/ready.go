package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// recordState is a record, as far as it matters here.
type recordState struct {
	Metadata struct {
		Name, ResourceVersion string
		Generation            int64
	}
	Status struct {
		Conditions []struct {
			Type, Status       string
			ObservedGeneration int64
		}
	}
}

// isReady reports whether the record is ready as it is now.
func (s recordState) isReady() bool {
	for _, c := range s.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True" && c.ObservedGeneration == s.Metadata.Generation
		}
	}
	return false
}

// watchRecords calls back with what exists and with each change, until the context ends. kube-apiserver ends the watch of a
// client that it finds too slow: then it goes on from the last change that it has seen.
func watchRecords(ctx context.Context, r *rig.Rig, selector string, see func(recordState)) error {
	body, _, err := r.ReadPath(ctx, r.ARecordPath("")+"?resourceVersion=0"+selector)
	if err != nil {
		return err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []recordState
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return err
	}
	for _, o := range list.Items {
		see(o)
	}
	var broken error
	for version := list.Metadata.ResourceVersion; ; {
		err := r.ReadLines(ctx, r.ARecordPath("")+"?watch=1&resourceVersion="+version+selector, func() {}, func(line []byte) {
			var e struct{ Object recordState }
			if err := json.Unmarshal(line, &e); err != nil || e.Object.Metadata.Name == "" {
				broken = errors.Join(err, fmt.Errorf("the watch says %.300s", line))
			}
			version = e.Object.Metadata.ResourceVersion
			see(e.Object)
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
	err = watchRecords(ctx, r, "", func(s recordState) {
		if !s.isReady() || len(ready) == count {
			return
		}
		ready[s.Metadata.Name] = struct{}{}
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

// sighting is that a watch has shown the record.
type sighting struct {
	generation int64
	ready      bool
	at         time.Time
}

// changeTimes are how long it took, from the API server's answer at a time on, until a watch of kube-apiserver's showed the change, until the
// primary and all servers served it, and until the record said that it is ready.
type changeTimes struct {
	at                              time.Time
	watched, primary, served, ready time.Duration
}

func (t changeTimes) String() string {
	return fmt.Sprintf("answered at %s, in a watch after %.0f ms, on the primary %.0f, on all servers %.0f, ready %.0f",
		t.at.UTC().Format("15:04:05.000"), rig.Milliseconds(t.watched), rig.Milliseconds(t.primary), rig.Milliseconds(t.served), rig.Milliseconds(t.ready))
}

// servedTimes and readyTimes return one of the times of each change.
func servedTimes(all []changeTimes) rig.Times {
	return timesOf(all, func(t changeTimes) time.Duration { return t.served })
}

func readyTimes(all []changeTimes) rig.Times {
	return timesOf(all, func(t changeTimes) time.Duration { return t.ready })
}

func timesOf(all []changeTimes, of func(changeTimes) time.Duration) (times rig.Times) {
	for _, t := range all {
		times = append(times, of(t))
	}
	return times
}

// printSlowest says where the slowest changes have waited.
func printSlowest(all []changeTimes, count int) {
	slowest := slices.SortedFunc(slices.Values(all), func(a, b changeTimes) int { return cmp.Compare(b.served, a.served) })
	for _, t := range slowest[:min(count, len(slowest))] {
		fmt.Println("  a slow change:", t)
	}
}

// measure changes the record again and again.
func (s singleChanges) measure(ctx context.Context, more func(done int) bool) (all []changeTimes, err error) {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	seen := make(chan sighting)
	watching.Go(func() {
		defer close(seen)
		_ = watchRecords(ctx, s.Rig, "&fieldSelector=metadata.name%3D"+s.record, func(o recordState) {
			select {
			case seen <- sighting{o.Metadata.Generation, o.isReady(), time.Now()}:
			case <-ctx.Done():
			}
		})
	})
	for i := 0; more(i); i++ {
		times, err := s.change(ctx, fmt.Sprintf("172.16.%d.%d", i/250%250, i%250+1), seen)
		if err != nil {
			return nil, err
		}
		all = append(all, times)
	}
	return all, nil
}

// change gives the record another address.
func (s singleChanges) change(ctx context.Context, address string, seen <-chan sighting) (times changeTimes, err error) {
	body, err := s.SendRequest(ctx, http.MethodPatch, s.ARecordPath(s.record), rig.MergePatch, fmt.Appendf(nil, `{"spec":{"ipv4Addresses":[%q]}}`, address))
	if err != nil {
		return times, err
	}
	times.at = time.Now()
	var changed recordState
	if err := json.Unmarshal(body, &changed); err != nil {
		return times, err
	}
	name := rig.Objects.WantedRecords(s.zone, 1)[0].Name
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		times.primary, err = rig.WaitAnsweredBy(ctx, []netip.AddrPort{s.Primary}, name, address)
		return err
	})
	group.Go(func() (err error) {
		times.served, err = s.WaitAnswered(ctx, name, address)
		return err
	})
	group.Go(func() error {
		for at := range seen {
			took := max(0, at.at.Sub(times.at))
			if at.generation == changed.Metadata.Generation && times.watched == 0 {
				times.watched = took
			}
			if at.generation == changed.Metadata.Generation && at.ready {
				times.ready = took
				return nil
			}
		}
		return fmt.Errorf("the watch of %s has ended", s.record)
	})
	return times, group.Wait()
}

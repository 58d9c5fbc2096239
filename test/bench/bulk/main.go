// Command bulk measures what users wait for who create and delete many records at once: how fast kube-apiserver takes
// them in a zone that selects them, when the last of them says that it is ready, when all are gone again, and how much
// CPU each program uses meanwhile. The reference, in turn with it in the same run, is the same client with objects of a bare kind: it has
// the schema of ARecords and neither webhooks nor a controller, so the client writes their statuses and takes off their finalizers.
// With -mixed it measures what a burst does to single changes in another namespace.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// object and zone are the DNSZone's names.
const object, zone = "bulk", "bulk.example"

var (
	records    = flag.Int("records", 10_000, "ARecords to create")
	rounds     = flag.Int("rounds", 3, "rounds, each with ours and with the reference")
	clients    = flag.Int("clients", 16, "clients that create, write and delete at the same time")
	changes    = flag.Int("changes", 50, "changes of a single record at rest, until it is served and until it is ready")
	unselected = flag.Bool("unselected", false, "also create records that no zone selects")
	least      = flag.Bool("least", false, "also create objects of the bare kind for which a webhook that looks at nothing is called and a watch writes the statuses: the least that any such controller does")
	mixed      = flag.Bool("mixed", false, "measure single changes in another namespace, at rest and while the records are created, and nothing else")
	profiles   = flag.String("profiles", "", "folder for CPU profiles of the first seconds of each part")
	limit      = flag.Duration("limit", 15*time.Minute, "when to give up")
)

func main() {
	rig.Main("bulk", func(ctx context.Context, r *rig.Rig) error {
		if *mixed {
			return measureMixed(ctx, r)
		}
		return measureBulk(ctx, r)
	})
}

// phaseTimes are how long the parts of a round took: creating, from the first request to the last status, and deleting.
type phaseTimes struct{ create, ready, remove time.Duration }

func measureBulk(ctx context.Context, r *rig.Rig) error {
	b := &bulkBench{Rig: r}
	if err := errors.Join(r.CreateBareKind(ctx), r.CreateZone(ctx, object, zone)); err != nil {
		return err
	}
	ways := []struct {
		measured bool
		measure  func(context.Context) (phaseTimes, error)
	}{{true, b.measureOurs}, {*unselected, b.measureUnselected}, {true, b.measureBare}, {*least, b.measureLeast}}
	results := make([][]phaseTimes, len(ways))
	for range *rounds {
		for i, way := range ways {
			if !way.measured {
				continue
			}
			times, err := way.measure(ctx)
			if err != nil {
				return err
			}
			results[i] = append(results[i], times)
		}
	}
	b.addResults("", results[0], results[2])
	if *unselected {
		b.addResults("-unselected", results[1], results[2])
	}
	if *least {
		b.addResults("-least", results[3], results[2])
	}
	b.addSingles()
	b.cpu.print()
	return nil
}

type bulkBench struct {
	*rig.Rig
	// status is that of a record that is ready: what the client writes on bare ones.
	status json.RawMessage
	// served and ready are how long single changes took.
	served, ready rig.Times
	cpu           cpuTable
}

func (b *bulkBench) addResults(suffix string, ours, reference []phaseTimes) {
	b.addResult("apply"+suffix, ours, reference, func(p phaseTimes) time.Duration { return p.create }, "creating as many of a bare kind")
	b.addResult("status"+suffix, ours, reference, func(p phaseTimes) time.Duration { return p.ready },
		"the client creating and status-patching as many of a bare kind itself")
	b.addResult("delete"+suffix, ours, reference, func(p phaseTimes) time.Duration { return p.remove },
		"deleting as many of a bare kind and taking off their finalizers")
}

func (b *bulkBench) addResult(name string, ours, reference []phaseTimes, part func(phaseTimes) time.Duration, what string) {
	median := func(all []phaseTimes) float64 {
		var times rig.Times
		for _, p := range all {
			times = append(times, part(p))
		}
		fmt.Printf("%s: %v\n", name, slices.Sorted(slices.Values(times)))
		return times.Quantile(.5).Seconds()
	}
	b.AddResult(name, median(ours), median(reference), "s", fmt.Sprintf("%s; %d objects, %d clients, median of %d", what, *records, *clients, *rounds))
}

func (b *bulkBench) addSingles() {
	if len(b.ready) == 0 {
		return
	}
	fmt.Println("single changes served:", b.served)
	fmt.Println("single changes ready: ", b.ready)
	for name, q := range map[string]float64{"status-single": .5, "status-single-p99": .99} {
		b.AddResult(name, rig.Milliseconds(b.ready.Quantile(q)), rig.Milliseconds(b.served.Quantile(q)), "ms",
			fmt.Sprintf("until all three servers serve the change; %d changes at rest", len(b.ready)))
	}
}

// encodedObject is an object to create.
type encodedObject struct {
	name string
	body []byte
}

// encodeObjects returns the objects to create as they are sent: nothing has to be encoded while time is measured.
func (b *bulkBench) encodeObjects(apiVersion, kind, zoneObject string, finalizers ...string) ([]encodedObject, error) {
	var all []encodedObject
	for _, o := range b.DeclareRecords(rig.Objects, zoneObject, zone, rig.Objects.WantedRecords(zone, *records)) {
		o.SetFinalizers(finalizers)
		record := o.(*v1beta1.ARecord)
		record.APIVersion, record.Kind = apiVersion, kind
		body, err := json.Marshal(map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": record.ObjectMeta, "spec": record.Spec,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, encodedObject{record.Name, body})
	}
	return all, nil
}

// createAll creates objects and returns when the first was sent and the last answered.
func (b *bulkBench) createAll(ctx context.Context, collection string, all []encodedObject) (rig.Creation, error) {
	c := rig.Creation{Began: time.Now(), Count: len(all)}
	err := rig.ForEachParallel(ctx, *clients, "created", all, func(ctx context.Context, i encodedObject) error {
		_, err := b.SendRequest(ctx, http.MethodPost, collection, "application/json", i.body)
		return err
	})
	c.Ended = time.Now()
	return c, err
}

// deleteAll deletes objects, does what follows for each, and returns how long it took until all were gone.
func (b *bulkBench) deleteAll(ctx context.Context, path func(name string) string, all []encodedObject, release func(ctx context.Context, name string) error) (time.Duration, error) {
	began := time.Now()
	err := rig.ForEachParallel(ctx, *clients, "deleted", all, func(ctx context.Context, i encodedObject) error {
		_, err := b.SendRequest(ctx, http.MethodDelete, path(i.name), "", nil)
		return errors.Join(err, release(ctx, i.name))
	})
	if err != nil {
		return 0, err
	}
	err = rig.PollUntil(ctx, *limit, 50*time.Millisecond, func() error { return b.checkGone(ctx, path("")) })
	return time.Since(began), err
}

func (b *bulkBench) checkGone(ctx context.Context, collection string) error {
	body, _, err := b.ReadPath(ctx, collection+"?limit=1")
	if err != nil {
		return err
	}
	var left struct{ Items []struct{} }
	if err := json.Unmarshal(body, &left); err != nil {
		return err
	}
	if len(left.Items) > 0 {
		return fmt.Errorf("objects are left in %s", collection)
	}
	return nil
}

// round is what differs between rounds: the objects and who writes their statuses and releases them.
type round struct {
	objects []encodedObject
	path    func(name string) string
	// awaitStatuses waits until all have their status and returns when that was; between is done before they are deleted, if
	// anything; release after the deletion of each.
	awaitStatuses func(context.Context) (time.Time, error)
	between       func(context.Context) error
	release       func(ctx context.Context, name string) error
}

func leaveAlone(context.Context, string) error { return nil }

func awaitNothing(context.Context) (time.Time, error) { return time.Now(), nil }

// measureOurs creates records that the zone selects, waits until all are ready, and deletes them.
func (b *bulkBench) measureOurs(ctx context.Context) (p phaseTimes, err error) {
	all, err := b.encodeObjects(v1beta1.GroupVersion.String(), "ARecord", object)
	if err != nil {
		return p, err
	}
	usage, err := b.startUsage(ctx)
	if err != nil {
		return p, err
	}
	p, err = b.measureRound(ctx, "ours", round{
		objects: all, path: b.ARecordPath, release: leaveAlone,
		awaitStatuses: func(ctx context.Context) (time.Time, error) { return waitReady(ctx, b.Rig, len(all)) },
		between: func(ctx context.Context) error {
			if err := usage.report(ctx, "created and ready"); err != nil {
				return err
			}
			if b.status == nil {
				if err := b.readStatus(ctx, all[0].name); err != nil {
					return err
				}
				s := singleChanges{Rig: b.Rig, zone: zone, record: all[0].name}
				single, err := s.measure(ctx, func(done int) bool { return done < *changes })
				if err != nil {
					return err
				}
				b.served, b.ready = servedTimes(single), readyTimes(single)
			}
			usage, err = b.startUsage(ctx)
			return err
		},
	})
	if err != nil {
		return p, err
	}
	return p, usage.report(ctx, "deleted")
}

// measureUnselected creates records that no zone selects, and deletes them.
func (b *bulkBench) measureUnselected(ctx context.Context) (p phaseTimes, err error) {
	all, err := b.encodeObjects(v1beta1.GroupVersion.String(), "ARecord", "none")
	if err != nil {
		return p, err
	}
	return b.measureRound(ctx, "unselected", round{objects: all, path: b.ARecordPath, awaitStatuses: awaitNothing, release: leaveAlone})
}

// measureBare does with objects of the bare kind what users and the controller do with ours.
func (b *bulkBench) measureBare(ctx context.Context) (p phaseTimes, err error) {
	all, err := b.encodeObjects(rig.BareAPIVersion, rig.BareKind, object, rig.BareFinalizer)
	if err != nil {
		return p, err
	}
	return b.measureRound(ctx, "bare", round{
		objects: all, path: b.BarePath, release: b.ReleaseBare,
		awaitStatuses: func(ctx context.Context) (time.Time, error) {
			err := rig.ForEachParallel(ctx, *clients, "status-patched", all, func(ctx context.Context, i encodedObject) error {
				return b.writeBareStatus(ctx, i.name)
			})
			return time.Now(), err
		},
	})
}

func (b *bulkBench) writeBareStatus(ctx context.Context, name string) error {
	patch := slices.Concat([]byte(`{"status":`), b.status, []byte(`}`))
	_, err := b.SendRequest(ctx, http.MethodPatch, b.BarePath(name)+"/status", rig.MergePatch, patch)
	return err
}

func (b *bulkBench) readStatus(ctx context.Context, name string) error {
	body, _, err := b.ReadPath(ctx, b.ARecordPath(name))
	if err != nil {
		return err
	}
	var record struct{ Status json.RawMessage }
	err = json.Unmarshal(body, &record)
	b.status = record.Status
	return err
}

// usageMark is what requests and CPU had been used at a moment.
type usageMark struct {
	*bulkBench
	requests   map[string]float64
	controller rig.Controller
}

// startUsage waits until nothing is being written, and notes what has been used so far.
func (b *bulkBench) startUsage(ctx context.Context) (*usageMark, error) {
	if err := b.WaitQuiet(ctx, 2*time.Second); err != nil {
		return nil, err
	}
	u := &usageMark{bulkBench: b}
	var err error
	if u.requests, err = b.CountRequests(ctx); err != nil {
		return nil, err
	}
	u.controller, err = b.ControllerState(ctx)
	return u, err
}

// report shows what was used for each record since then.
func (u *usageMark) report(ctx context.Context, what string) error {
	requests, err := u.CountRequests(ctx)
	if err != nil {
		return err
	}
	controller, err := u.ControllerState(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s: for each record %.2f ms of the controller's CPU, and the requests", what,
		1000*(controller.CPU-u.controller.CPU)/float64(*records))
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if n := (requests[name] - u.requests[name]) / float64(*records); n >= .001 {
			fmt.Printf("; %s %.3f", name, n)
		}
	}
	fmt.Println()
	return nil
}

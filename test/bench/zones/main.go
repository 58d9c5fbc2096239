// Command zones measures many zones: how long they take until the primary and both secondaries serve all of them, counted
// from the first request, what the controller and every other process needs for them, how long it takes to list their SyncStatus,
// how long one change takes among them, how long a controller that was started anew needs until it has been over all of them, and
// how long until all are gone.
//
// The reference, in the same run, is BIND itself: as many zones on three servers of the same configuration on this
// machine, added over control connections that are kept open. Another one is kube-apiserver itself: the same client creating as many
// objects of a bare kind and writing their statuses. For the list it is bare questions to the same servers, for one change the same
// change while there is no other zone.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/bench/rig"
	"github.com/lockstep-dns/lockstep/test/bench/usage"
)

// address is that of every record.
const address = "192.0.2.1"

var (
	count   = flag.Int("zones", 1000, "zones")
	records = flag.Int("records", 1, "records of each zone: one is an ARecord, several are a DNSEndpoint")
	lists   = flag.Int("lists", 20, "questions about all zones, once all are served")
	changes = flag.Int("changes", 50, "changes to measure, with one zone and with all")
	limit   = flag.Duration("limit", 30*time.Minute, "when to give up")
)

func main() { rig.Main("zones", measureZones) }

// zonesBench are the zones of a run. The first of them is there before the others.
type zonesBench struct {
	*rig.Rig
	names []string
	// wanted is the last record of each zone.
	wanted []rig.Address
	// creation is how long it took until all were served.
	creation time.Duration
	// alone are the times of changes while there was one zone.
	alone rig.Times
}

func measureZones(ctx context.Context, r *rig.Rig) error {
	b := &zonesBench{Rig: r}
	for i := range *count + 1 {
		name := fmt.Sprintf("z-%d.example", i)
		b.names = append(b.names, name)
		b.wanted = append(b.wanted, rig.Address{Name: fmt.Sprintf("host-%d.%s.", *records-1, name), IP: address})
	}
	for _, step := range []func(context.Context) error{
		b.measureCreation, b.measureList, b.measureChanges, b.measureRestart, b.measureRemoval,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func zoneObject(i int) string { return fmt.Sprintf("z-%d", i) }

// zone returns the object of a zone, and that of its records.
func (b *zonesBench) zone(i int) (zone, declared client.Object) {
	meta := b.ObjectMeta(fmt.Sprintf("host-%d", i), rig.ZoneLabels(zoneObject(i)))
	if *records == 1 {
		record := &v1beta1.ARecord{ObjectMeta: meta}
		record.Spec.Name, record.Spec.IPv4Addresses = "host-0", []string{address}
		return b.NewZone(zoneObject(i), b.names[i]), record
	}
	e := &v1alpha1.DNSEndpoint{ObjectMeta: meta}
	e.Spec.Endpoints = b.endpoints(i, address)
	return b.NewZone(zoneObject(i), b.names[i]), e
}

// endpoints returns the records of a zone with several, the last of them with an address.
func (b *zonesBench) endpoints(i int, last string) []*v1alpha1.Endpoint {
	var all []*v1alpha1.Endpoint
	for n := range *records {
		all = append(all, &v1alpha1.Endpoint{DNSName: fmt.Sprintf("host-%d.%s", n, b.names[i]), RecordType: "A", Targets: []string{address}})
	}
	all[*records-1].Targets[0] = last
	return all
}

// measureCreation creates the first zone and changes it, and then creates all others.
func (b *zonesBench) measureCreation(ctx context.Context) error {
	if _, err := b.createZones(ctx, 0, 1); err != nil {
		return err
	}
	alone, err := b.changeZones(ctx, 1)
	if err != nil {
		return err
	}
	fmt.Println("one change with one zone:", alone)
	b.alone = alone
	bare, err := b.measureBareBIND(ctx)
	if err != nil {
		return err
	}
	writes, err := b.measureBareWrites(ctx)
	if err != nil {
		return err
	}
	if err := b.WaitQuiet(ctx, 2*time.Second); err != nil {
		return err
	}
	before, err := b.ControllerState(ctx)
	if err != nil {
		return err
	}
	used, err := usage.Start(ctx, b.Rig)
	if err != nil {
		return err
	}
	peak := b.TrackPeakMemory(ctx)
	if b.creation, err = b.createZones(ctx, 1, len(b.names)); err != nil {
		return err
	}
	served := time.Now()
	if err := b.WaitQuiet(ctx, 5*time.Second); err != nil {
		return err
	}
	fmt.Printf("statuses written %.0f s later\n", (time.Since(served) - 5*time.Second).Seconds())
	if err := used.Report(ctx, *count, "zones"); err != nil {
		return err
	}
	if err := b.WaitQuiet(ctx, rig.SettleTime); err != nil {
		return err
	}
	after, err := b.ControllerState(ctx)
	if err != nil {
		return err
	}
	perZone := (after.Resident - before.Resident) / 1024 / float64(*count)
	fmt.Printf("controller: %.1f s of CPU, memory %.0f MiB before, %.0f MiB at most, %.0f MiB now: %.1f KiB a zone\n",
		after.CPU-before.CPU, rig.MiB(before.Resident), rig.MiB(peak()), rig.MiB(after.Resident), perZone)
	b.AddResult("zones", b.creation.Seconds(), bare.Seconds(), "s",
		fmt.Sprintf("BIND's own addzone on three servers until all serve %d zones; ours is from the first object on", *count))
	b.AddResult("zones-limit", b.creation.Seconds(), (bare + writes).Seconds(), "s",
		fmt.Sprintf("that, and the client creating and status-patching %d objects of a bare kind by itself", 2**count))
	b.AddResult("zones-memory", perZone, b.objectSize(), "KiB", fmt.Sprintf("%d zones with %d records each as JSON; for each zone, in the controller", *count, *records))
	return nil
}

// createZones creates zones with their records and returns how long it took until all servers served them.
func (b *zonesBench) createZones(ctx context.Context, from, to int) (time.Duration, error) {
	var objects []client.Object
	for i := from; i < to; i++ {
		zone, declared := b.zone(i)
		objects = append(objects, zone, declared)
	}
	creation, err := b.CreateAll(ctx, objects)
	if err != nil {
		return 0, err
	}
	at, err := rig.SweepServers(ctx, b.Servers, b.wanted[from:to], *limit)
	if to-from > 1 {
		fmt.Printf("%d zones: %s; served everywhere %.1f s after the last object, %.1f s after the first\n",
			to-from, creation, max(0, at.Sub(creation.Ended)).Seconds(), at.Sub(creation.Began).Seconds())
	}
	return at.Sub(creation.Began), err
}

// objectSize returns how long a zone and its records are as JSON, in KiB.
func (b *zonesBench) objectSize() float64 {
	zone, declared := b.zone(1)
	text, _ := json.Marshal([]client.Object{zone, declared})
	return float64(len(text)) / 1024
}

// changeZones changes the last record of zones that are spread over so many, one after the other, and returns how long each took.
func (b *zonesBench) changeZones(ctx context.Context, among int) (times rig.Times, err error) {
	for n := range *changes {
		time.Sleep(200 * time.Millisecond)
		i := n * among / *changes
		next := fmt.Sprintf("172.%d.%d.%d", 16+min(among-1, 1), n/250, n%250+1)
		_, declared := b.zone(i)
		spec := map[string]any{"ipv4Addresses": []string{next}}
		if *records > 1 {
			spec = map[string]any{"endpoints": b.endpoints(i, next)}
		}
		patch, err := json.Marshal(map[string]any{"spec": spec})
		if err != nil {
			return nil, err
		}
		if err := b.Client.Patch(ctx, declared, client.RawPatch(rig.MergePatch, patch)); err != nil {
			return nil, err
		}
		took, err := b.WaitAnswered(ctx, b.wanted[i].Name, next)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	return times, nil
}

// measureChanges measures changes among all zones.
func (b *zonesBench) measureChanges(ctx context.Context) error {
	among, err := b.changeZones(ctx, len(b.names))
	if err != nil {
		return err
	}
	fmt.Println("one change among them:", among)
	b.AddResult("zones-change", rig.Milliseconds(among.Quantile(.5)), rig.Milliseconds(b.alone.Quantile(.5)), "ms",
		fmt.Sprintf("one change while there is one zone; among %d, medians of %d", *count, *changes))
	return nil
}

// measureRemoval deletes everything and waits until it is gone.
func (b *zonesBench) measureRemoval(ctx context.Context) error {
	if err := b.WaitQuiet(ctx, 2*time.Second); err != nil {
		return err
	}
	used, err := usage.Start(ctx, b.Rig)
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := b.RemoveObjects(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	if err := used.Report(ctx, *count, "removed zones"); err != nil {
		return err
	}
	b.AddResult("zones-removal", took.Seconds(), b.creation.Seconds(), "s", fmt.Sprintf("creating %d zones until all are served", *count))
	return nil
}

// Command zones measures many zones with one record each: how long they take until the primary and both secondaries serve
// all of them, counted from the API server's answer to the last object, what the controller needs for them, how long it takes to
// list their SyncStatus, how long one change takes among them, and how long a controller that was started anew needs until it has been over all of them.
//
// The reference, in the same run, is BIND itself: as many zones on three servers of the same configuration on this
// machine, added over control connections that are kept open; for the list, bare questions to the same servers.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// address is that of the one record of every zone.
const address = "192.0.2.1"

var (
	count   = flag.Int("zones", 1000, "zones, of one record each")
	lists   = flag.Int("lists", 20, "questions about all zones, once all are served")
	changes = flag.Int("changes", 50, "changes to measure afterwards")
	limit   = flag.Duration("limit", 30*time.Minute, "when to give up")
)

func main() { rig.Main("zones", measureZones) }

func measureZones(ctx context.Context, r *rig.Rig) error {
	names := make([]string, *count)
	wanted := make([]rig.Address, *count)
	for i := range names {
		names[i] = fmt.Sprintf("z-%d.example", i)
		wanted[i] = rig.Address{Name: "www." + names[i] + ".", IP: address}
	}
	bare, err := measureBareBIND(ctx, names, wanted)
	if err != nil {
		return err
	}
	ours, err := measureLockstep(ctx, r, names, wanted)
	if err != nil {
		return err
	}
	r.AddResult("zones", ours.Seconds(), bare.Seconds(), "s",
		fmt.Sprintf("BIND's own addzone on three servers until all serve %d zones", *count))
	if err := measureList(ctx, r, names); err != nil {
		return err
	}
	if err := measureChanges(ctx, r, names); err != nil {
		return err
	}
	return measureRestart(ctx, r)
}

func measureBareBIND(ctx context.Context, names []string, wanted []rig.Address) (time.Duration, error) {
	bare, err := rig.StartBare(ctx)
	if err != nil {
		return 0, err
	}
	defer bare.Close()
	began := time.Now()
	if err := bare.AddZones(ctx, names, address); err != nil {
		return 0, err
	}
	fmt.Printf("bare BIND: %d zones added in %.2f s\n", len(names), time.Since(began).Seconds())
	at, err := rig.SweepServers(ctx, bare.Addresses(), wanted, *limit)
	fmt.Printf("bare BIND: all served everywhere after %.2f s\n", at.Sub(began).Seconds())
	return at.Sub(began), err
}

func measureLockstep(ctx context.Context, r *rig.Rig, names []string, wanted []rig.Address) (time.Duration, error) {
	before, err := r.ControllerState(ctx)
	if err != nil {
		return 0, err
	}
	objects := make([]client.Object, 0, 2*len(names))
	for i, name := range names {
		record := &v1beta1.ARecord{ObjectMeta: r.ObjectMeta(fmt.Sprintf("www-%d", i), rig.ZoneLabels(zoneObject(i)))}
		record.Spec.Name, record.Spec.IPv4Addresses = "www", []string{address}
		objects = append(objects, r.NewZone(zoneObject(i), name), record)
	}
	peak := r.TrackPeakMemory(ctx)
	creation, err := r.CreateAll(ctx, objects)
	if err != nil {
		return 0, err
	}
	fmt.Printf("%d zones: %s\n", len(names), creation)
	at, err := rig.SweepServers(ctx, r.Servers, wanted, *limit)
	if err != nil {
		return 0, err
	}
	ours := max(0, at.Sub(creation.Ended))
	fmt.Printf("served everywhere %.1f s after the last object, %.1f s after the first\n", ours.Seconds(), at.Sub(creation.Began).Seconds())
	if err := r.WaitQuiet(ctx, 5*time.Second); err != nil {
		return 0, err
	}
	after, err := r.ControllerState(ctx)
	fmt.Printf("status written %.0f s later; controller: %.1f s of CPU, memory %.0f MiB before, %.0f MiB at most, %.0f MiB now: %.1f KiB a zone\n",
		(time.Since(at) - 5*time.Second).Seconds(), after.CPU-before.CPU, rig.MiB(before.Resident), rig.MiB(peak()), rig.MiB(after.Resident),
		(after.Resident-before.Resident)/1024/float64(len(names)))
	return ours, err
}

// measureList asks for the SyncStatus of all zones, beside bare questions for their serials at the same servers. Answers that are
// not older than a second are not asked for again: that long is waited in between.
func measureList(ctx context.Context, r *rig.Rig, names []string) error {
	path := r.SyncStatusPath("") + "?fieldSelector=kind%3DDNSZone"
	err := rig.PollUntil(ctx, time.Minute, time.Second, func() error {
		_, err := r.ListInSync(ctx, path, len(names))
		return err
	})
	if err != nil {
		return err
	}
	absolute := make([]string, len(names))
	for i, name := range names {
		absolute[i] = name + "."
	}
	var ours, hop, round rig.Times
	for range *lists {
		time.Sleep(1200 * time.Millisecond)
		_, took, err := r.ReadPath(ctx, path)
		if err != nil {
			return err
		}
		ours = append(ours, took)
		if took, err = r.MeasureHop(ctx); err != nil {
			return err
		}
		hop = append(hop, took)
		if took, err = r.MeasureSerials(ctx, absolute...); err != nil {
			return err
		}
		round = append(round, took)
	}
	fmt.Printf("LIST of %d zones on three servers: %s\n", len(names), ours)
	fmt.Println("the same bare questions for serials: ", round)
	r.AddResult("list-zones", rig.Milliseconds(ours.Quantile(.5)), rig.Milliseconds(hop.Quantile(.5)+round.Quantile(.5)), "ms",
		fmt.Sprintf("%d bare parallel SOA questions and the hop to an aggregated API; medians", len(names)*len(r.Servers)))
	return nil
}

func zoneObject(i int) string { return fmt.Sprintf("z-%d", i) }

// measureChanges measures changes of the record of one zone, spread over the zones.
func measureChanges(ctx context.Context, r *rig.Rig, names []string) error {
	var times rig.Times
	for i := range *changes {
		time.Sleep(200 * time.Millisecond)
		zone := i * len(names) / *changes
		next := fmt.Sprintf("172.16.%d.%d", i/250, i%250+1)
		record := &v1beta1.ARecord{ObjectMeta: r.ObjectMeta(fmt.Sprintf("www-%d", zone), nil)}
		patch := fmt.Appendf(nil, `{"spec":{"ipv4Addresses":[%q]}}`, next)
		if err := r.Client.Patch(ctx, record, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return err
		}
		took, err := r.WaitAnswered(ctx, "www."+names[zone]+".", next)
		if err != nil {
			return err
		}
		times = append(times, took)
	}
	fmt.Println("one change among them:", times)
	return nil
}

// measureRestart deletes the controller's pods and waits until the next one has been over every zone.
func measureRestart(ctx context.Context, r *rig.Rig) error {
	if err := r.WaitQuiet(ctx, 5*time.Second); err != nil {
		return err
	}
	began := time.Now()
	if err := r.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("lockstep-system"),
		client.MatchingLabels{"app.kubernetes.io/component": "controller"}); err != nil {
		return err
	}
	last, err := r.WaitRestarted(ctx, *count, *limit)
	if err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	fmt.Printf("a new controller has been over all %d zones %.1f s after the old one was stopped, with %.1f s of CPU and %.0f MiB\n",
		*count, time.Since(began).Seconds(), last.CPU, rig.MiB(last.Resident))
	return nil
}

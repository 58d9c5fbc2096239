// Command single measures how long one changed record of a large zone takes until every server of the zone serves it,
// from the answer of the API server on. The reference, in the same run and on the same servers, is a bare UPDATE over a
// connection that is open already, with the NOTIFY and IXFR that follow from it: what BIND itself needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/miekg/dns"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/test/bench/rig"
	"github.com/lockstep-dns/lockstep/test/bench/usage"
)

// pause is how long nothing happens before each change.
const pause = 200 * time.Millisecond

const (
	object = "single"
	zone   = "single.example"
	apex   = zone + "."
)

var (
	records = flag.Int("records", 100_000, "A RRs in the zone, besides the one that changes")
	changes = flag.Int("changes", 200, "changes to measure, each way")
	form    = flag.String("form", "endpoints", "form of the objects that declare the records: objects, addresses or endpoints")
	stored  = flag.Bool("stored", false, "store the records, as objects, in the etcd of the dev cluster instead of creating them, and measure what they cost")
	etcd    = flag.String("etcd", "127.0.0.1:12379", "etcd of the dev cluster")
	pki     = flag.String("pki", "/var/lib/lockstep-cluster/pki", "folder of the dev cluster's certificates")
)

func main() { rig.Main("single", measureChanges) }

func measureChanges(ctx context.Context, r *rig.Rig) (err error) {
	form, err := rig.ParseForm(*form)
	if err != nil {
		return err
	}
	b := &singleBench{Rig: r, form: form, provider: rfc2136.New(rfc2136.Options{})}
	defer b.provider.Close()
	name := "single"
	if *stored {
		name, b.form = "objects", rig.Objects
		if b.store, err = openStore(*etcd, *pki, r.Namespace); err != nil {
			return err
		}
		defer func() {
			ctx := context.WithoutCancel(ctx)
			// Others see the objects go one by one, and may need minutes for that.
			err = errors.Join(err, b.store.removeStored(ctx), b.WaitQuiet(ctx, 10*time.Second))
		}()
	}
	if err := b.createRecords(ctx); err != nil {
		return err
	}
	// In turn, so that whatever else the machine does weighs on both, and each on a zone at rest.
	var ours, reference rig.Times
	for i := range *changes {
		time.Sleep(pause)
		d, err := b.measureLockstep(ctx, i)
		if err != nil {
			return err
		}
		ours = append(ours, d)
		time.Sleep(pause)
		if d, err = b.measureBareUpdate(ctx, i); err != nil {
			return err
		}
		reference = append(reference, d)
	}
	fmt.Println("through Lockstep:", ours)
	fmt.Println("bare UPDATE:     ", reference)
	what := fmt.Sprintf("bare UPDATE until all three servers answer; %d changes in a zone of %d %s", *changes, *records, b.form)
	r.AddResult(name+"-p99", rig.Milliseconds(ours.Quantile(.99)), rig.Milliseconds(reference.Quantile(.99)), "ms", what)
	r.AddResult(name, rig.Milliseconds(ours.Quantile(.5)), rig.Milliseconds(reference.Quantile(.5)), "ms", "median "+what)
	return nil
}

type singleBench struct {
	*rig.Rig
	form     rig.Form
	provider *rfc2136.Provider
	changing client.Object
	// store is set if the records are stored in it.
	store *etcdStore
}

// createRecords declares the zone and its records and waits until all is done that follows from them.
func (b *singleBench) createRecords(ctx context.Context) error {
	if err := b.CreateZone(ctx, object, zone); err != nil {
		return err
	}
	var empty emptyMemory
	if b.store != nil {
		var err error
		if empty, err = b.measureEmpty(ctx); err != nil {
			return err
		}
	}
	before, err := b.ControllerState(ctx)
	if err != nil {
		return err
	}
	used, err := usage.Start(ctx, b.Rig)
	if err != nil {
		return err
	}
	wanted := b.form.WantedRecords(zone, *records)
	// The changing one is of the same form, and has an object of its own.
	changing := rig.Address{Name: "changing." + apex, IP: "192.0.2.1"}
	b.changing = b.DeclareRecords(b.form, object+"-changing", zone, []rig.Address{changing})[0]
	b.changing.SetLabels(rig.ZoneLabels(object))
	peak := b.TrackPeakMemory(ctx)
	creation, err := b.makeRecords(ctx, wanted)
	if err != nil {
		return err
	}
	fmt.Printf("a zone of %d records: %s\n", *records, creation)
	f, err := b.FollowZone(ctx, zone, wanted)
	if err != nil {
		return err
	}
	served, err := f.WaitServed(ctx, 20*time.Minute)
	if err != nil {
		return err
	}
	if err := f.CheckTransfer(ctx); err != nil {
		return err
	}
	fmt.Printf("served everywhere %.1f s after the last object\n", max(0, served.Sub(creation.Ended)).Seconds())
	if err := b.WaitQuiet(ctx, 5*time.Second); err != nil {
		return err
	}
	if err := used.Report(ctx, len(wanted), "records"); err != nil {
		return err
	}
	after, err := b.ControllerState(ctx)
	fmt.Printf("status written %.0f s later; controller: %.1f s of CPU, memory %.0f MiB before, %.0f MiB at most, %.0f MiB now\n",
		(time.Since(served) - 5*time.Second).Seconds(), after.CPU-before.CPU, rig.MiB(before.Resident), rig.MiB(peak()), rig.MiB(after.Resident))
	if err != nil || b.store == nil {
		return err
	}
	return b.measureFull(ctx, empty)
}

// makeRecords creates the records, or stores them, and creates the one that changes.
func (b *singleBench) makeRecords(ctx context.Context, wanted []rig.Address) (rig.Creation, error) {
	if b.store == nil {
		return b.CreateAll(ctx, append(b.DeclareRecords(b.form, object, zone, wanted), b.changing))
	}
	if err := b.Client.Create(ctx, b.changing); err != nil {
		return rig.Creation{}, err
	}
	return b.storeRecords(ctx, b.store, wanted)
}

// measureLockstep changes the object and measures from the API server's answer on.
func (b *singleBench) measureLockstep(ctx context.Context, i int) (time.Duration, error) {
	address := fmt.Sprintf("172.16.%d.%d", i/250, i%250+1)
	if err := b.Client.Patch(ctx, b.changing, patchOf(b.form, address)); err != nil {
		return 0, err
	}
	return b.WaitAnswered(ctx, "changing."+apex, address)
}

// measureBareUpdate changes another name on the primary directly.
func (b *singleBench) measureBareUpdate(ctx context.Context, i int) (time.Duration, error) {
	have, err := b.PrimarySOA(ctx, apex)
	if err != nil {
		return 0, err
	}
	want := have
	want.Serial = rrset.AddSerial(have.Serial, 1)
	address := fmt.Sprintf("172.17.%d.%d", i/250, i%250+1)
	set := rrset.New(rrset.Key{Name: fmt.Sprintf("bare-%d.%s", i, apex), Type: dns.TypeA}, 300, address)
	began := time.Now()
	if _, err := b.provider.Apply(ctx, rfc2136.Target{Server: b.Primary, Zone: apex, Key: b.Update}, plan.Changes{Create: []rrset.RRset{set}}, have, want); err != nil {
		return 0, err
	}
	_, err = b.WaitAnswered(ctx, set.Name, address)
	return time.Since(began), err
}

// Command single measures how long one changed record of a large zone takes until every server of the zone serves it,
// from the answer of the API server on. The reference, in the same run and on the same servers, is a bare UPDATE over a
// connection that is open already, with the NOTIFY and IXFR that follow from it: what BIND itself needs.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/miekg/dns"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// rest is how long nothing happens before each change.
const rest = 200 * time.Millisecond

const (
	object = "single"
	zone   = "single.example"
	apex   = zone + "."
)

var (
	records = flag.Int("records", 100_000, "A RRs in the zone, besides the one that changes")
	changes = flag.Int("changes", 200, "changes to measure, each way")
	form    = flag.String("form", "endpoints", "form of the objects that declare the records: objects, addresses or endpoints")
)

func main() { rig.Main("single", run) }

func run(ctx context.Context, r *rig.Rig) error {
	form, err := rig.ParseForm(*form)
	if err != nil {
		return err
	}
	b := &bench{Rig: r, form: form, provider: rfc2136.New(rfc2136.Options{})}
	defer b.provider.Close()
	if err := b.setUp(ctx); err != nil {
		return err
	}
	// In turn, so that whatever else the machine does weighs on both, and each on a zone at rest.
	var ours, reference rig.Times
	for i := range *changes {
		time.Sleep(rest)
		d, err := b.throughLockstep(ctx, i)
		if err != nil {
			return err
		}
		ours = append(ours, d)
		time.Sleep(rest)
		if d, err = b.bare(ctx, i); err != nil {
			return err
		}
		reference = append(reference, d)
	}
	fmt.Println("through Lockstep:", ours)
	fmt.Println("bare UPDATE:     ", reference)
	what := fmt.Sprintf("bare UPDATE until all three servers answer; %d changes in a zone of %d %s", *changes, *records, form)
	r.Result("single-p99", rig.Ms(ours.Quantile(.99)), rig.Ms(reference.Quantile(.99)), "ms", what)
	r.Result("single", rig.Ms(ours.Quantile(.5)), rig.Ms(reference.Quantile(.5)), "ms", "median "+what)
	return nil
}

type bench struct {
	*rig.Rig
	form     rig.Form
	provider *rfc2136.Provider
	changing client.Object
}

// setUp declares the zone and its records and waits until all is done that follows from them.
func (b *bench) setUp(ctx context.Context) error {
	if err := b.MakeZone(ctx, object, zone); err != nil {
		return err
	}
	before, err := b.Controller(ctx)
	if err != nil {
		return err
	}
	wanted := b.form.Wanted(zone, *records)
	// The changing one is of the same form, and has an object of its own.
	changing := rig.Address{Name: "changing." + apex, IP: "192.0.2.1"}
	b.changing = b.Declare(b.form, object+"-changing", zone, []rig.Address{changing})[0]
	b.changing.SetLabels(rig.Labels(object))
	peak := b.Peak(ctx)
	creation, err := b.Create(ctx, append(b.Declare(b.form, object, zone, wanted), b.changing))
	if err != nil {
		return err
	}
	fmt.Printf("a zone of %d records: %s\n", *records, creation)
	f, err := b.Follow(ctx, zone, wanted)
	if err != nil {
		return err
	}
	served, err := f.Served(ctx, 20*time.Minute)
	if err != nil {
		return err
	}
	if err := f.Check(ctx); err != nil {
		return err
	}
	fmt.Printf("served everywhere %.1f s after the last object\n", max(0, served.Sub(creation.Ended)).Seconds())
	if err := b.Quiet(ctx, 5*time.Second); err != nil {
		return err
	}
	after, err := b.Controller(ctx)
	fmt.Printf("status written %.0f s later; controller: %.1f s of CPU, memory %.0f MiB before, %.0f MiB at most, %.0f MiB now\n",
		(time.Since(served) - 5*time.Second).Seconds(), after.CPU-before.CPU, rig.MiB(before.Resident), rig.MiB(peak()), rig.MiB(after.Resident))
	return err
}

// throughLockstep changes the object and measures from the API server's answer on.
func (b *bench) throughLockstep(ctx context.Context, i int) (time.Duration, error) {
	address := fmt.Sprintf("172.16.%d.%d", i/250, i%250+1)
	patch := fmt.Appendf(nil, `{"spec":{"ipv4Addresses":[%q]}}`, address)
	if b.form == rig.Endpoints {
		patch = fmt.Appendf(nil, `{"spec":{"endpoints":[{"dnsName":"changing.%s","recordType":"A","targets":[%q]}]}}`, apex, address)
	}
	if err := b.Client.Patch(ctx, b.changing, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return 0, err
	}
	return b.Until(ctx, "changing."+apex, address)
}

// bare changes another name on the primary directly.
func (b *bench) bare(ctx context.Context, i int) (time.Duration, error) {
	have, err := b.SOA(ctx, apex)
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
	_, err = b.Until(ctx, set.Name, address)
	return time.Since(began), err
}

// Package backend brings a zone to backends that have no SOA to compare with: what such a backend holds is read, compared with what is
// declared, changed as compare-and-swap, and read back. Package reconcile puts the outcome beside that of the zone's primaries.
package backend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// maxTries is how often a plan is made anew when somebody else changes the zone at the same time.
const maxTries = 3

// maxSample is how many foreign RRsets are named.
const maxSample = 100

// Named is a backend, and the name that users know it by.
type Named struct {
	host.Backend
	Name string
	// Review decides on what is about to change in a zone that has have. It returns what the zone is to hold, and whether that is something
	// else than before. Nil allows everything.
	Review func(have plan.Content, lacking plan.Changes) (want plan.Content, other bool)
}

// Outcome is how a zone is at a backend after a pass.
type Outcome struct {
	Name string
	// Apex says why no NS record that objects declare at the apex goes there.
	Apex string
	// Unprogrammed has the verdict for every RRset that was not read back as declared, or that is there and no longer declared.
	Unprogrammed map[rrset.Key]status.Verdict
	// Unsupported has the verdict for every declared RRset that the backend cannot hold.
	Unsupported map[rrset.Key]status.Verdict
	// Foreign counts the RRsets that nobody declares, ForeignSample has the first of them.
	Foreign       int
	ForeignSample []rrset.Key
	// Applied are the changes that were made, Pending counts those that a paused zone lacks.
	Applied plan.Changes
	Pending int
	// Err is why nothing is known of the backend, or nothing can be changed there.
	Err error
}

// run is one Sync.
type run struct {
	backend Named
	zone    string
	want    plan.Content
	desired plan.Map
	reasons map[rrset.Key]string
	refused map[rrset.Key]error
	// sent is host.ErrConflict or host.ErrUnknown if the last that was sent may not be there.
	sent    error
	seen    host.Observation
	lacking plan.Changes
}

// Sync brings a zone to a backend, unless it is paused: then it is only looked at.
func Sync(ctx context.Context, b Named, zone string, want plan.Content, paused bool) Outcome {
	r := &run{backend: b, zone: zone}
	r.setWanted(want)
	defer r.release()
	out := Outcome{Name: b.Name, Apex: b.Apex()}
	if out.Err = r.look(ctx); out.Err != nil {
		return out
	}
	if b.Review != nil && !paused {
		if want, other := b.Review(r.seen.Content, r.lacking); other {
			r.setWanted(want)
			r.compare()
		}
	}
	for try := 0; try < maxTries && !paused && r.lacking.HasChanges(); try++ {
		if out.Applied.Len() == 0 {
			out.Applied = r.lacking
		}
		if out.Err = r.apply(ctx); out.Err != nil || r.sent == nil {
			break
		}
	}
	if out.Err == nil && errors.Is(r.sent, host.ErrUnknown) && r.lacking.HasChanges() {
		out.Err = r.sent // It was never applied, and this is all that the backend says.
	}
	if r.seen.Content != nil { // It could be read back.
		r.conclude(&out, paused)
	}
	return out
}

// setWanted sets what the backend is to hold.
func (r *run) setWanted(want plan.Content) {
	r.want, r.reasons, r.desired = want, r.backend.Unsupported(r.zone, want), make(plan.Map, want.Len())
	for set := range want.All() {
		if set.Type == dns.TypeNS && set.Name == r.zone || r.reasons[set.Key] != "" {
			continue // The NS records of the apex are the backend's own.
		}
		r.desired[set.Key] = set
	}
}

// look reads the zone and finds what it lacks.
func (r *run) look(ctx context.Context) (err error) {
	r.release()
	if r.seen, err = r.backend.Observe(ctx, r.zone); err == nil {
		r.compare()
	}
	return err
}

func (r *run) compare() {
	r.lacking = plan.Calculate(r.desired, r.seen.Content, r.seen.Ours, rrset.SOA{}, rrset.SOA{})
}

func (r *run) release() {
	if r.seen.Release != nil {
		r.seen.Release()
	}
}

// apply sends what the backend lacks, and reads back.
func (r *run) apply(ctx context.Context) error {
	result, err := r.backend.Apply(ctx, r.zone, r.lacking, r.seen)
	if r.refused, r.sent = result.Refused, err; err != nil && !errors.Is(err, host.ErrConflict) && !errors.Is(err, host.ErrUnknown) {
		return err
	}
	return r.look(ctx)
}

// conclude says what is not as declared.
func (r *run) conclude(out *Outcome, paused bool) {
	out.Unprogrammed, out.Unsupported = map[rrset.Key]status.Verdict{}, map[rrset.Key]status.Verdict{}
	for key, reason := range r.reasons {
		out.Unsupported[key] = status.CannotHold("DNSProvider "+r.backend.Name, reason)
	}
	for key := range r.lacking.Keys() {
		out.Unprogrammed[key] = r.lacks(key, paused)
	}
	for _, c := range r.lacking.Conflicts {
		out.Unprogrammed[c.Want.Key] = status.InTheWayOf("DNSProvider "+r.backend.Name, c.Want.Key, c.Foreign)
	}
	if paused {
		out.Pending = r.lacking.Len()
	}
	for set := range r.seen.Content.All() {
		if _, declared := r.want.Get(set.Key); !declared && !r.seen.Ours(set.Key) {
			out.Foreign++
			out.ForeignSample = rrset.InsertFirst(out.ForeignSample, maxSample, set.Key)
		}
	}
}

func (r *run) lacks(key rrset.Key, paused bool) status.Verdict {
	server := "DNSProvider " + r.backend.Name
	if paused {
		return status.OnlyWatched(server, key)
	}
	if err := r.refused[key]; err != nil {
		return status.RefusedBy(server, err)
	}
	return status.ChangedByOthers(server, key)
}

// Clear deletes what is ours of a zone from a backend.
func Clear(ctx context.Context, b Named, zone string) error {
	out := Sync(ctx, b, zone, plan.Map{}, false)
	if out.Err != nil {
		return out.Err
	}
	if keys := slices.Collect(maps.Keys(out.Unprogrammed)); len(keys) > 0 {
		return fmt.Errorf("%d RRsets are still there, among them %s", len(keys), keys[0])
	}
	return nil
}

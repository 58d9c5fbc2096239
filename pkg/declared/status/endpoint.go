package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// EndpointFacts is what is known about a DNSEndpoint at one moment, from every zone that takes any of its endpoints.
type EndpointFacts struct {
	// Generation of the object that was evaluated.
	Generation int64
	// Zones are the zones that take endpoints of the object, by namespace and name.
	Zones []EndpointZoneFacts
	// Unplaced are the endpoints that no zone takes; only their Index and RRset matter.
	Unplaced []EndpointOutcome
	// Leaving are zones that take no endpoint and may hold data of the object, with what that may be. They are in the status even if
	// somebody else has replaced it.
	Leaving []v1alpha1.EndpointZone
	// Left reports whether a zone in the previous status no longer holds data of the object.
	Left func(v1alpha1.EndpointZone) bool
}

// EndpointZoneFacts is what is known from one zone about the endpoints that it takes.
type EndpointZoneFacts struct {
	Namespace, Name, ZoneName string
	// Judged is false while the zone has not evaluated the object's endpoints.
	Judged bool
	// Endpoints holds one outcome for each endpoint that the zone takes.
	Endpoints []EndpointOutcome
	// Programmed says whether the zone as a whole is programmed, and if not, why.
	Programmed Verdict
	// Stuck reports whether the servers could not be brought to what is declared for an RRset, written as in
	// EndpointOutcome, be it other data or none.
	Stuck func(rrset string) bool
}

// EndpointOutcome is the state of one endpoint.
type EndpointOutcome struct {
	// Index in spec.endpoints.
	Index int
	// RRset is the owner name and the type: "www.example.com./A".
	RRset                string
	Accepted, Programmed Verdict
}

// Endpoint computes the status of a DNSEndpoint, a summary over its zones. status.zones lists what the servers were seen to hold: an
// RRset remains there until a pass has seen that it is gone.
func Endpoint(prev v1alpha1.DNSEndpointStatus, f EndpointFacts, now time.Time) v1alpha1.DNSEndpointStatus {
	next := *prev.DeepCopy()
	if prev.ObservedGeneration == f.Generation && meta.IsStatusConditionTrue(prev.Conditions, Programmed) {
		f.Zones = keepProgrammed(f.Zones)
	}
	next.ObservedGeneration = f.Generation
	next.Zones = endpointZones(prev.Zones, f)
	programmed := f.programmed()
	if programmed.Holds() && !isProgrammed(prev, f.Generation) {
		next.LastSyncTime = wholeSeconds(now)
	}
	accepted := f.accepted()
	Set(&next.Conditions, Accepted, accepted, f.Generation, now)
	Set(&next.Conditions, Programmed, programmed, f.Generation, now)
	Set(&next.Conditions, Ready, programmed, f.Generation, now)
	// A zone for the name may come.
	setStalled(&next.Conditions, accepted.Status == metav1.ConditionFalse && accepted.Reason != NoMatchingZone, accepted, f.Generation, now)
	return next
}

// isProgrammed reports whether a status says that a generation is programmed.
func isProgrammed(s v1alpha1.DNSEndpointStatus, generation int64) bool {
	c := meta.FindStatusCondition(s.Conditions, Programmed)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation && s.LastSyncTime != nil
}

// keepProgrammed keeps endpoints programmed while a primary of their zone is unreachable: nothing new is known about
// them, and the zone's status reports the primary.
func keepProgrammed(zones []EndpointZoneFacts) []EndpointZoneFacts {
	kept := slices.Clone(zones)
	for i := range kept {
		if kept[i].Programmed.Reason != PrimaryFailed {
			continue
		}
		kept[i].Endpoints = slices.Clone(kept[i].Endpoints)
		for j := range kept[i].Endpoints {
			if e := &kept[i].Endpoints[j]; e.Accepted.Holds() {
				e.Programmed = True(Programmed, "")
			}
		}
	}
	return kept
}

// waitingZone is about the first zone that has not evaluated the endpoints that it takes; false if there is none.
func (f EndpointFacts) waitingZone() (Verdict, bool) {
	for _, z := range f.Zones {
		switch {
		case z.Judged:
		case z.Programmed.Reason != "" && !z.Programmed.Holds():
			return Unknown(z.Programmed.Reason, fmt.Sprintf("zone %s: %s", z.ZoneName, z.Programmed.Message)), true
		default:
			return Unknown(Pending, fmt.Sprintf("zone %s has not been evaluated yet", z.ZoneName)), true
		}
	}
	return Verdict{}, false
}

// allOutcomes lists the outcomes of all endpoints in the order of the spec, including those that no zone takes.
func (f EndpointFacts) allOutcomes() []EndpointOutcome {
	var all []EndpointOutcome
	for _, o := range f.Unplaced {
		o.Accepted = False(NoMatchingZone, fmt.Sprintf(
			"no DNSZone of this namespace contains this name, and no other one admits it by its annotation %s", v1beta1.AllowEndpointNamespacesAnnotation))
		o.Programmed = o.Accepted
		all = append(all, o)
	}
	for _, z := range f.Zones {
		all = append(all, z.Endpoints...)
	}
	slices.SortStableFunc(all, func(a, b EndpointOutcome) int { return cmp.Compare(a.Index, b.Index) })
	return all
}

func (f EndpointFacts) accepted() Verdict {
	if v, waits := f.waitingZone(); waits {
		return v
	}
	all := f.allOutcomes()
	if v, refused := firstFailing(all, func(o EndpointOutcome) Verdict { return o.Accepted }, "accepted"); refused {
		return v
	}
	if len(all) == 0 {
		return True(Accepted, "there are no endpoints")
	}
	return True(Accepted, fmt.Sprintf("%s %s part of %s", CountOf(len(all), "endpoint"), isOrAre(len(all)), f.zoneNames()))
}

func (f EndpointFacts) programmed() Verdict {
	if v, waits := f.waitingZone(); waits {
		return v
	}
	all := f.allOutcomes()
	if v, failed := firstFailing(all, func(o EndpointOutcome) Verdict { return o.Programmed }, "programmed"); failed {
		return v
	}
	if len(all) == 0 {
		return True(Programmed, "there are no endpoints")
	}
	return True(Programmed, fmt.Sprintf("every primary of %s answers with %s", f.zoneNames(), CountOf(len(all), "endpoint")))
}

// firstFailing is about the endpoints for which `of` does not hold: the message of the first, and how many there are; false if there are
// none.
func firstFailing(all []EndpointOutcome, of func(EndpointOutcome) Verdict, what string) (Verdict, bool) {
	var first *EndpointOutcome
	count := 0
	for i := range all {
		if of(all[i]).Holds() {
			continue
		}
		if count++; first == nil {
			first = &all[i]
		}
	}
	if first == nil {
		return Verdict{}, false
	}
	v := of(*first)
	if field := fmt.Sprintf("spec.endpoints[%d]", first.Index); !strings.HasPrefix(v.Message, field) {
		v.Message = fmt.Sprintf("%s %s: %s", field, first.RRset, v.Message)
	}
	if len(all) > 1 {
		v.Message = fmt.Sprintf("%d of %d endpoints are %s; %s", len(all)-count, len(all), what, v.Message)
	}
	return v, true
}

func (f EndpointFacts) zoneNames() string {
	var names []string
	for _, z := range f.Zones {
		names = append(names, z.ZoneName)
	}
	if len(names) == 1 {
		return "zone " + names[0]
	}
	return "zones " + strings.Join(names, ", ")
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// endpointZones list what each zone holds. A zone that could not be observed, or that takes nothing any more but has not released its
// data yet, still holds what it held.
func endpointZones(prev []v1alpha1.EndpointZone, f EndpointFacts) []v1alpha1.EndpointZone {
	var next []v1alpha1.EndpointZone
	taken := map[[2]string]bool{}
	for _, z := range f.Zones {
		taken[[2]string{z.Namespace, z.Name}] = true
		entry := v1alpha1.EndpointZone{Namespace: z.Namespace, Name: z.Name, ZoneName: z.ZoneName}
		if i := slices.IndexFunc(prev, func(p v1alpha1.EndpointZone) bool { return p.Namespace == z.Namespace && p.Name == z.Name }); i >= 0 {
			entry.RRsets = prev[i].RRsets
		}
		if z.Judged && z.Programmed.Holds() {
			entry.RRsets = z.heldRRsets(entry.RRsets)
		}
		if len(entry.RRsets) > 0 {
			next = append(next, entry)
		}
	}
	for _, leaving := range f.Leaving {
		if !slices.ContainsFunc(prev, func(p v1alpha1.EndpointZone) bool { return p.Namespace == leaving.Namespace && p.Name == leaving.Name }) {
			prev = append(slices.Clone(prev), leaving)
		}
	}
	for _, p := range prev {
		if !taken[[2]string{p.Namespace, p.Name}] && (f.Left == nil || !f.Left(p)) {
			next = append(next, p)
		}
	}
	slices.SortFunc(next, func(a, b v1alpha1.EndpointZone) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return next
}

// heldRRsets are the RRsets that the servers hold of an object: those that are programmed, and those that they held before and that a
// pass could not change.
func (z EndpointZoneFacts) heldRRsets(before []string) []string {
	var rrsets []string
	for _, o := range z.Endpoints {
		if o.Accepted.Holds() && o.Programmed.Holds() {
			rrsets = append(rrsets, o.RRset)
		}
	}
	for _, r := range before {
		if z.Stuck != nil && z.Stuck(r) {
			rrsets = append(rrsets, r)
		}
	}
	slices.Sort(rrsets)
	return slices.Compact(rrsets)
}

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// takes is a zone that has judged the endpoints that it takes.
func takes(name string, outcomes ...EndpointOutcome) EndpointZoneFacts {
	return EndpointZoneFacts{
		Namespace: "team", Name: name, ZoneName: name + ".com", Judged: true, Endpoints: outcomes, Programmed: True(ReconcileSucceeded, ""),
		Stuck: func(string) bool { return false },
	}
}

func served(index int, rrset string) EndpointOutcome {
	return EndpointOutcome{Index: index, RRset: rrset, Accepted: True(Accepted, ""), Programmed: True(Programmed, "")}
}

func refused(index int, rrset string, v Verdict) EndpointOutcome {
	return EndpointOutcome{Index: index, RRset: rrset, Accepted: v, Programmed: v}
}

func unserved(index int, rrset, words string) EndpointOutcome {
	return EndpointOutcome{Index: index, RRset: rrset, Accepted: True(Accepted, ""), Programmed: False(ReconcileFailed, words)}
}

func holds(name string, rrsets ...string) v1alpha1.EndpointZone {
	return v1alpha1.EndpointZone{Namespace: "team", Name: name, ZoneName: name + ".com", RRsets: rrsets}
}

func away(z EndpointZoneFacts) EndpointZoneFacts {
	z.Programmed = False(PrimaryFailed, "connection refused")
	for i := range z.Endpoints {
		z.Endpoints[i].Programmed = z.Programmed
	}
	return z
}

// told is a status with conditions as Endpoint makes them.
func told(generation int64, accepted, programmed Verdict, zones ...v1alpha1.EndpointZone) v1alpha1.DNSEndpointStatus {
	s := v1alpha1.DNSEndpointStatus{ObservedGeneration: generation, Zones: zones}
	Set(&s.Conditions, Accepted, accepted, generation, early)
	Set(&s.Conditions, Programmed, programmed, generation, early)
	Set(&s.Conditions, Ready, programmed, generation, early)
	if accepted.Reason == Conflict || accepted.Reason == Invalid {
		Set(&s.Conditions, Stalled, True(accepted.Reason, accepted.Message), generation, early)
	}
	if programmed.Holds() {
		s.LastSyncTime = &metav1.Time{Time: early}
	}
	return s
}

func TestEndpoint(t *testing.T) {
	www, mail := "www.a.com./A", "mail.b.com./A"
	fine := told(1, True(Accepted, "2 endpoints are part of zones a.com, b.com"),
		True(Programmed, "every primary of zones a.com, b.com answers with 2 endpoints"), holds("a", www), holds("b", mail))
	stuck := takes("a", unserved(0, www, "dns-0: REFUSED"))
	stuck.Stuck = func(r string) bool { return r == www || r == "old.a.com./A" }
	silent := EndpointZoneFacts{Namespace: "team", Name: "b", ZoneName: "b.com"}
	cases := map[string]struct {
		prev  v1alpha1.DNSEndpointStatus
		facts EndpointFacts
		want  v1alpha1.DNSEndpointStatus
	}{
		"two zones serve it": {
			facts: EndpointFacts{Generation: 1, Zones: []EndpointZoneFacts{takes("a", served(0, www)), takes("b", served(1, mail))}},
			want:  fine,
		},
		"one zone serves its only endpoint": {
			facts: EndpointFacts{Generation: 1, Zones: []EndpointZoneFacts{takes("a", served(0, www))}},
			want: told(1, True(Accepted, "1 endpoint is part of zone a.com"),
				True(Programmed, "every primary of zone a.com answers with 1 endpoint"), holds("a", www)),
		},
		"first seen": {
			facts: EndpointFacts{Generation: 1, Zones: []EndpointZoneFacts{takes("a", served(0, www)), silent}},
			want: told(1, Unknown(Pending, "zone b.com has not been evaluated yet"),
				Unknown(Pending, "zone b.com has not been evaluated yet"), holds("a", www)),
		},
		"no zone takes it": {
			facts: EndpointFacts{Generation: 1, Unplaced: []EndpointOutcome{{Index: 0, RRset: "www.c.com/A"}}},
			want: told(1, False(NoMatchingZone, "spec.endpoints[0] www.c.com/A: no DNSZone of this namespace contains this name, and no other one admits it by its annotation bindy.firestoned.io/allow-endpoint-namespaces"),
				False(NoMatchingZone, "spec.endpoints[0] www.c.com/A: no DNSZone of this namespace contains this name, and no other one admits it by its annotation bindy.firestoned.io/allow-endpoint-namespaces")),
		},
		"one is in conflict": {
			facts: EndpointFacts{Generation: 1, Zones: []EndpointZoneFacts{
				takes("a", served(0, www), refused(2, "x.a.com./CNAME", False(Conflict, "x.a.com. already has A data, declared by ARecord team/x, which is older"))),
				takes("b", served(1, mail))}},
			want: told(1, False(Conflict, "2 of 3 endpoints are accepted; spec.endpoints[2] x.a.com./CNAME: x.a.com. already has A data, declared by ARecord team/x, which is older"),
				False(Conflict, "2 of 3 endpoints are programmed; spec.endpoints[2] x.a.com./CNAME: x.a.com. already has A data, declared by ARecord team/x, which is older"),
				holds("a", www), holds("b", mail)),
		},
		"a message that names the field": {
			facts: EndpointFacts{Generation: 1, Zones: []EndpointZoneFacts{takes("a", refused(0, www, False(Invalid, "spec.endpoints[0].targets[0]: no address")))}},
			want:  told(1, False(Invalid, "spec.endpoints[0].targets[0]: no address"), False(Invalid, "spec.endpoints[0].targets[0]: no address")),
		},
		"the server refused it": {
			prev:  told(1, True(Accepted, ""), True(Programmed, ""), holds("a", "old.a.com./A", www)),
			facts: EndpointFacts{Generation: 2, Zones: []EndpointZoneFacts{stuck}},
			want: told(2, True(Accepted, "1 endpoint is part of zone a.com"),
				False(ReconcileFailed, "spec.endpoints[0] www.a.com./A: dns-0: REFUSED"), holds("a", "old.a.com./A", www)),
		},
		"an endpoint was removed": {
			prev:  fine,
			facts: EndpointFacts{Generation: 2, Zones: []EndpointZoneFacts{takes("a", served(0, www))}, Left: func(v1alpha1.EndpointZone) bool { return false }},
			want: told(2, True(Accepted, "1 endpoint is part of zone a.com"),
				True(Programmed, "every primary of zone a.com answers with 1 endpoint"), holds("a", www), holds("b", mail)),
		},
		"and its zone let go": {
			prev:  fine,
			facts: EndpointFacts{Generation: 2, Zones: []EndpointZoneFacts{takes("a", served(0, www))}, Left: func(z v1alpha1.EndpointZone) bool { return z.Name == "b" }},
			want: told(2, True(Accepted, "1 endpoint is part of zone a.com"),
				True(Programmed, "every primary of zone a.com answers with 1 endpoint"), holds("a", www)),
		},
		"a primary is away": {
			prev:  fine,
			facts: EndpointFacts{Generation: 1, Zones: []EndpointZoneFacts{away(takes("a", served(0, www))), takes("b", served(1, mail))}},
			want:  fine,
		},
		"a primary is away while it changes": {
			prev:  fine,
			facts: EndpointFacts{Generation: 2, Zones: []EndpointZoneFacts{away(takes("a", served(0, www))), takes("b", served(1, mail))}},
			want: told(2, True(Accepted, "2 endpoints are part of zones a.com, b.com"),
				False(PrimaryFailed, "1 of 2 endpoints are programmed; spec.endpoints[0] www.a.com./A: connection refused"), holds("a", www), holds("b", mail)),
		},
		"somebody replaced the status while a zone lets go": {
			prev: v1alpha1.DNSEndpointStatus{ObservedGeneration: 2},
			facts: EndpointFacts{Generation: 2, Zones: []EndpointZoneFacts{takes("a", served(0, www))}, Leaving: []v1alpha1.EndpointZone{holds("b", mail)},
				Left: func(v1alpha1.EndpointZone) bool { return false }},
			want: told(2, True(Accepted, "1 endpoint is part of zone a.com"),
				True(Programmed, "every primary of zone a.com answers with 1 endpoint"), holds("a", www), holds("b", mail)),
		},
		"it declares nothing": {
			facts: EndpointFacts{Generation: 1},
			want:  told(1, True(Accepted, "there are no endpoints"), True(Programmed, "there are no endpoints")),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Endpoint(c.prev, c.facts, early)
			if c.want.LastSyncTime == nil {
				c.want.LastSyncTime = c.prev.LastSyncTime
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if again := Endpoint(got, c.facts, early.Add(time.Hour)); cmp.Diff(got, again) != "" {
				t.Errorf("the same facts an hour later changed the status:\n%s", cmp.Diff(got, again))
			}
		})
	}
}

func TestEndpointKeepsTimesOfConditionsThatStay(t *testing.T) {
	f := EndpointFacts{Generation: 1, Zones: []EndpointZoneFacts{takes("a", unserved(0, "www.a.com./A", "REFUSED"))}}
	first := Endpoint(v1alpha1.DNSEndpointStatus{}, f, early)
	f.Zones = []EndpointZoneFacts{takes("a", served(0, "www.a.com./A"))}
	second := Endpoint(first, f, late)
	accepted, programmed := meta.FindStatusCondition(second.Conditions, Accepted), meta.FindStatusCondition(second.Conditions, Programmed)
	if !accepted.LastTransitionTime.Time.Equal(early) || !programmed.LastTransitionTime.Time.Equal(late) || programmed.Status != metav1.ConditionTrue {
		t.Errorf("conditions are %+v", second.Conditions)
	}
}

// The last sync is when the data of a generation was programmed, not when a status was written.
func TestEndpointLastSync(t *testing.T) {
	facts := func(generation int64, o EndpointOutcome) EndpointFacts {
		return EndpointFacts{Generation: generation, Zones: []EndpointZoneFacts{takes("a", o)}}
	}
	s := Endpoint(v1alpha1.DNSEndpointStatus{}, facts(1, unserved(0, "www.a.com./A", "REFUSED")), early)
	if s.LastSyncTime != nil {
		t.Errorf("a sync at %v of what is not programmed", s.LastSyncTime)
	}
	s = Endpoint(s, facts(1, served(0, "www.a.com./A")), late)
	later := Endpoint(s, facts(1, served(0, "www.a.com./A")), late.Add(time.Hour))
	if !s.LastSyncTime.Time.Equal(late) || !later.LastSyncTime.Time.Equal(late) {
		t.Errorf("synced at %v, then at %v, want %v", s.LastSyncTime, later.LastSyncTime, late)
	}
	if next := Endpoint(s, facts(2, served(0, "www.a.com./A")), late.Add(time.Hour)); !next.LastSyncTime.Time.Equal(late.Add(time.Hour)) {
		t.Errorf("another generation is synced at %v", next.LastSyncTime)
	}
}

package syncstatus

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// holds is the answer of a server that holds exactly what is desired, but for the changes.
func holds(desired *source.Zone, serial uint32, changes ...rrset.RRset) observe.Observation {
	soa := desired.SOA
	soa.Serial = serial
	content := map[rrset.Key]rrset.RRset{}
	for s := range desired.All() {
		content[s.Key] = s
	}
	for _, c := range changes {
		content[c.Key] = c
	}
	var sets []rrset.RRset
	for _, s := range content {
		if len(s.Rdata) > 0 {
			sets = append(sets, s)
		}
	}
	return observe.Observation{At: asked, AA: true, Authoritative: true, Serial: serial, SOA: soa, Mirror: observe.NewMirror(desired.Name, soa, sets...)}
}

type zoneOutcome struct {
	Phase   syncv1.Phase
	States  []syncv1.ServerState
	Counts  []syncv1.RecordCounts
	Summary syncv1.Summary
	Failure string
}

func TestZoneStatus(t *testing.T) {
	other := rrset.RRset{Key: wwwA, TTL: 3600, Rdata: []string{"192.0.2.9"}}
	absent := rrset.RRset{Key: wwwA}
	foreign := rrset.RRset{Key: rrset.Key{Name: "old.example.com.", Type: dns.TypeTXT}, TTL: 60, Rdata: []string{`"x"`}}
	signed := rrset.RRset{Key: rrset.Key{Name: "example.com.", Type: dns.TypeDNSKEY}, TTL: 60, Rdata: []string{"x"}}
	states := func(s ...syncv1.ServerState) []syncv1.ServerState { return s }
	all := syncv1.RecordCounts{InSync: 2} // www A and the apex NS
	one := syncv1.RecordCounts{InSync: 1, OutOfSync: 1}
	for name, tc := range map[string]struct {
		zone    func(*v1beta1.DNSZone)
		record  func(*v1beta1.ARecord)
		problem *Problem
		answers func(*source.Zone) []observe.Observation
		want    zoneOutcome
	}{
		"in sync": {
			answers: func(d *source.Zone) []observe.Observation { return []observe.Observation{holds(d, 7), holds(d, 7)} },
			want: zoneOutcome{syncv1.PhaseInSync, states("InSync", "InSync"), []syncv1.RecordCounts{all, all},
				syncv1.Summary{Servers: 2, InSync: 2, Records: 2}, ""},
		},
		"a secondary behind": {
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{holds(d, 7), holds(d, 6, other)}
			},
			want: zoneOutcome{syncv1.PhasePropagating, states("InSync", "Stale"), []syncv1.RecordCounts{all, one},
				syncv1.Summary{Servers: 2, InSync: 1, Records: 2, RecordsOutOfSync: 1}, ""},
		},
		"a record not programmed yet": {
			record: unprogrammed,
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{holds(d, 7, other), holds(d, 7, other)}
			},
			want: zoneOutcome{syncv1.PhasePropagating, states("Stale", "Stale"), []syncv1.RecordCounts{one, one},
				syncv1.Summary{Servers: 2, Records: 2, RecordsOutOfSync: 1}, ""},
		},
		"a record lost": {
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{holds(d, 7, absent), holds(d, 7)}
			},
			want: zoneOutcome{syncv1.PhaseOutOfSync, states("Missing", "InSync"), []syncv1.RecordCounts{one, all},
				syncv1.Summary{Servers: 2, InSync: 1, Records: 2, RecordsOutOfSync: 1}, ""},
		},
		"what nobody declares is counted, and DNSSEC's own is not": {
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{holds(d, 7, foreign, signed), holds(d, 7)}
			},
			want: zoneOutcome{syncv1.PhaseInSync, states("InSync", "InSync"), []syncv1.RecordCounts{{InSync: 2, Undeclared: 1}, all},
				syncv1.Summary{Servers: 2, InSync: 2, Records: 2}, ""},
		},
		"a record that is still to leave": {
			record: func(r *v1beta1.ARecord) { r.DeletionTimestamp = &metav1.Time{Time: asked} },
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{holds(d, 7, other), holds(d, 7, other)}
			},
			want: zoneOutcome{syncv1.PhasePropagating, states("Stale", "Stale"), []syncv1.RecordCounts{one, one},
				syncv1.Summary{Servers: 2, Records: 1, RecordsOutOfSync: 1}, ""},
		},
		"a record that the guard keeps from leaving": {
			zone:   func(z *v1beta1.DNSZone) { z.Status.HeldPlan = "f00d" },
			record: func(r *v1beta1.ARecord) { r.DeletionTimestamp = &metav1.Time{Time: asked} },
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{holds(d, 7, other), holds(d, 6, other)}
			},
			want: zoneOutcome{syncv1.PhaseOutOfSync, states("Held", "Stale"), []syncv1.RecordCounts{one, one},
				syncv1.Summary{Servers: 2, Records: 1, RecordsOutOfSync: 1}, ""},
		},
		"foreign data that the guard keeps from being pruned": {
			zone: func(z *v1beta1.DNSZone) { z.Status.HeldPlan = "f00d" },
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{holds(d, 7, foreign), holds(d, 7)}
			},
			want: zoneOutcome{syncv1.PhaseOutOfSync, states("Held", "Held"), []syncv1.RecordCounts{{InSync: 2, Undeclared: 1}, all},
				syncv1.Summary{Servers: 2, Records: 2}, ""},
		},
		"another start of authority": {
			answers: func(d *source.Zone) []observe.Observation {
				o := holds(d, 7)
				soa := o.SOA
				soa.Minimum++
				o.Mirror = observe.NewMirror(d.Name, soa, rrset.RRset{Key: wwwA, TTL: 3600, Rdata: []string{"192.0.2.1"}}, apexNS(d))
				return []observe.Observation{holds(d, 7), o}
			},
			want: zoneOutcome{syncv1.PhaseOutOfSync, states("InSync", "Divergent"), []syncv1.RecordCounts{all, all},
				syncv1.Summary{Servers: 2, InSync: 1, Records: 2}, ""},
		},
		"one lost and one changed is no loss alone": {
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{holds(d, 7), holds(d, 7, absent, rrset.RRset{Key: apexNS(d).Key, TTL: 60, Rdata: []string{"rogue.example.net."}})}
			},
			want: zoneOutcome{syncv1.PhaseOutOfSync, states("InSync", "Divergent"), []syncv1.RecordCounts{all, {OutOfSync: 2}},
				syncv1.Summary{Servers: 2, InSync: 1, Records: 2, RecordsOutOfSync: 2}, ""},
		},
		"the zone is not programmed yet": {
			zone: func(z *v1beta1.DNSZone) { z.Generation = 2 },
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{holds(d, 7, other), holds(d, 7, other)}
			},
			want: zoneOutcome{syncv1.PhasePropagating, states("Stale", "Stale"), []syncv1.RecordCounts{one, one},
				syncv1.Summary{Servers: 2, Records: 2, RecordsOutOfSync: 1}, ""},
		},
		"the servers refuse the zone's updates": {
			zone: refused, record: unprogrammed,
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{holds(d, 7, other), holds(d, 7, other)}
			},
			want: zoneOutcome{syncv1.PhaseFailed, states("Stale", "Stale"), []syncv1.RecordCounts{one, one},
				syncv1.Summary{Servers: 2, Records: 2, RecordsOutOfSync: 1}, "Refused"},
		},
		"the servers refuse updates that are not needed": {
			zone:    refused,
			answers: func(d *source.Zone) []observe.Observation { return []observe.Observation{holds(d, 7), holds(d, 7)} },
			want: zoneOutcome{syncv1.PhaseInSync, states("InSync", "InSync"), []syncv1.RecordCounts{all, all},
				syncv1.Summary{Servers: 2, InSync: 2, Records: 2}, ""},
		},
		"they refused those of a former specification": {
			zone: func(z *v1beta1.DNSZone) { refused(z); z.Generation++ }, record: unprogrammed,
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{holds(d, 7, other), holds(d, 7, other)}
			},
			want: zoneOutcome{syncv1.PhasePropagating, states("Stale", "Stale"), []syncv1.RecordCounts{one, one},
				syncv1.Summary{Servers: 2, Records: 2, RecordsOutOfSync: 1}, ""},
		},
		"a duplicate": {
			problem: &Problem{"DuplicateZone", "declared twice"},
			answers: func(d *source.Zone) []observe.Observation { return []observe.Observation{holds(d, 7), silent()} },
			want: zoneOutcome{syncv1.PhaseFailed, states("InSync", "Unreachable"), []syncv1.RecordCounts{all},
				syncv1.Summary{Servers: 2, InSync: 1, Unreachable: 1, Records: 2}, "DuplicateZone"},
		},
		"being deleted": {
			zone: func(z *v1beta1.DNSZone) { z.DeletionTimestamp = &metav1.Time{Time: asked} },
			answers: func(d *source.Zone) []observe.Observation {
				return []observe.Observation{answers(dns.RcodeRefused), holds(d, 7)}
			},
			want: zoneOutcome{syncv1.PhasePropagating, states("InSync", "Stale"), nil,
				syncv1.Summary{Servers: 2, InSync: 1, Records: 2}, ""},
		},
		"being deleted, and one does not hand it over": {
			zone: func(z *v1beta1.DNSZone) { z.DeletionTimestamp = &metav1.Time{Time: asked} },
			answers: func(*source.Zone) []observe.Observation {
				return []observe.Observation{untransferred(&wire.Error{Op: "transfer", Rcode: dns.RcodeRefused}), untransferred(&wire.Error{Op: "transfer"})}
			},
			want: zoneOutcome{syncv1.PhasePropagating, states("Stale", "Stale"), nil, syncv1.Summary{Servers: 2, Records: 2}, ""},
		},
		"being deleted, and its parent is served": {
			zone: func(z *v1beta1.DNSZone) { z.DeletionTimestamp = &metav1.Time{Time: asked} },
			answers: func(*source.Zone) []observe.Observation {
				return []observe.Observation{answers(dns.RcodeNameError), answers(dns.RcodeSuccess)}
			},
			want: zoneOutcome{syncv1.PhaseInSync, states("InSync", "InSync"), nil, syncv1.Summary{Servers: 2, InSync: 2, Records: 2}, ""},
		},
		"being deleted, and it cannot be known": {
			zone: func(z *v1beta1.DNSZone) { z.DeletionTimestamp = &metav1.Time{Time: asked} },
			answers: func(*source.Zone) []observe.Observation {
				return []observe.Observation{answers(dns.RcodeServerFailure), silent()}
			},
			want: zoneOutcome{syncv1.PhaseOutOfSync, states("NotLoaded", "Unreachable"), nil, syncv1.Summary{Servers: 2, Unreachable: 1, Records: 2}, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			z := testZone()
			if tc.zone != nil {
				tc.zone(z)
			}
			r := testRecord(z)
			if tc.record != nil {
				tc.record(r)
			}
			desired := build(t, z, r)
			s := note(Evaluate(NewDesiredState(z, desired, []source.Object{r}, tc.problem), servers(), tc.answers(desired), asked.Add(time.Second), History{}).ZoneStatus(nil))
			got := zoneOutcome{Phase: s.Status.Phase, Summary: s.Summary, Failure: s.Status.FailureReason}
			for _, row := range s.Servers {
				got.States = append(got.States, row.State)
				if row.Records != nil {
					got.Counts = append(got.Counts, *row.Records)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// refused is a zone whose updates a primary refuses.
func refused(z *v1beta1.DNSZone) {
	z.Status.ObservedGeneration = z.Generation
	z.Status.FailureReason, z.Status.FailureMessage = "Refused", "1 of 1 primaries cannot be programmed; primary-0: update: answered REFUSED"
}

// An object says why its change does not get through, in the server's words; one of another namespace only that it does not.
func TestObjectsFailWithTheirZone(t *testing.T) {
	z := testZone()
	refused(z)
	r := testRecord(z)
	unprogrammed(r)
	desired := build(t, z, r)
	answers := []observe.Observation{holds(desired, 7, rrset.RRset{Key: wwwA}), holds(desired, 7, rrset.RRset{Key: wwwA})}
	s := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), servers(), answers, asked.Add(time.Second), History{})
	got := s.RecordStatus(r).Status
	if got.Phase != syncv1.PhaseFailed || got.FailureReason != "Refused" || got.FailureMessage != z.Status.FailureMessage {
		t.Errorf("the record is %s: %s: %s", got.Phase, got.FailureReason, got.FailureMessage)
	}
	if c := s.zoneFailure("elsewhere"); c.Reason != "Refused" || c.Message != hiddenProblem {
		t.Errorf("readers of another namespace see %q", c.Message)
	}
}

// Beside what a server has of an RRset that differs, a zone tells what it should have; the SOA by any serial.
func TestZoneTellsWhatIsDeclared(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	desired := build(t, z, r)
	lost := holds(desired, 7, rrset.RRset{Key: wwwA})
	other := holds(desired, 7)
	soa := other.SOA
	soa.Minimum++
	other.Mirror = observe.NewMirror(desired.Name, soa, apexNS(desired),
		rrset.RRset{Key: wwwA, TTL: 60, Rdata: []string{"192.0.2.9"}})
	s := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), servers(), []observe.Observation{lost, other}, asked, History{}).ZoneStatus(nil)
	a, _ := desired.Get(wwwA)
	declared := desired.SOA
	declared.Serial = 7
	want := []syncv1.RRset{
		{Name: "www.example.com.", Type: "A", TTL: new(int64(a.TTL)), Rdata: a.Rdata},
		{Name: "example.com.", Type: "SOA", TTL: new(int64(declared.TTL)), Rdata: []string{declared.Rdata()}},
	}
	if diff := cmp.Diff(want, s.RRsets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	steady := holds(desired, 7)
	s = Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), servers(), []observe.Observation{steady, steady}, asked, History{}).ZoneStatus(nil)
	if len(s.RRsets) != 0 {
		t.Errorf("in sync, and shows %v", s.RRsets)
	}
}

func apexNS(d *source.Zone) rrset.RRset {
	s, _ := d.Get(rrset.Key{Name: d.Name, Type: dns.TypeNS})
	return s
}

func TestInstance(t *testing.T) {
	i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "primary-0"}}
	failed := i.DeepCopy()
	failed.Status.FailureReason, failed.Status.FailureMessage = "ConfigurationInvalid", "no such policy"
	down := servers()
	down[1].PodReady, down[1].Message = false, "CrashLoopBackOff"
	for name, tc := range map[string]struct {
		instance *v1beta1.Bind9Instance
		servers  []observe.Server
		phase    syncv1.Phase
		ready    string
		failure  string
	}{
		"ready":            {i, servers(), syncv1.PhaseInSync, "AllReady", ""},
		"a pod is down":    {i, down, syncv1.PhaseOutOfSync, "PartiallyReady", ""},
		"nothing is there": {i, nil, syncv1.PhaseUnknown, "NoChildren", ""},
		"failed":           {failed, down, syncv1.PhaseFailed, "PartiallyReady", "ConfigurationInvalid"},
		"healed":           {failed, servers(), syncv1.PhaseInSync, "AllReady", ""},
	} {
		s := note(InstanceStatus(tc.instance, tc.servers, nil, asked))
		if s.Status.Phase != tc.phase || s.Status.Conditions[0].Reason != tc.ready || s.Status.FailureReason != tc.failure {
			t.Errorf("%s: %s, %s, %q, want %s, %s, %q", name, s.Status.Phase, s.Status.Conditions[0].Reason, s.Status.FailureReason,
				tc.phase, tc.ready, tc.failure)
		}
		// Whoever waits for all rows of a namespace waits for one condition type.
		ready := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionReady)
		propagated := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionPropagated)
		if ready == nil || propagated == nil || ready.Status != propagated.Status {
			t.Errorf("%s: Ready is %v, Propagated %v", name, ready, propagated)
		}
	}
}

// A record of a zone that is held says how to confirm the plan if its own change is held back; one that is on its way is on its way.
func TestHeldZoneSaysSo(t *testing.T) {
	z := testZone(func(z *v1beta1.DNSZone) { z.Status.HeldPlan = "f00d" })
	r := testRecord(z)
	unprogrammed(r)
	desired := build(t, z, r)
	old := holds(desired, 7, rrset.RRset{Key: wwwA, TTL: 3600, Rdata: []string{"192.0.2.9"}})
	verdict := func() *syncv1.SyncStatus {
		return Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), servers(), []observe.Observation{old, old}, asked.Add(time.Second), History{}).RecordStatus(r)
	}
	if s := verdict(); s.Servers[0].State != syncv1.StateStale || s.Status.Phase != syncv1.PhasePropagating {
		t.Errorf("on its way: %s, %s", s.Servers[0].State, s.Status.Phase)
	}
	r.Status.Conditions = []metav1.Condition{{Type: "Programmed", Status: metav1.ConditionFalse, Reason: "Held", ObservedGeneration: r.Generation}}
	s := verdict()
	if s.Servers[0].State != syncv1.StateHeld || s.Status.Phase != syncv1.PhaseOutOfSync || s.Status.InSync {
		t.Errorf("held back: %s, %s", s.Servers[0].State, s.Status.Phase)
	}
	propagated := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionPropagated)
	if want := "bindy.firestoned.io/confirm=f00d"; propagated.Reason != "Held" || !strings.HasSuffix(propagated.Message, want) {
		t.Errorf("%s: %s", propagated.Reason, propagated.Message)
	}
}

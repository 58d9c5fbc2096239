package syncstatus

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func at(dnsName, rrtype string, targets ...string) *v1alpha1.Endpoint {
	return &v1alpha1.Endpoint{DNSName: dnsName, RecordType: rrtype, Targets: targets}
}

// testEndpoint has a name in each of two zones, both programmed.
func testEndpoint() *v1alpha1.DNSEndpoint {
	return &v1alpha1.DNSEndpoint{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "web", UID: "web", Generation: 2, CreationTimestamp: metav1.NewTime(asked)},
		Spec: v1alpha1.DNSEndpointSpec{Endpoints: []*v1alpha1.Endpoint{
			at("www.example.com", "A", "192.0.2.1"), at("www.example.org", "A", "192.0.2.1"),
		}},
		Status: v1alpha1.DNSEndpointStatus{ObservedGeneration: 2, Zones: []v1alpha1.EndpointZone{
			{Namespace: "dns", Name: "example-com", ZoneName: "example.com", RRsets: []string{"www.example.com./A"}},
			{Namespace: "other", Name: "example-org", ZoneName: "example.org", RRsets: []string{"www.example.org./A"}},
		}},
	}
}

// otherZone is a zone of another namespace on the same servers.
func otherZone(z *v1beta1.DNSZone) {
	z.Namespace, z.Name, z.UID, z.Spec.ZoneName = "other", "example-org", "zone-2", "example.org"
}

func TestEndpoint(t *testing.T) {
	states := func(s ...syncv1.ServerState) []syncv1.ServerState { return s }
	four := states("InSync", "InSync", "InSync", "InSync")
	lags := []int64{0, 0, 0, 0}
	const accepted, inStep = "True Accepted", "True InSync"
	older := &v1beta1.CNAMERecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "alias", UID: "alias", CreationTimestamp: metav1.NewTime(asked.Add(-time.Hour))},
		Spec:       v1beta1.CNAMERecordSpec{RecordCommon: v1beta1.RecordCommon{Name: "www"}, Target: "mail"},
	}
	for name, tc := range map[string]struct {
		zones    []func(*v1beta1.DNSZone)
		endpoint func(*v1alpha1.DNSEndpoint)
		beside   source.Object
		problem  *Problem // of the second zone
		unplaced []int
		change   func(zone int, server int, o *observe.Observation)
		want     outcome
		zone     string
		says     string // in the message of the phase
		silent   string // in no message
	}{
		"every server of both zones serves it": {
			want: outcome{syncv1.PhaseInSync, four, lags, accepted, inStep, inStep, ""}, zone: "example.com,example.org", says: "2 of 2 servers in sync",
		},
		"a secondary of one zone is behind": {
			change: func(zone, server int, o *observe.Observation) {
				if zone == 1 && server == 1 {
					*o = without(*o, 6)
				}
			},
			want: outcome{syncv1.PhasePropagating, states("InSync", "InSync", "InSync", "Stale"), []int64{0, 0, 0, 1}, accepted, inStep, "False Stale", ""},
			zone: "example.com,example.org", says: "1 of 2 servers in sync; Stale: secondary-0-0",
		},
		"not programmed in one zone yet": {
			endpoint: func(e *v1alpha1.DNSEndpoint) { e.Status.Zones = e.Status.Zones[:1] },
			change: func(zone, _ int, o *observe.Observation) {
				if zone == 1 {
					*o = without(*o, 7)
				}
			},
			want: outcome{syncv1.PhasePropagating, states("InSync", "InSync", "Stale", "Stale"), lags, accepted, "False Stale", "False Stale", ""},
			zone: "example.com,example.org", says: "0 of 2 servers in sync; Stale: primary-0-0, secondary-0-0",
		},
		"gone from one zone": {
			change: func(zone, _ int, o *observe.Observation) {
				if zone == 1 {
					*o = without(*o, 7)
				}
			},
			want: outcome{syncv1.PhaseOutOfSync, states("InSync", "InSync", "Missing", "Missing"), lags, accepted, "False Missing", "False Missing", ""},
			zone: "example.com,example.org",
		},
		"no zone": {
			zones: []func(*v1beta1.DNSZone){}, unplaced: []int{0, 1},
			want: outcome{syncv1.PhaseFailed, nil, nil, "False NoMatchingZone", "False NoMatchingZone", "False NoMatchingZone", "NoMatchingZone"},
			says: "spec.endpoints[0] www.example.com/A: no DNSZone",
		},
		"a zone for one of two": {
			zones: []func(*v1beta1.DNSZone){nil}, unplaced: []int{1},
			want: outcome{syncv1.PhaseFailed, states("InSync", "InSync"), []int64{0, 0}, "False NoMatchingZone", "False NoMatchingZone", "False NoMatchingZone", "NoMatchingZone"},
			zone: "example.com", says: "1 of 2 endpoints are accepted; spec.endpoints[1] www.example.org/A: no DNSZone",
		},
		"an invalid one": {
			endpoint: func(e *v1alpha1.DNSEndpoint) { e.Spec.Endpoints[1].RecordType = "ALIAS" },
			want:     outcome{syncv1.PhaseFailed, four, lags, "False Invalid", "False Invalid", "False Invalid", "Invalid"},
			zone:     "example.com,example.org", says: `spec.endpoints[1] (www.example.org ALIAS): recordType: "ALIAS" is not published`,
		},
		"a conflict": {
			beside: older,
			want:   outcome{syncv1.PhaseFailed, states("InSync", "InSync", "InSync", "InSync"), lags, "False Conflict", "False Conflict", "False Conflict", "Conflict"},
			zone:   "example.com,example.org", says: "www.example.com. is an alias, declared by CNAMERecord dns/alias",
		},
		"a zone that is wrong elsewhere": {
			problem: &Problem{"DuplicateZone", "declared by secret as well"},
			want:    outcome{syncv1.PhaseFailed, four, lags, "False DuplicateZone", "False DuplicateZone", "False DuplicateZone", "DuplicateZone"},
			zone:    "example.com,example.org", says: "zone example.org: it is not served", silent: "secret",
		},
		"a paused zone": {
			zones: []func(*v1beta1.DNSZone){nil, func(z *v1beta1.DNSZone) {
				otherZone(z)
				z.Annotations = map[string]string{v1beta1.PausedAnnotation: "true"}
			}},
			want: outcome{syncv1.PhaseInSync, four, lags, accepted, inStep, inStep, ""},
			zone: "example.com,example.org", says: "example.org: the zone is paused",
		},
		"nothing declared": {
			zones: []func(*v1beta1.DNSZone){},
			endpoint: func(e *v1alpha1.DNSEndpoint) {
				e.Spec.Endpoints, e.Status.Zones = nil, nil
			},
			want: outcome{syncv1.PhaseInSync, nil, nil, accepted, inStep, inStep, ""}, says: "nothing to serve",
		},
		"renamed, and the old name still served": {
			endpoint: func(e *v1alpha1.DNSEndpoint) {
				e.Generation, e.Annotations = 3, map[string]string{v1beta1.FormerNamesAnnotation: "www.example.org/A"}
				e.Spec.Endpoints[1].DNSName = "web.example.org"
			},
			change: func(zone, _ int, o *observe.Observation) {
				if zone == 1 {
					*o = with(without(*o, 7), "www.example.org.")
				}
			},
			want: outcome{syncv1.PhasePropagating, states("InSync", "InSync", "Stale", "Stale"), lags, accepted, "False Stale", "False Stale", ""},
			zone: "example.com,example.org",
		},
		"being deleted, still served": {
			endpoint: deleting,
			change: func(zone, _ int, o *observe.Observation) {
				if zone == 1 {
					*o = with(*o, "www.example.org.")
				}
			},
			want: outcome{syncv1.PhasePropagating, states("InSync", "InSync", "Stale", "Stale"), lags, "True Deleting", "False Stale", "False Stale", ""},
			zone: "example.com,example.org",
		},
		"being deleted, gone": {
			endpoint: deleting,
			want:     outcome{syncv1.PhaseInSync, four, lags, "True Deleting", inStep, inStep, ""}, zone: "example.com,example.org",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := testEndpoint()
			if tc.endpoint != nil {
				tc.endpoint(e)
			}
			zones := tc.zones
			if zones == nil {
				zones = []func(*v1beta1.DNSZone){nil, otherZone}
			}
			var in []*Evaluation
			for i, change := range zones {
				z := testZone()
				if change != nil {
					change(z)
				}
				d := declareEndpoint(t, z, e, tc.beside)
				if i == 1 && tc.problem != nil {
					d.problem = tc.problem
				}
				answers := []observe.Observation{holds(d.desired, 7), holds(d.desired, 7)}
				for s := range answers {
					if tc.change != nil {
						tc.change(i, s, &answers[s])
					}
				}
				in = append(in, Evaluate(d, servers(), answers, asked, History{}))
			}
			s := note(EndpointStatus(e, in, tc.unplaced, asked))
			if diff := cmp.Diff(tc.want, outcomeOf(s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s.Name != "dnsendpoint.web" || s.ObjectRef.APIVersion != "externaldns.k8s.io/v1alpha1" || s.Zone != tc.zone {
				t.Errorf("%s about %s in %q, want it in %q", s.Name, s.ObjectRef.APIVersion, s.Zone, tc.zone)
			}
			checkWords(t, s, tc.says, tc.silent)
		})
	}
}

func deleting(e *v1alpha1.DNSEndpoint) { e.DeletionTimestamp = &metav1.Time{Time: asked} }

// checkWords looks into the message of the phase, and for what must be in no message.
func checkWords(t *testing.T, s *syncv1.SyncStatus, says, silent string) {
	t.Helper()
	phase := s.Status.Conditions[len(s.Status.Conditions)-1].Message
	if s.Status.FailureReason != "" {
		phase = s.Status.FailureMessage
	}
	if !strings.Contains(phase, says) {
		t.Errorf("it says %q, want %q", phase, says)
	}
	for _, c := range s.Status.Conditions {
		if silent != "" && strings.Contains(c.Message, silent) {
			t.Errorf("%s tells of %q: %s", c.Type, silent, c.Message)
		}
	}
}

// declareEndpoint leaves out what is being deleted, as the caller of Declare has to.
func declareEndpoint(t *testing.T, z *v1beta1.DNSZone, e *v1alpha1.DNSEndpoint, beside source.Object) *DesiredState {
	t.Helper()
	all, live := []source.Object{e}, []source.Object{}
	if beside != nil && beside.GetNamespace() == z.Namespace {
		all, live = append(all, beside), append(live, beside)
	}
	if e.DeletionTimestamp == nil {
		live = append(live, e)
	}
	desired, err := source.Build(z, live, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return NewDesiredState(z, desired, all, nil)
}

// without and with take the address records of an observation away, or put one in.
func without(o observe.Observation, serial uint32) observe.Observation {
	o.Serial = serial
	var sets []rrset.RRset
	for s := range o.Mirror.All() {
		if s.Type != wwwA.Type {
			sets = append(sets, s)
		}
	}
	o.Mirror = observe.NewMirror(o.Mirror.Zone, o.Mirror.SOA, sets...)
	return o
}

func with(o observe.Observation, name string) observe.Observation {
	sets := []rrset.RRset{{Key: rrset.Key{Name: name, Type: wwwA.Type}, TTL: 3600, Rdata: []string{"192.0.2.1"}}}
	for s := range o.Mirror.All() {
		sets = append(sets, s)
	}
	o.Mirror = observe.NewMirror(o.Mirror.Zone, o.Mirror.SOA, sets...)
	return o
}

func TestPausedZoneSaysSo(t *testing.T) {
	z := testZone(func(z *v1beta1.DNSZone) { z.Annotations = map[string]string{v1beta1.PausedAnnotation: "true"} })
	r := testRecord(z)
	desired := build(t, z, r)
	j := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), servers(), []observe.Observation{holds(desired, 7), holds(desired, 7)}, asked, History{})
	for _, s := range []*syncv1.SyncStatus{j.ZoneStatus(nil), j.RecordStatus(r)} {
		if s.Status.Phase != syncv1.PhaseInSync {
			t.Errorf("%s is %s, want it judged as ever", s.Name, s.Status.Phase)
		}
		checkWords(t, s, "the zone is paused by its annotation bindy.firestoned.io/paused", "")
	}
}

package syncstatus

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

var (
	asked = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	wwwA  = rrset.Key{Name: "www.example.com.", Type: dns.TypeA}
)

// testZone is a zone that is configured on both of its instances.
func testZone(change ...func(*v1beta1.DNSZone)) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "example-com", UID: "zone", Generation: 1},
		Spec: v1beta1.DNSZoneSpec{
			ZoneName:  "example.com",
			SOARecord: v1beta1.SOARecord{PrimaryNS: "ns1.example.net.", AdminEmail: "admin.example.com."},
		},
		Status: v1beta1.DNSZoneStatus{ObservedGeneration: 1, Bind9Instances: []v1beta1.ZoneInstance{
			{Namespace: "dns", Name: "primary-0", Status: v1beta1.ZoneConfigured},
			{Namespace: "dns", Name: "secondary-0", Status: v1beta1.ZoneConfigured},
		}},
	}
	for _, c := range change {
		c(z)
	}
	return z
}

// testRecord is www.example.com A 192.0.2.1, programmed.
func testRecord(z *v1beta1.DNSZone, change ...func(*v1beta1.ARecord)) *v1beta1.ARecord {
	r := &v1beta1.ARecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "www", UID: "www", Generation: 3, Labels: map[string]string{"a": "b"}},
		Spec:       v1beta1.ARecordSpec{RecordCommon: v1beta1.RecordCommon{Name: "www"}, IPv4Addresses: []string{"192.0.2.1"}},
	}
	desired, err := source.Build(z, []source.Object{r}, source.Options{})
	if err != nil {
		panic(err)
	}
	d, _ := desired.Declarations.Get(source.ID{ObjectKey: source.KeyOf(r)})
	r.Status = v1beta1.RecordStatus{
		ObservedGeneration: 3, RecordHash: source.Hash(d), PublishedName: "www.example.com", Zone: "example.com",
	}
	for _, c := range change {
		c(r)
	}
	return r
}

// unprogrammed says that the controller has not got to the present generation yet.
func unprogrammed(r *v1beta1.ARecord) { r.Status.ObservedGeneration, r.Status.RecordHash = 2, "older" }

// stuck says that the controller has given up on the present generation.
func stuck(r *v1beta1.ARecord) {
	r.Status.RecordHash = "older"
	r.Status.Conditions = []metav1.Condition{{
		Type: "Programmed", Status: metav1.ConditionFalse, Reason: "ReconcileFailed", Message: "dns-primary-0-0: answered REFUSED", ObservedGeneration: 3,
		LastTransitionTime: metav1.NewTime(asked.Add(-time.Hour)),
	}}
}

func servers() []observe.Server {
	at := func(ip string) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(ip), 5353) }
	return []observe.Server{
		{Namespace: "dns", Instance: "primary-0", Pod: "primary-0-0", Role: observe.Primary, Addr: at("10.0.0.1"), PodPhase: corev1.PodRunning, PodReady: true},
		{Namespace: "dns", Instance: "secondary-0", Pod: "secondary-0-0", Role: observe.Secondary, Addr: at("10.0.0.2"), PodPhase: corev1.PodRunning, PodReady: true},
	}
}

// serves is the answer of a server with the zone at a serial, with these addresses for www.
func serves(serial uint32, addresses ...string) observe.Observation {
	soa := rrset.SOA{MName: "ns1.example.net.", RName: "admin.example.com.", Serial: serial, Minimum: 60, TTL: 300}
	var sets []rrset.RRset
	if len(addresses) > 0 {
		sets = append(sets, rrset.RRset{Key: wwwA, TTL: 3600, Rdata: addresses})
	}
	return observe.Observation{
		At: asked, RTT: time.Millisecond, AA: true, Authoritative: true, Serial: serial, SOA: soa, Mirror: observe.NewMirror("example.com.", soa, sets...),
	}
}

func answers(rcode int) observe.Observation {
	return observe.Observation{At: asked, RTT: time.Millisecond, Rcode: rcode}
}

func silent() observe.Observation {
	return observe.Observation{At: asked, Rcode: observe.NoReply, Err: &wire.Error{Op: "query", Server: "10.0.0.2:5353"}}
}

func withTTL(ttl uint32, o observe.Observation) observe.Observation {
	www, _ := o.Mirror.Get(wwwA)
	www.TTL = ttl
	o.Mirror = observe.NewMirror(o.Mirror.Zone, o.SOA, www)
	return o
}

func withoutMirror(o observe.Observation) observe.Observation {
	o.Mirror = nil
	return o
}

// claimed says that the zone is still to be configured on every instance.
func claimed(on []v1beta1.ZoneInstance) []v1beta1.ZoneInstance {
	for i := range on {
		on[i].Status = v1beta1.ZoneClaimed
	}
	return on
}

func untransferred(err *wire.Error) observe.Observation {
	o := serves(7)
	o.Mirror, o.Err = nil, err
	return o
}

// outcome is what a row of the table expects.
type outcome struct {
	Phase    syncv1.Phase
	States   []syncv1.ServerState
	Lags     []int64 // of the servers that have one
	Accepted string  // status and reason, as the two below
	Program  string
	Spread   string
	Failure  string
}

func outcomeOf(s *syncv1.SyncStatus) outcome {
	o := outcome{Phase: s.Status.Phase, Failure: s.Status.FailureReason}
	for _, r := range s.Servers {
		o.States = append(o.States, r.State)
		if r.SerialLag != nil {
			o.Lags = append(o.Lags, *r.SerialLag)
		}
	}
	text := func(c metav1.Condition) string { return string(c.Status) + " " + c.Reason }
	note(s)
	o.Accepted, o.Program, o.Spread = text(s.Status.Conditions[0]), text(s.Status.Conditions[1]), text(s.Status.Conditions[2])
	return o
}

func TestRecord(t *testing.T) {
	const accepted = "True Accepted"
	states := func(s ...syncv1.ServerState) []syncv1.ServerState { return s }
	for name, tc := range map[string]struct {
		zone    func(*v1beta1.DNSZone)
		record  func(*v1beta1.ARecord)
		problem *Problem
		servers func([]observe.Server) []observe.Server
		answers []observe.Observation
		want    outcome
	}{
		"every server serves it": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(7, "192.0.2.1")},
			want:    outcome{syncv1.PhaseInSync, states("InSync", "InSync"), []int64{0, 0}, accepted, "True InSync", "True InSync", ""},
		},
		"the same data at an older serial is in sync": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(5, "192.0.2.1")},
			want:    outcome{syncv1.PhaseInSync, states("InSync", "InSync"), []int64{0, 2}, accepted, "True InSync", "True InSync", ""},
		},
		"served before the controller says so": {
			record:  unprogrammed,
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(7, "192.0.2.1")},
			want:    outcome{syncv1.PhaseInSync, states("InSync", "InSync"), []int64{0, 0}, accepted, "True InSync", "True InSync", ""},
		},
		"the secondary has yet to transfer": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(6, "192.0.2.9")},
			want:    outcome{syncv1.PhasePropagating, states("InSync", "Stale"), []int64{0, 1}, accepted, "True InSync", "False Stale", ""},
		},
		"a new name that the secondary has yet to transfer": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(6)},
			want:    outcome{syncv1.PhasePropagating, states("InSync", "Stale"), []int64{0, 1}, accepted, "True InSync", "False Stale", ""},
		},
		"serials wrap around": {
			answers: []observe.Observation{serves(2, "192.0.2.1"), serves(4294967295, "192.0.2.9")},
			want:    outcome{syncv1.PhasePropagating, states("InSync", "Stale"), []int64{0, 3}, accepted, "True InSync", "False Stale", ""},
		},
		"serials wrap around, and the secondary is ahead": {
			answers: []observe.Observation{serves(4294967295, "192.0.2.1"), serves(2, "192.0.2.9")},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Divergent"), []int64{0, -3}, accepted, "True InSync", "False Divergent", ""},
		},
		"the greatest distance that has an order": {
			answers: []observe.Observation{serves(7+1<<31-1, "192.0.2.1"), serves(7, "192.0.2.9")},
			want:    outcome{syncv1.PhasePropagating, states("InSync", "Stale"), []int64{0, 1<<31 - 1}, accepted, "True InSync", "False Stale", ""},
		},
		"half of all serials away there is no order, and no transfer": {
			answers: []observe.Observation{serves(7+1<<31, "192.0.2.1"), serves(7, "192.0.2.9")},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Divergent"), []int64{0, -1 << 31}, accepted, "True InSync", "False Divergent", ""},
		},
		"the same data at a serial ahead is in sync": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(9, "192.0.2.1")},
			want:    outcome{syncv1.PhaseInSync, states("InSync", "InSync"), []int64{0, -2}, accepted, "True InSync", "True InSync", ""},
		},
		"primaries at different serials are measured by the newest": {
			servers: func(s []observe.Server) []observe.Server { s[1].Role = observe.Primary; return s },
			answers: []observe.Observation{serves(6, "192.0.2.9"), serves(7, "192.0.2.1")},
			want:    outcome{syncv1.PhasePropagating, states("Stale", "InSync"), []int64{1, 0}, accepted, "False Stale", "False Stale", ""},
		},
		"not programmed yet": {
			record:  unprogrammed,
			answers: []observe.Observation{serves(6, "192.0.2.9"), serves(6, "192.0.2.9")},
			want:    outcome{syncv1.PhasePropagating, states("Stale", "Stale"), []int64{0, 0}, accepted, "False Stale", "False Stale", ""},
		},
		"a new record that is not programmed yet": {
			record:  unprogrammed,
			answers: []observe.Observation{serves(6), serves(6)},
			want:    outcome{syncv1.PhasePropagating, states("Stale", "Stale"), []int64{0, 0}, accepted, "False Stale", "False Stale", ""},
		},
		"the controller gave up": {
			record:  stuck,
			answers: []observe.Observation{serves(6), serves(6)},
			want:    outcome{syncv1.PhaseFailed, states("Missing", "Missing"), []int64{0, 0}, accepted, "False ReconcileFailed", "False Missing", "ReconcileFailed"},
		},
		"gone from the newest serial": {
			answers: []observe.Observation{serves(7), serves(7)},
			want:    outcome{syncv1.PhaseOutOfSync, states("Missing", "Missing"), []int64{0, 0}, accepted, "False Missing", "False Missing", ""},
		},
		"other data at the same serial": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(7, "192.0.2.9")},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Divergent"), []int64{0, 0}, accepted, "True InSync", "False Divergent", ""},
		},
		"one value too many": {
			answers: []observe.Observation{serves(7, "192.0.2.1", "192.0.2.9"), serves(7, "192.0.2.1")},
			want:    outcome{syncv1.PhaseOutOfSync, states("Divergent", "InSync"), []int64{0, 0}, accepted, "False Divergent", "False Divergent", ""},
		},
		"a serial ahead of the primary's is never transferred": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(9, "192.0.2.9")},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Divergent"), []int64{0, -2}, accepted, "True InSync", "False Divergent", ""},
		},
		"gone at a serial ahead is Divergent: no transfer brings it": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(9)},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Divergent"), []int64{0, -2}, accepted, "True InSync", "False Divergent", ""},
		},
		"another TTL is other data": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), withTTL(60, serves(7, "192.0.2.1"))},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Divergent"), []int64{0, 0}, accepted, "True InSync", "False Divergent", ""},
		},
		"programmed by a controller that has not seen the zone as it is": {
			zone:    func(z *v1beta1.DNSZone) { z.Generation = 2 },
			answers: []observe.Observation{serves(7, "192.0.2.9"), serves(7, "192.0.2.9")},
			want:    outcome{syncv1.PhasePropagating, states("Stale", "Stale"), []int64{0, 0}, accepted, "False Stale", "False Stale", ""},
		},
		"missing and not loaded while the zone is being configured there": {
			zone:    func(z *v1beta1.DNSZone) { z.Status.Bind9Instances = claimed(z.Status.Bind9Instances) },
			answers: []observe.Observation{serves(7), answers(dns.RcodeServerFailure)},
			want:    outcome{syncv1.PhasePropagating, states("Missing", "NotLoaded"), []int64{0}, accepted, "False Missing", "False Missing", ""},
		},
		"other data is no matter of configuring": {
			zone:    func(z *v1beta1.DNSZone) { z.Status.Bind9Instances = claimed(z.Status.Bind9Instances) },
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(7, "192.0.2.9")},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Divergent"), []int64{0, 0}, accepted, "True InSync", "False Divergent", ""},
		},
		"a clock that is off": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), untransferred(&wire.Error{Op: "transfer", TSIGError: dns.RcodeBadTime})},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Refused"), []int64{0, 0}, accepted, "True InSync", "False Refused", ""},
		},
		"a serial without the data": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), withoutMirror(serves(7))},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Unreachable"), []int64{0, 0}, accepted, "True InSync", "Unknown Unreachable", ""},
		},
		"SERVFAIL": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), answers(dns.RcodeServerFailure)},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "NotLoaded"), []int64{0}, accepted, "True InSync", "False NotLoaded", ""},
		},
		"NOTAUTH": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), answers(dns.RcodeNotAuth)},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "NotLoaded"), []int64{0}, accepted, "True InSync", "False NotLoaded", ""},
		},
		"REFUSED": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), answers(dns.RcodeRefused)},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Refused"), []int64{0}, accepted, "True InSync", "False Refused", ""},
		},
		"REFUSED while the zone is being configured there": {
			zone:    func(z *v1beta1.DNSZone) { z.Status.Bind9Instances = z.Status.Bind9Instances[:1] },
			answers: []observe.Observation{serves(7, "192.0.2.1"), answers(dns.RcodeRefused)},
			want:    outcome{syncv1.PhasePropagating, states("InSync", "Refused"), []int64{0}, accepted, "True InSync", "False Refused", ""},
		},
		"a transfer that is refused": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), untransferred(&wire.Error{Op: "transfer", Rcode: dns.RcodeRefused})},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Refused"), []int64{0, 0}, accepted, "True InSync", "False Refused", ""},
		},
		"a key that the server does not know": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), untransferred(&wire.Error{Op: "transfer", Rcode: dns.RcodeNotAuth, TSIGError: dns.RcodeBadKey})},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Refused"), []int64{0, 0}, accepted, "True InSync", "False Refused", ""},
		},
		"clocks that differ": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), untransferred(&wire.Error{Op: "transfer", Rcode: dns.RcodeNotAuth, TSIGError: dns.RcodeBadTime})},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Refused"), []int64{0, 0}, accepted, "True InSync", "False Refused", ""},
		},
		"a transfer that breaks off": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), untransferred(&wire.Error{Op: "transfer"})},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Unreachable"), []int64{0, 0}, accepted, "True InSync", "Unknown Unreachable", ""},
		},
		"an answer without authority": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), answers(dns.RcodeSuccess)},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Lame"), []int64{0}, accepted, "True InSync", "False Lame", ""},
		},
		"only a parent zone is served": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), answers(dns.RcodeNameError)},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Lame"), []int64{0}, accepted, "True InSync", "False Lame", ""},
		},
		"a secondary that is silent": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), silent()},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Unreachable"), []int64{0}, accepted, "True InSync", "Unknown Unreachable", ""},
		},
		"a primary that is silent": {
			answers: []observe.Observation{silent(), serves(7, "192.0.2.1")},
			want:    outcome{syncv1.PhaseOutOfSync, states("Unreachable", "InSync"), []int64{0}, accepted, "Unknown Unreachable", "Unknown Unreachable", ""},
		},
		"a pod without an address": {
			servers: func(s []observe.Server) []observe.Server {
				s[1].Addr, s[1].PodPhase, s[1].PodReady = netip.AddrPort{}, "", false
				return s
			},
			answers: []observe.Observation{serves(7, "192.0.2.1"), {}},
			want:    outcome{syncv1.PhaseOutOfSync, states("InSync", "Unreachable"), []int64{0}, accepted, "True InSync", "Unknown Unreachable", ""},
		},
		"nobody answers": {
			answers: []observe.Observation{silent(), silent()},
			want:    outcome{syncv1.PhaseUnknown, states("Unreachable", "Unreachable"), nil, accepted, "Unknown Unreachable", "Unknown Unreachable", ""},
		},
		"no servers": {
			servers: func([]observe.Server) []observe.Server { return nil },
			want:    outcome{syncv1.PhaseUnknown, nil, nil, accepted, "Unknown NoPrimaryInstances", "Unknown NoPrimaryInstances", ""},
		},
		"no primary": {
			servers: func(s []observe.Server) []observe.Server { return s[1:] },
			answers: []observe.Observation{serves(7, "192.0.2.1")},
			want:    outcome{syncv1.PhaseInSync, states("InSync"), []int64{0}, accepted, "Unknown NoPrimaryInstances", "True InSync", ""},
		},
		"invalid": {
			record: func(r *v1beta1.ARecord) {
				r.Spec.IPv4Addresses = []string{"192.0.2"}
				r.Status = v1beta1.RecordStatus{}
			},
			answers: []observe.Observation{serves(7), serves(7)},
			want:    outcome{syncv1.PhaseFailed, nil, nil, "False Invalid", "False Invalid", "False Invalid", "Invalid"},
		},
		"the zone is a duplicate": {
			problem: &Problem{"DuplicateZone", "declared twice"},
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(7, "192.0.2.1")},
			want: outcome{syncv1.PhaseFailed, states("InSync", "InSync"), []int64{0, 0}, "False DuplicateZone", "False DuplicateZone",
				"False DuplicateZone", "DuplicateZone"},
		},
		"being deleted, still served": {
			record:  func(r *v1beta1.ARecord) { r.DeletionTimestamp = &metav1.Time{Time: asked} },
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(7, "192.0.2.1")},
			want:    outcome{syncv1.PhasePropagating, states("Stale", "Stale"), []int64{0, 0}, "True Deleting", "False Stale", "False Stale", ""},
		},
		"being deleted, gone from the primary": {
			record:  func(r *v1beta1.ARecord) { r.DeletionTimestamp = &metav1.Time{Time: asked} },
			answers: []observe.Observation{serves(8), serves(7, "192.0.2.1")},
			want:    outcome{syncv1.PhasePropagating, states("InSync", "Stale"), []int64{0, 1}, "True Deleting", "True InSync", "False Stale", ""},
		},
		"being deleted, gone": {
			record:  func(r *v1beta1.ARecord) { r.DeletionTimestamp = &metav1.Time{Time: asked} },
			answers: []observe.Observation{serves(8), serves(8)},
			want:    outcome{syncv1.PhaseInSync, states("InSync", "InSync"), []int64{0, 0}, "True Deleting", "True InSync", "True InSync", ""},
		},
		"being deleted, with a name that was never published": {
			record: func(r *v1beta1.ARecord) {
				r.Spec.Name, r.DeletionTimestamp, r.Status = "www..", &metav1.Time{Time: asked}, v1beta1.RecordStatus{}
			},
			answers: []observe.Observation{serves(8), serves(8)},
			want:    outcome{syncv1.PhaseInSync, nil, nil, "True Deleting", "True InSync", "True InSync", ""},
		},
		"renamed, and the old name still served": {
			record:  func(r *v1beta1.ARecord) { r.Spec.Name = "web"; unprogrammed(r) },
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(7, "192.0.2.1")},
			want:    outcome{syncv1.PhasePropagating, states("Stale", "Stale"), []int64{0, 0}, accepted, "False Stale", "False Stale", ""},
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
			s := servers()
			if tc.servers != nil {
				s = tc.servers(s)
			}
			j := Evaluate(NewDesiredState(z, build(t, z, r), []source.Object{r}, tc.problem), s, tc.answers, asked.Add(time.Second), History{})
			if diff := cmp.Diff(tc.want, outcomeOf(j.RecordStatus(r))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// build leaves out records being deleted, as the caller of Declare has to.
func build(t *testing.T, z *v1beta1.DNSZone, r *v1beta1.ARecord) *source.Zone {
	t.Helper()
	var live []source.Object
	if r.DeletionTimestamp == nil {
		live = append(live, r)
	}
	desired, err := source.Build(z, live, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return desired
}

func TestRecordEvidence(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	programmedAt := metav1.NewTime(asked.Add(-time.Hour))
	r.Status.Conditions = []metav1.Condition{{Type: "Programmed", Status: metav1.ConditionTrue, LastTransitionTime: programmedAt}}
	j := Evaluate(NewDesiredState(z, build(t, z, r), []source.Object{r}, nil), servers(),
		[]observe.Observation{serves(7, "192.0.2.1"), serves(6, "192.0.2.9")}, asked.Add(time.Second), History{})
	got := j.RecordStatus(r)
	at := metav1.NewMicroTime(asked)
	ms := &metav1.Duration{Duration: time.Millisecond}
	want := &syncv1.SyncStatus{
		TypeMeta: metav1.TypeMeta{APIVersion: "sync.bindy.firestoned.io/v1alpha1", Kind: "SyncStatus"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "dns", Name: "arecord.www", UID: subject.Describe("ARecord", "dns", "www", "www", 3).UID, Generation: 3, Labels: map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "bindy.firestoned.io/v1beta1", Kind: "ARecord", Name: "www", UID: "www"}},
		},
		ObjectRef: syncv1.ObjectReference{
			APIVersion: "bindy.firestoned.io/v1beta1", Kind: "ARecord", Namespace: "dns", Name: "www", UID: types.UID("www"), Generation: 3,
		},
		Zone:   "example.com",
		RRsets: []syncv1.RRset{{Name: "www.example.com.", Type: "A", TTL: new(int64(3600)), Rdata: []string{"192.0.2.1"}}},
		Status: syncv1.SyncStatusStatus{Phase: syncv1.PhasePropagating, Conditions: []metav1.Condition{
			{Type: "Accepted", Status: "True", Reason: "Accepted", Message: "part of zone example-com", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(asked)},
			{Type: "Programmed", Status: "True", Reason: "InSync", Message: "1 of 1 primary in sync", ObservedGeneration: 3, LastTransitionTime: programmedAt},
			{Type: "Propagated", Status: "False", Reason: "Stale", Message: "1 of 2 servers in sync; Stale: secondary-0-0", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(asked)},
		}},
		Servers: []syncv1.ServerStatus{
			{
				Instance: "primary-0", Pod: "primary-0-0", Address: "10.0.0.1:5353", Role: "Primary", PodPhase: "Running", PodReady: true,
				State: "InSync", Serial: new(int64(7)), SerialLag: new(int64(0)), Rcode: "NOERROR", Authoritative: true, RTT: ms, ObservedAt: &at,
			},
			{
				Instance: "secondary-0", Pod: "secondary-0-0", Address: "10.0.0.2:5353", Role: "Secondary", PodPhase: "Running", PodReady: true,
				State: "Stale", Serial: new(int64(6)), SerialLag: new(int64(1)), Rcode: "NOERROR", Authoritative: true, RTT: ms, ObservedAt: &at,
				Observed: []syncv1.RRset{{Name: "www.example.com.", Type: "A", TTL: new(int64(3600)), Rdata: []string{"192.0.2.9"}}},
				Message:  "serial 6 is 1 behind the primaries' 7",
			},
		},
		Summary:        syncv1.Summary{Servers: 2, InSync: 1},
		ObservedAt:     &at,
		CachesExpireAt: new(metav1.NewTime(asked.Add(time.Hour))), // the old answer's TTL
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Without a primary's answer the newest serial of any server is the reference, and the message does not say otherwise.
func TestReferenceWithoutPrimaries(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	s := servers()
	third := s[1]
	third.Pod, third.Addr = "secondary-0-1", netip.MustParseAddrPort("10.0.0.3:5353")
	s = append(s, third)
	j := Evaluate(NewDesiredState(z, build(t, z, r), []source.Object{r}, nil), s, []observe.Observation{silent(), serves(6, "192.0.2.9"), serves(7, "192.0.2.1")}, asked, History{})
	row := j.RecordStatus(r).Servers[1]
	if want := "serial 6 is 1 behind 7, the newest of any server, as no primary reports one"; row.State != syncv1.StateStale || row.Message != want {
		t.Errorf("%s: %q, want %q", row.State, row.Message, want)
	}
}

// What the answer to the question for the SOA shows is told as it was.
func TestEvidenceOfTheAnswer(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	of := func(rcode int, aa bool) observe.Observation {
		return observe.Observation{At: asked, RTT: time.Millisecond, Rcode: rcode, AA: aa}
	}
	for name, tc := range map[string]struct {
		answer  observe.Observation
		state   syncv1.ServerState
		message string
	}{
		"NXDOMAIN of a parent zone":     {of(dns.RcodeNameError, true), syncv1.StateLame, "answers NXDOMAIN for the zone's own name: it serves a parent zone but not this one"},
		"NXDOMAIN out of a cache":       {of(dns.RcodeNameError, false), syncv1.StateLame, "answers NXDOMAIN without authority for the zone"},
		"a parent zone without the SOA": {of(dns.RcodeSuccess, true), syncv1.StateLame, "answers without an SOA for the zone's own name: it serves a parent zone but not this one"},
		"a referral":                    {of(dns.RcodeSuccess, false), syncv1.StateLame, "answers without authority for the zone"},
		"SERVFAIL":                      {of(dns.RcodeServerFailure, false), syncv1.StateNotLoaded, "answers SERVFAIL: the zone is configured but has no data, or has expired"},
		"another error":                 {of(dns.RcodeFormatError, false), syncv1.StateRefused, "answers FORMERR"},
		"an error without a name":       {of(3841, false), syncv1.StateRefused, "answers RCODE3841"},
	} {
		j := Evaluate(NewDesiredState(z, build(t, z, r), []source.Object{r}, nil), servers(), []observe.Observation{serves(7, "192.0.2.1"), tc.answer}, asked, History{})
		row := j.RecordStatus(r).Servers[1]
		if row.State != tc.state || row.Message != tc.message || row.Authoritative != tc.answer.AA || row.Rcode == "" || row.Serial != nil {
			t.Errorf("%s: %+v", name, row)
		}
	}
}

// A row says what else is known of a server that does not serve.
func TestWhatRowsSay(t *testing.T) {
	r := testRecord(testZone())
	refused := answers(dns.RcodeRefused)
	const says = "answers REFUSED: the zone is not configured on this server, or the server refuses our queries"
	for name, tc := range map[string]struct {
		zone   func(*v1beta1.DNSZone)
		server func(*observe.Server)
		answer observe.Observation
		want   string
	}{
		"refused": {answer: refused, want: says},
		"refused, unconfigured": {
			zone:   func(z *v1beta1.DNSZone) { z.Status.Bind9Instances = nil },
			answer: refused, want: says + "; the zone is not configured on this instance yet",
		},
		"refused, and the controller knows why": {
			zone: func(z *v1beta1.DNSZone) {
				z.Status.Bind9Instances[1].Status, z.Status.Bind9Instances[1].Message = v1beta1.ZoneFailed, "the sidecar answers 500"
			},
			answer: refused, want: says + "; the sidecar answers 500",
		},
		"silent, and Kubernetes knows why": {
			server: func(s *observe.Server) { s.Message = "container named: CrashLoopBackOff" },
			answer: silent(), want: "failed; container named: CrashLoopBackOff",
		},
		"no pod":      {server: func(s *observe.Server) { s.Addr, s.PodPhase = netip.AddrPort{}, "" }, want: "the pod does not exist"},
		"a new pod":   {server: func(s *observe.Server) { s.Addr, s.PodPhase = netip.AddrPort{}, corev1.PodPending }, want: "the pod has no address yet"},
		"an old pod":  {server: func(s *observe.Server) { s.Addr, s.PodPhase = netip.AddrPort{}, corev1.PodFailed }, want: "the pod has no address (Failed)"},
		"a stuck pod": {server: func(s *observe.Server) { s.Addr, s.Message = netip.AddrPort{}, "Unschedulable" }, want: "Unschedulable"},
	} {
		z := testZone()
		if tc.zone != nil {
			tc.zone(z)
		}
		s := servers()
		if tc.server != nil {
			tc.server(&s[1])
		}
		got := Evaluate(NewDesiredState(z, build(t, z, r), []source.Object{r}, nil), s, []observe.Observation{serves(7, "192.0.2.1"), tc.answer}, asked.Add(time.Second), History{}).RecordStatus(r)
		if row := got.Servers[1]; row.Message != tc.want {
			t.Errorf("%s: %q, want %q", name, row.Message, tc.want)
		}
		if !got.ObservedAt.Time.Equal(asked) {
			t.Errorf("%s: observed at %v, want when the oldest answer came", name, got.ObservedAt)
		}
	}
}

func TestRowsAreBounded(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	desired := build(t, z, r)
	var left []rrset.RRset
	var keys []rrset.Key
	for i := range maxObserved + 5 {
		k := rrset.Key{Name: fmt.Sprintf("n%d.example.com.", i), Type: dns.TypeTXT}
		keys, left = append(keys, k), append(left, rrset.RRset{Key: k, TTL: 60, Rdata: []string{`"x"`}})
	}
	j := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), servers(), []observe.Observation{holds(desired, 7, left...), holds(desired, 7)}, asked, History{})
	if row := j.compareRRsets(j.servers[0], keys); len(row.Observed) != maxObserved || row.State != syncv1.StateDivergent {
		t.Errorf("%s with %d RRsets, want %d", row.State, len(row.Observed), maxObserved)
	}
}

// What a server has of a name may be a hundred megabytes. Every reader and every watch of a SyncStatus would get them.
func TestValuesInRowsAreBounded(t *testing.T) {
	const most = maxObservedBytes + 1000
	z := testZone()
	r := testRecord(z)
	desired := build(t, z, r)
	values := func(n, bytes int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf(`"%0*d"`, bytes, i))
		}
		return all
	}
	for name, tc := range map[string]struct {
		sets           []rrset.RRset
		shown, omitted int
	}{
		"few":        {[]rrset.RRset{{Key: wwwA, Rdata: values(3, 4)}}, 3, 0},
		"many":       {[]rrset.RRset{{Key: wwwA, Rdata: values(100_000, 98)}}, maxObservedBytes / 100, 100_000 - maxObservedBytes/100},
		"large":      {[]rrset.RRset{{Key: wwwA, Rdata: values(10, most-2)}}, 1, 9},
		"many names": {[]rrset.RRset{{Key: wwwA, Rdata: values(1000, 98)}, {Key: apexNS(desired).Key, Rdata: values(1000, 98)}}, maxObservedBytes / 100, 1000 - maxObservedBytes/100},
	} {
		t.Run(name, func(t *testing.T) {
			has := holds(desired, 7, tc.sets...)
			has.Mirror = observe.NewMirror(desired.Name, has.SOA, tc.sets...)
			ev := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), servers(), []observe.Observation{has, has}, asked, History{})
			record := ev.RecordStatus(r)
			for kind, s := range map[string]*syncv1.SyncStatus{"record": record, "zone": ev.ZoneStatus(nil)} {
				bytes, shown, omitted := 0, 0, 0
				if n := len(s.Servers[0].Observed); kind == "zone" && n < len(tc.sets) {
					t.Errorf("%d RRsets are shown, want %d at least", n, len(tc.sets))
				}
				for _, set := range s.Servers[0].Observed {
					if len(set.Rdata) == 0 && set.Omitted == 0 && set.Type == "A" {
						t.Errorf("%s: %s looks missing", kind, set.Name)
					}
					if set.Type == "A" {
						shown, omitted = len(set.Rdata), int(set.Omitted)
					}
					bytes += sizeOf(set.Rdata)
				}
				if bytes > most || kind == "record" && (shown != tc.shown || omitted != tc.omitted) {
					t.Errorf("%s: %d values and %d more, %d bytes", kind, shown, omitted, bytes)
				}
			}
		})
	}
}

// Only a secondary has a time at which it gives the zone up.
func TestExpiryOfSecondaries(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	told := serves(7, "192.0.2.1")
	told.ExpiresIn = time.Hour
	j := Evaluate(NewDesiredState(z, build(t, z, r), []source.Object{r}, nil), servers(), []observe.Observation{told, told}, asked.Add(time.Minute), History{})
	rows := j.RecordStatus(r).Servers
	if want := metav1.NewTime(asked.Add(time.Hour)); rows[0].ExpiresAt != nil || rows[1].ExpiresAt == nil || !rows[1].ExpiresAt.Equal(&want) {
		t.Errorf("the primary expires at %v, the secondary at %v, want %v", rows[0].ExpiresAt, rows[1].ExpiresAt, want)
	}
}

func TestUnselected(t *testing.T) {
	r := testRecord(testZone())
	want := outcome{syncv1.PhaseFailed, nil, nil, "False NotSelected", "False NotSelected", "False NotSelected", "NotSelected"}
	if diff := cmp.Diff(want, outcomeOf(UnselectedStatus(r, asked))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

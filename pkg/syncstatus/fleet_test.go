package syncstatus

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

func answering(serial uint32) observe.Observation {
	return observe.Observation{Rcode: dns.RcodeSuccess, Authoritative: true, Serial: serial}
}

// What the answers of a pod make of its row, and the row of the whole.
func TestFleetAnswers(t *testing.T) {
	newest := uint32(7)
	server := func(role observe.Role) observe.Server {
		return observe.Server{Namespace: "dns", Instance: "i", Pod: "i-0", Role: role, Addr: netip.MustParseAddrPort("192.0.2.1:53"),
			PodReady: true, PodPhase: "Running", Restarts: 2}
	}
	failing := func(rcode int) observe.Observation { return observe.Observation{Rcode: rcode} }
	for name, c := range map[string]struct {
		role    observe.Role
		answer  observe.Observation
		state   syncv1.ServerState
		phase   syncv1.Phase
		message string
	}{
		"level":                     {observe.Secondary, answering(7), syncv1.StateInSync, syncv1.PhaseInSync, ""},
		"behind":                    {observe.Secondary, answering(5), syncv1.StateStale, syncv1.PhasePropagating, "1 of 2 zones are out of sync; b.example: serial 5 is 2 behind the primaries' 7"},
		"ahead":                     {observe.Secondary, answering(9), syncv1.StateDivergent, syncv1.PhaseOutOfSync, "1 of 2 zones are out of sync; b.example: serial 9 is ahead of the primaries' 7: no transfer will repair it"},
		"not loaded":                {observe.Secondary, failing(dns.RcodeServerFailure), syncv1.StateNotLoaded, syncv1.PhaseOutOfSync, "1 of 2 zones are out of sync; b.example: answers SERVFAIL: the zone is configured but has no data, or has expired"},
		"a primary is no yardstick": {observe.Primary, answering(5), syncv1.StateInSync, syncv1.PhaseInSync, ""},
		"only a parent is served":   {observe.Secondary, observe.Observation{Rcode: dns.RcodeNameError, AA: true}, syncv1.StateLame, syncv1.PhaseOutOfSync, "1 of 2 zones are out of sync; b.example: answers NXDOMAIN for the zone's own name: it serves a parent zone but not this one"},
		"silent":                    {observe.Secondary, failing(observe.NoReply), syncv1.StateUnreachable, syncv1.PhaseOutOfSync, "1 of 2 zones are out of sync; b.example: no answer"},
		"refused":                   {observe.Primary, failing(dns.RcodeRefused), syncv1.StateRefused, syncv1.PhaseOutOfSync, "1 of 2 zones are out of sync; b.example: answers REFUSED: the zone is not configured on this server, or the server refuses our queries"},
	} {
		i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "i"}}
		seen := PodAnswers{At: asked, Version: "9.18", Sidecar: "Ready", Zones: []ZoneAnswer{{"a.example", answering(7), &newest}, {"b.example", c.answer, &newest}}}
		s := note(InstanceStatus(i, []observe.Server{server(c.role)}, func(observe.Server) PodAnswers { return seen }, asked))
		row := s.Servers[0]
		if row.State != c.state || s.Status.Phase != c.phase || row.Message != c.message {
			t.Errorf("%s: %s, %s, %q", name, row.State, s.Status.Phase, row.Message)
		}
		if row.Restarts != 2 || row.Version != "9.18" || row.Sidecar != "Ready" || s.ObservedAt == nil {
			t.Errorf("%s: row %+v", name, row)
		}
		if ready := s.Status.Conditions[0]; ready.Type != syncv1.ConditionReady || ready.Status != metav1.ConditionTrue {
			t.Errorf("%s: %+v, and the pod is ready", name, ready)
		}
		want, known := map[syncv1.ServerState]metav1.ConditionStatus{syncv1.StateInSync: metav1.ConditionTrue, syncv1.StateUnreachable: metav1.ConditionUnknown}[c.state]
		if !known {
			want = metav1.ConditionFalse
		}
		if propagated := s.Status.Conditions[1]; propagated.Type != syncv1.ConditionPropagated || propagated.Status != want {
			t.Errorf("%s: %+v, want %s", name, propagated, want)
		}
	}
}

// Serials wrap around (RFC 1982).
func TestFleetSerialsWrap(t *testing.T) {
	newest := uint32(2)
	for serial, want := range map[uint32]syncv1.ServerState{2: syncv1.StateInSync, 4294967295: syncv1.StateStale, 5: syncv1.StateDivergent} {
		row := serverZone(observe.Secondary, ZoneAnswer{"a.example", answering(serial), &newest})
		if row.State != want || *row.SerialLag != int64(int32(newest-serial)) {
			t.Errorf("serial %d: %s, %d behind, want %s", serial, row.State, *row.SerialLag, want)
		}
	}
}

// A thousand zones are counted, and the worst twenty shown.
func TestFleetShowsTheWorst(t *testing.T) {
	newest := uint32(7)
	var seen []ZoneAnswer
	for n := range 1000 {
		seen = append(seen, ZoneAnswer{fmt.Sprintf("z%03d.example", n), answering(7), &newest})
	}
	seen[500].Observation, seen[900].Observation = answering(6), observe.Observation{Rcode: dns.RcodeServerFailure}
	got := serverZones(observe.Secondary, seen)
	if got.InSync != 998 || got.OutOfSync != 2 || len(got.Worst) != maxServerZones {
		t.Errorf("%d in sync, %d not, %d shown", got.InSync, got.OutOfSync, len(got.Worst))
	}
	first := []string{got.Worst[0].Zone, got.Worst[1].Zone, got.Worst[2].Zone}
	if diff := cmp.Diff([]string{"z900.example", "z500.example", "z000.example"}, first); diff != "" {
		t.Error(diff)
	}
}

// A cluster-scoped cluster shows up where its instances are, and its reference is to an object without a namespace.
func TestGlobalCluster(t *testing.T) {
	c := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "all"}}
	s := note(ClusterStatus(subject.GlobalClusterKind, c, &c.Status, servers(), nil, asked))
	if s.Name != "bind9globalcluster.all" || s.Namespace != "infra" || s.ObjectRef.Namespace != "" || s.ObjectRef.Kind != "Bind9GlobalCluster" {
		t.Errorf("%s/%s is about %+v", s.Namespace, s.Name, s.ObjectRef)
	}
}

package syncstatus

import (
	"net/netip"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// Unreachable are those that did not answer: not those whose data could not be compared or validated.
func TestSummary(t *testing.T) {
	rows := []syncv1.ServerStatus{
		{Pod: "level", State: syncv1.StateInSync, Rcode: "NOERROR"},
		{Pod: "silent", State: syncv1.StateUnreachable},
		{Pod: "not validated", State: syncv1.StateUnreachable, Rcode: "NOERROR", Security: syncv1.SecurityUnknown},
	}
	if got, want := summarizeServers(rows), (syncv1.Summary{Servers: 3, InSync: 1, Unreachable: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What is worst comes first, and hides nothing.
func TestEveryStateIsNamed(t *testing.T) {
	rows := []syncv1.ServerStatus{
		{Pod: "a", State: syncv1.StateStale}, {Pod: "b", State: syncv1.StateInSync}, {Pod: "c", State: syncv1.StateUnreachable}, {Pod: "d", State: syncv1.StateStale},
	}
	got := summarizeRows(rows, "server", "servers")
	if want := "1 of 4 servers in sync; Unreachable: c; Stale: a, d"; got.Message != want || got.Reason != "Unreachable" || got.Status != metav1.ConditionFalse {
		t.Errorf("%+v, want %s", got, want)
	}

	newest := uint32(7)
	behind, silent := ZoneAnswer{"b.example", answering(5), &newest}, ZoneAnswer{"a.example", observe.Observation{Rcode: observe.NoReply}, &newest}
	i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "i"}}
	var pods []observe.Server
	for _, name := range []string{"i-0", "i-1"} {
		pods = append(pods, observe.Server{Namespace: "dns", Instance: "i", Pod: name, Role: observe.Secondary, Addr: netip.MustParseAddrPort("192.0.2.1:53"), PodReady: true})
	}
	s := note(InstanceStatus(i, pods, func(s observe.Server) PodAnswers {
		if s.Pod == "i-1" {
			return PodAnswers{At: asked, Zones: []ZoneAnswer{behind}}
		}
		return PodAnswers{At: asked, Zones: []ZoneAnswer{behind, silent}}
	}, asked))
	const isBehind = "b.example: serial 5 is 2 behind the primaries' 7"
	propagated := s.Status.Conditions[1]
	if want := "pod i-0: 2 of 2 zones are out of sync; a.example: no answer; " + isBehind + "; Stale: i-1"; propagated.Message != want || propagated.Status != metav1.ConditionFalse {
		t.Errorf("%+v, want %s", propagated, want)
	}
}

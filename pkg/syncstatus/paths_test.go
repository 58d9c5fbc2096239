package syncstatus

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Servers that all serve what is declared are not enough where their Services do not answer clients: the record and its zone say so, and
// which Service, over which protocol, and why. What is not known is not claimed.
func TestPaths(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	desired := build(t, z, r)
	answered := observe.Observation{At: asked, Rcode: dns.RcodeSuccess, AA: true, Authoritative: true, Serial: 7}
	silent := observe.Observation{At: asked, Rcode: observe.NoReply, Err: &wire.Error{Op: "query", Err: syscall.ECONNREFUSED}}
	refused := observe.Observation{At: asked, Rcode: dns.RcodeRefused}
	parent := observe.Observation{At: asked, Rcode: dns.RcodeNameError, AA: true}
	at := netip.MustParseAddr("10.96.0.2")
	withService := func(ready bool) []observe.Server {
		on := servers()
		on[1].Service, on[1].PodReady = at, ready
		return on
	}
	for name, c := range map[string]struct {
		servers  []observe.Server
		udp, tcp *observe.Observation
		phase    syncv1.Phase
		reason   string
		answered metav1.ConditionStatus
		says     string
	}{
		"both answer":         {withService(true), &answered, &answered, syncv1.PhaseInSync, string(syncv1.StateInSync), metav1.ConditionTrue, ""},
		"TCP is closed":       {withService(true), &answered, &silent, syncv1.PhaseOutOfSync, status.NotAnswered, metav1.ConditionFalse, "secondary-0 at 10.96.0.2:53 over TCP (nobody listens there"},
		"no pod is ready":     {withService(false), &silent, &silent, syncv1.PhasePropagating, status.NotAnswered, metav1.ConditionFalse, "no pod of the instance is ready"},
		"another zone's":      {withService(true), &parent, &parent, syncv1.PhaseOutOfSync, status.NotAnswered, metav1.ConditionFalse, "it serves a parent zone but not this one"},
		"refused":             {withService(true), &refused, &refused, syncv1.PhaseInSync, string(syncv1.StateInSync), metav1.ConditionUnknown, "what clients get is not known"},
		"refused over UDP":    {withService(true), &refused, &silent, syncv1.PhaseOutOfSync, status.NotAnswered, metav1.ConditionFalse, "over TCP (nobody"},
		"not asked yet":       {withService(true), &answered, nil, syncv1.PhasePropagating, status.Pending, metav1.ConditionUnknown, "it is being asked"},
		"no Service is known": {servers(), &silent, &silent, syncv1.PhaseInSync, string(syncv1.StateInSync), "", ""},
	} {
		onPath := func(p Path) (observe.Observation, bool) {
			o := c.udp
			if p.TCP {
				o = c.tcp
			}
			if o == nil {
				return observe.Observation{}, false
			}
			return *o, true
		}
		good := holds(desired, 7)
		j := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), c.servers, []observe.Observation{good, good}, asked, History{OnPath: onPath})
		zone := note(j.ZoneStatus(nil))
		for of, s := range map[string]*syncv1.SyncStatus{"record": note(j.RecordStatus(r)), "zone": zone} {
			propagated := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionPropagated)
			if s.Status.Phase != c.phase || s.Status.InSync != (c.phase == syncv1.PhaseInSync) || propagated.Reason != c.reason || !strings.Contains(propagated.Message, c.says) {
				t.Errorf("%s, %s: %s, %+v", name, of, s.Status.Phase, propagated)
			}
		}
		condition := meta.FindStatusCondition(zone.Status.Conditions, syncv1.ConditionAnswered)
		if c.answered == "" {
			if condition != nil || len(zone.Paths) > 0 {
				t.Errorf("%s: %+v, %+v", name, condition, zone.Paths)
			}
			continue
		}
		if condition == nil || condition.Status != c.answered || !strings.Contains(condition.Message, c.says) {
			t.Errorf("%s: %+v", name, condition)
		}
		if len(zone.Paths) != 2 || zone.Paths[0].Protocol != "UDP" || zone.Paths[1].Protocol != "TCP" || zone.Paths[0].Instance != "secondary-0" {
			t.Errorf("%s: %+v", name, zone.Paths)
		}
	}
}

// While a server does not serve what is declared, that comes first: nobody has to look at Services then.
func TestPathsComeLast(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	desired := build(t, z, r)
	on := servers()
	on[1].Service = netip.MustParseAddr("10.96.0.2")
	silent := func(Path) (observe.Observation, bool) {
		return observe.Observation{At: asked, Rcode: observe.NoReply}, true
	}
	j := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), on, []observe.Observation{holds(desired, 7), serves(6, "192.0.2.9")}, asked, History{OnPath: silent})
	if s := j.RecordStatus(r); s.Status.Phase != syncv1.PhasePropagating || strings.Contains(s.Status.Conditions[2].Message, "clients") {
		t.Errorf("%+v", s.Status)
	}
}

// Every known way to a zone's servers has a row: what is published and belongs to nobody here as well. An answer counts as another one only if no
// server has its SOA record, and none had when it was asked for. What is not seen makes a promise of nothing.
func TestFurtherPaths(t *testing.T) {
	z := testZone(func(z *v1beta1.DNSZone) {
		z.Spec.NameServers = []v1beta1.NameServer{{Hostname: "ns1.example.com.", IPv4Address: "192.0.2.53"}}
	})
	r := testRecord(z)
	desired := build(t, z, r)
	on := servers()
	on[0].Service, on[0].ServiceAddresses = netip.MustParseAddr("10.96.0.1"), []netip.Addr{netip.MustParseAddr("203.0.113.10")}
	on[0].Node, on[0].NodePorts, on[0].PodReady = netip.MustParseAddr("10.0.0.1"), [2]uint16{30053, 30054}, true
	good := holds(desired, 7)
	published := netip.MustParseAddrPort("192.0.2.53:53")
	soa := func(serial uint32, mail string) rrset.SOA {
		s := good.SOA
		s.Serial, s.RName = serial, mail
		return s
	}
	answer := func(s rrset.SOA) PathAnswer {
		return PathAnswer{Observation: observe.Observation{At: asked, Rcode: dns.RcodeSuccess, AA: true, Authoritative: true, Serial: s.Serial, SOA: s, ServerID: "pop7"}, Known: []rrset.SOA{good.SOA}}
	}
	serving := answer(good.SOA)
	silent := PathAnswer{Observation: observe.Observation{At: asked, Rcode: observe.NoReply, Err: &wire.Error{Op: "query", Err: syscall.ECONNREFUSED}}}
	former := answer(soa(6, good.SOA.RName))
	propagating := former
	propagating.Known = []rrset.SOA{former.SOA}
	passing := former
	passing.Known = []rrset.SOA{soa(5, good.SOA.RName)}
	for name, c := range map[string]struct {
		published PathAnswer
		state     syncv1.ServerState
		answered  metav1.ConditionStatus
		says      string
	}{
		"it answers":              {serving, syncv1.StateInSync, metav1.ConditionTrue, "6 of 6 further paths"},
		"an older version":        {former, syncv1.StateStale, metav1.ConditionFalse, "serial 6, which is 1 behind the servers' 7"},
		"as the servers just had": {propagating, syncv1.StateInSync, metav1.ConditionTrue, ""},
		"in between":              {passing, syncv1.StateInSync, metav1.ConditionTrue, ""},
		"of another view":         {answer(soa(7, "other.")), syncv1.StateDivergent, metav1.ConditionFalse, "another SOA record"},
		"a version of its own":    {answer(soa(9, good.SOA.RName)), syncv1.StateDivergent, metav1.ConditionFalse, "which no server has"},
		"without authority":       {PathAnswer{Observation: observe.Observation{At: asked, Rcode: dns.RcodeSuccess}}, syncv1.StateLame, metav1.ConditionFalse, "without authority"},
		"closed":                  {silent, syncv1.StateUnreachable, metav1.ConditionUnknown, "nobody listens there"},
		"forbidden":               {PathAnswer{Observation: observe.Observation{At: asked, Rcode: observe.NoReply, Err: outbound.ErrForbidden}}, syncv1.StateUnknown, metav1.ConditionUnknown, "not allowed"},
	} {
		past := History{
			OnPath: func(Path) (observe.Observation, bool) { return serving.Observation, true },
			OnFurther: func(p Path) (PathAnswer, bool) {
				if p.Addr == published && p.TCP {
					return c.published, true
				}
				return serving, true
			},
		}
		j := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), on, []observe.Observation{good, good}, asked, past)
		s := j.ZoneStatus(nil)
		if !s.Status.InSync || !j.RecordStatus(r).Status.InSync {
			t.Errorf("%s: the phase depends on it: %+v", name, s.Status)
		}
		condition := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionAnswered)
		if condition == nil || condition.Status != c.answered || !strings.Contains(condition.Message, c.says) {
			t.Errorf("%s: %+v", name, condition)
		}
		var types []string
		for _, p := range s.Paths {
			types = append(types, string(p.Type)+"/"+string(p.Protocol))
			if p.Address == published.String() && p.Protocol == "TCP" {
				if p.State != c.state || len(p.NameServers) != 1 || p.Server != c.published.ServerID {
					t.Errorf("%s: %+v", name, p)
				}
			} else if p.State != syncv1.StateInSync {
				t.Errorf("%s: %+v", name, p)
			}
		}
		if got := strings.Join(types, " "); got != "Service/UDP Service/TCP External/UDP External/TCP NodePort/UDP NodePort/TCP NameServer/UDP NameServer/TCP Pod/UDP Pod/TCP Pod/UDP Pod/TCP" {
			t.Errorf("%s: paths %s", name, got)
		}
	}
}

// A vantage asks on the paths that clients outside may take. What it sees is beside what the API server sees, and makes nothing better.
func TestVantages(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	desired := build(t, z, r)
	on := servers()
	on[0].Service, on[0].ServiceAddresses, on[0].PodReady = netip.MustParseAddr("10.96.0.1"), []netip.Addr{netip.MustParseAddr("203.0.113.10")}, true
	good := holds(desired, 7)
	serving := PathAnswer{Observation: observe.Observation{At: asked, Rcode: dns.RcodeSuccess, AA: true, Authoritative: true, Serial: 7, SOA: good.SOA}, Known: []rrset.SOA{good.SOA}}
	wrong := PathAnswer{Observation: observe.Observation{At: asked, Rcode: dns.RcodeServerFailure}}
	statusOf := func(here, there PathAnswer) *syncv1.SyncStatus {
		past := History{
			OnPath: func(Path) (observe.Observation, bool) { return serving.Observation, true },
			OnFurther: func(p Path) (PathAnswer, bool) {
				if p.Vantage == "berlin" {
					return there, true
				}
				return here, true
			},
			Vantages: []string{"berlin"},
		}
		return Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), on, []observe.Observation{good, good}, asked, past).ZoneStatus(nil)
	}
	for name, c := range map[string]struct {
		here, there PathAnswer
		answered    metav1.ConditionStatus
		says        string
	}{
		"both see it":          {serving, serving, metav1.ConditionTrue, ""},
		"the vantage does not": {serving, wrong, metav1.ConditionFalse, "203.0.113.10:53 over UDP as seen from berlin (answers SERVFAIL"},
		"only the vantage":     {wrong, serving, metav1.ConditionFalse, "203.0.113.10:53 over UDP (answers SERVFAIL"},
	} {
		s := statusOf(c.here, c.there)
		condition := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionAnswered)
		if condition.Status != c.answered || !strings.Contains(condition.Message, c.says) {
			t.Errorf("%s: %+v", name, condition)
		}
		var seen int
		for _, p := range s.Paths {
			if p.Vantage == "berlin" {
				seen++
			}
		}
		if seen != 2 {
			t.Errorf("%s: %d rows of the vantage, want the load balancer over both protocols: %+v", name, seen, s.Paths)
		}
	}
}

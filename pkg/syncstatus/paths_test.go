package syncstatus

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
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
		phase    sync.Phase
		reason   string
		answered metav1.ConditionStatus
		says     string
	}{
		"both answer":         {withService(true), &answered, &answered, sync.PhaseInSync, string(sync.StateInSync), metav1.ConditionTrue, ""},
		"TCP is closed":       {withService(true), &answered, &silent, sync.PhaseOutOfSync, status.NotAnswered, metav1.ConditionFalse, "secondary-0 at 10.96.0.2:53 over TCP (nobody listens there"},
		"no pod is ready":     {withService(false), &silent, &silent, sync.PhasePropagating, status.NotAnswered, metav1.ConditionFalse, "no pod of the instance is ready"},
		"another zone's":      {withService(true), &parent, &parent, sync.PhaseOutOfSync, status.NotAnswered, metav1.ConditionFalse, "it serves a parent zone but not this one"},
		"refused":             {withService(true), &refused, &refused, sync.PhaseInSync, string(sync.StateInSync), metav1.ConditionUnknown, "what clients get is not known"},
		"refused over UDP":    {withService(true), &refused, &silent, sync.PhaseOutOfSync, status.NotAnswered, metav1.ConditionFalse, "over TCP (nobody"},
		"not asked yet":       {withService(true), &answered, nil, sync.PhasePropagating, status.Pending, metav1.ConditionUnknown, "it is being asked"},
		"no Service is known": {servers(), &silent, &silent, sync.PhaseInSync, string(sync.StateInSync), "", ""},
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
		for of, s := range map[string]*sync.SyncStatus{"record": note(j.RecordStatus(r)), "zone": zone} {
			propagated := meta.FindStatusCondition(s.Status.Conditions, sync.ConditionPropagated)
			if s.Status.Phase != c.phase || s.Status.InSync != (c.phase == sync.PhaseInSync) || propagated.Reason != c.reason || !strings.Contains(propagated.Message, c.says) {
				t.Errorf("%s, %s: %s, %+v", name, of, s.Status.Phase, propagated)
			}
		}
		condition := meta.FindStatusCondition(zone.Status.Conditions, sync.ConditionAnswered)
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
	if s := j.RecordStatus(r); s.Status.Phase != sync.PhasePropagating || strings.Contains(s.Status.Conditions[2].Message, "clients") {
		t.Errorf("%+v", s.Status)
	}
}

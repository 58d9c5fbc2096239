package primary

import (
	"errors"
	"math"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
)

// server is a primary on which nobody can create the zone if it has an error.
type server struct {
	host.Primary
	missing error
}

var errMissing = errors.New("create the zone there")

func (s server) Missing(observe.Observation) error { return s.missing }

// What a primary gets follows from what it was seen to hold and what it lacks; planning it sends nothing.
func TestPlanChanges(t *testing.T) {
	zone := &v1beta1.DNSZone{Spec: v1beta1.DNSZoneSpec{
		ZoneName: "example.test", SOARecord: v1beta1.SOARecord{PrimaryNS: "ns1.example.net.", AdminEmail: "hostmaster.example.test."},
	}}
	declared := content.NewZone()
	if err := declared.Rebuild(zone, source.Options{}); err != nil {
		t.Fatal(err)
	}
	declared.Update(nil)
	p := Pass{Zone: &host.Zone{Object: zone, Name: "example.test."}, Content: declared}
	bare := State{Host: server{}}
	at := func(serial uint32) State {
		q := bare
		q.Seen.SOA, q.Seen.Serial = rrset.SOA{Serial: serial}, serial
		q.Seen.Mirror = observe.NewMirror(p.Zone.Name, q.Seen.SOA)
		return q
	}
	lacking := func(q State) State {
		q.sendable = plan.Changes{Create: []rrset.RRset{{Key: rrset.Key{Name: "www.example.test."}}}}
		return q
	}
	loading, foreign, failed := bare, bare, lacking(at(4))
	loading.written, foreign.Host, failed.Err = rrset.SOA{Serial: 5}, server{missing: errMissing}, errMissing
	for name, c := range map[string]struct {
		State
		target uint32
		do     step
		serial uint32
		err    error
	}{
		"without the zone":                  {bare, 5, create, 0, nil},
		"loading what it has got":           {loading, 5, nothing, 0, nil},
		"without the zone, somebody else's": {foreign, 5, nothing, 0, errMissing},
		"as it should be":                   {at(5), 5, nothing, 0, nil},
		"on another serial":                 {at(4), 5, catchUp, 5, nil},
		"lacking something":                 {lacking(at(4)), 5, catchUp, 5, nil},
		"changed by somebody else":          {lacking(at(7)), 5, catchUp, 8, nil},
		"wrapped by somebody else":          {lacking(at(0)), math.MaxUint32, catchUp, 1, nil},
		"failing":                           {failed, 5, nothing, 0, nil},
	} {
		got := p.planChanges([]State{c.State}, target{soa: rrset.SOA{Serial: c.target}})[c.At.ID]
		if got.do != c.do || got.soa.Serial != c.serial || !errors.Is(got.err, c.err) || got.changes.Len() != c.sendable.Len() && c.do == catchUp {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

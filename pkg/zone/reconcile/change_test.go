package reconcile

import (
	"errors"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// foreignPrimary is a primary on which nobody can create the zone.
type foreignPrimary struct{ host.Primary }

var errMissing = errors.New("create the zone there")

func (foreignPrimary) Missing(observe.Observation) error { return errMissing }

// What a primary gets follows from what it was seen to hold and what it lacks; planning it sends nothing.
func TestPlanChanges(t *testing.T) {
	f := &fakePrimary{}
	p := passOverFake(f)
	if _, err := p.declare(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.hosts = p.hostsOf(p.scope, p.state)
	bare := p.findPrimaries(t.Context())[0]
	at := func(serial uint32) primary {
		q := bare
		q.seen.SOA, q.seen.Serial = rrset.SOA{Serial: serial}, serial
		q.seen.Mirror = observe.NewMirror(p.dnsName(), q.seen.SOA)
		return q
	}
	lacking := func(q primary) primary {
		q.sendable = plan.Changes{Create: []rrset.RRset{{Key: keyOfNumbered("r000001")}}}
		return q
	}
	loading, foreign, failed := bare, bare, lacking(at(4))
	loading.written, foreign.host, failed.err = rrset.SOA{Serial: 5}, foreignPrimary{}, errMissing
	for name, c := range map[string]struct {
		primary
		do     step
		serial uint32
		err    error
	}{
		"without the zone":                  {bare, create, 0, nil},
		"loading what it has got":           {loading, nothing, 0, nil},
		"without the zone, somebody else's": {foreign, nothing, 0, errMissing},
		"as it should be":                   {at(5), nothing, 0, nil},
		"on another serial":                 {at(4), catchUp, 5, nil},
		"lacking something":                 {lacking(at(4)), catchUp, 5, nil},
		"changed by somebody else":          {lacking(at(7)), catchUp, 8, nil},
		"failing":                           {failed, nothing, 0, nil},
	} {
		got := p.planChanges([]primary{c.primary}, target{soa: rrset.SOA{Serial: 5}})[c.at.ID]
		if got.do != c.do || got.soa.Serial != c.serial || !errors.Is(got.err, c.err) || got.changes.Len() != c.sendable.Len() && c.do == catchUp {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if f.updates+f.created > 0 {
		t.Errorf("%d updates, created %d times", f.updates, f.created)
	}
}

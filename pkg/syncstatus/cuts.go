package syncstatus

import (
	"fmt"
	"slices"

	"github.com/miekg/dns"

	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// foreignCut finds the delegation at a name on a server, if there is one that nobody declares. A server holds what is at and
// below it, and answers with a referral instead (RFC 1034 section 4.3.2). Package source keeps declarations from hiding each
// other.
func foreignCut(desired *source.Zone, m *observe.Mirror, name string) (cut rrset.RRset, found bool) {
	if cut, found = m.Get(rrset.Key{Name: name, Type: dns.TypeNS}); !found || name == m.Zone {
		return rrset.RRset{}, false
	}
	if _, declared := desired.Get(cut.Key); declared {
		return rrset.RRset{}, false
	}
	return cut, true
}

// hiding finds the foreign delegation that keeps a server from answering with what it holds at a key. The addresses of the
// delegation's own name servers are told in its referrals.
func hiding(desired *source.Zone, m *observe.Mirror, k rrset.Key) (cut rrset.RRset, found bool) {
	for name := k.Name; name != m.Zone && rrset.IsSubdomain(name, m.Zone); name = rrset.Parent(name) {
		cut, found = foreignCut(desired, m, name)
		glue := (k.Type == dns.TypeA || k.Type == dns.TypeAAAA) && slices.Contains(cut.Rdata, k.Name)
		if found && !glue {
			return cut, true
		}
	}
	return rrset.RRset{}, false
}

// HidesOthers tells whether a change of a server's content at a name can matter to what is declared below it.
func (d *Declared) HidesOthers(name string, was, is *observe.Mirror) bool {
	if d.desired == nil || was == nil || is == nil {
		return false
	}
	return cutChanged(name, d.desired, was, d.desired, is)
}

// cutChanged tells whether the foreign delegation at a name is another one now, by what was and is declared and held.
func cutChanged(name string, wasDesired *source.Zone, was *observe.Mirror, isDesired *source.Zone, is *observe.Mirror) bool {
	before, _ := foreignCut(wasDesired, was, name)
	now, _ := foreignCut(isDesired, is, name)
	return !slices.Equal(before.Rdata, now.Rdata)
}

// cuts are the foreign delegations that hide something on one server.
type cuts []rrset.RRset

// add tells whether a server that holds what is declared does not answer with it.
func (c *cuts) add(desired *source.Zone, m *observe.Mirror, want rrset.RRset) bool {
	if desired == nil || len(want.Rdata) == 0 {
		return false
	}
	cut, found := hiding(desired, m, want.Key)
	if found && !slices.ContainsFunc(*c, func(o rrset.RRset) bool { return o.Key == cut.Key }) {
		*c = append(*c, cut)
	}
	return found
}

// tell adds what hides data to the row of a server.
func (c cuts) tell(row *sync.ServerStatus) {
	for _, cut := range c[:min(len(c), maxObserved-min(len(row.Observed), maxObserved))] {
		row.Observed = append(row.Observed, render(cut.Key, cut))
	}
	if len(c) > 0 {
		row.Message += fmt.Sprintf("; a delegation of %s, which nobody declares, hides what is declared", c[0].Name)
	}
}

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

// undeclaredDelegation returns the undeclared delegation at a name on a server, if there is one. The server has the
// data at and below it, but answers with a referral (RFC 1034 section 4.3.2). Package source keeps declarations from
// hiding each other.
func undeclaredDelegation(desired *source.Zone, m *observe.Mirror, name string) (cut rrset.RRset, found bool) {
	if cut, found = m.Get(rrset.Key{Name: name, Type: dns.TypeNS}); !found || name == m.Zone {
		return rrset.RRset{}, false
	}
	if _, declared := desired.Get(cut.Key); declared {
		return rrset.RRset{}, false
	}
	return cut, true
}

// hidingDelegation returns the undeclared delegation that keeps a server from answering with its data at a key, if
// there is one. The addresses of the delegation's own name servers are part of its referrals.
func hidingDelegation(desired *source.Zone, m *observe.Mirror, k rrset.Key) (cut rrset.RRset, found bool) {
	for name := k.Name; name != m.Zone && rrset.IsSubdomain(name, m.Zone); name = rrset.ParentName(name) {
		cut, found = undeclaredDelegation(desired, m, name)
		glue := (k.Type == dns.TypeA || k.Type == dns.TypeAAAA) && slices.Contains(cut.Rdata, k.Name)
		if found && !glue {
			return cut, true
		}
	}
	return rrset.RRset{}, false
}

// HidesOthers reports whether a change of a server's content at a name can affect what is declared below it.
func (d *DesiredState) HidesOthers(name string, was, is *observe.Mirror) bool {
	if d.desired == nil || was == nil || is == nil {
		return false
	}
	return delegationChanged(name, d.desired, was, d.desired, is)
}

// delegationChanged reports whether the undeclared delegation at a name has changed.
func delegationChanged(name string, wasDesired *source.Zone, was *observe.Mirror, isDesired *source.Zone, is *observe.Mirror) bool {
	before, _ := undeclaredDelegation(wasDesired, was, name)
	now, _ := undeclaredDelegation(isDesired, is, name)
	return !slices.Equal(before.Rdata, now.Rdata)
}

// hidingDelegations are the undeclared delegations that hide something on one server.
type hidingDelegations []rrset.RRset

// addHiding reports whether a delegation hides declared data that the server holds, and remembers it.
func (c *hidingDelegations) addHiding(desired *source.Zone, m *observe.Mirror, want rrset.RRset) bool {
	if desired == nil || len(want.Rdata) == 0 {
		return false
	}
	cut, found := hidingDelegation(desired, m, want.Key)
	if found && !slices.ContainsFunc(*c, func(o rrset.RRset) bool { return o.Key == cut.Key }) {
		*c = append(*c, cut)
	}
	return found
}

// describeIn adds the delegations to the row of a server.
func (c hidingDelegations) describeIn(row *sync.ServerStatus) {
	for _, cut := range c[:min(len(c), maxObserved-min(len(row.Observed), maxObserved))] {
		row.Observed = append(row.Observed, renderRRset(cut.Key, cut))
	}
	if len(c) > 0 {
		row.Message += fmt.Sprintf("; an undeclared delegation of %s hides declared data", c[0].Name)
	}
}

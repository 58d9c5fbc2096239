package content

import (
	"iter"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// covering are those of some names at or below which desired has data of its own.
type covering struct {
	desired         *source.Zone
	names, covering []string
}

// Covering returns those of some sorted names below the zone's at or below which it declares data of its own. It costs the
// size of the zone when that or the names have changed.
func (z *Zone) Covering(names []string) []string {
	if z.covering.desired != z.desired || !slices.Equal(z.covering.names, names) {
		z.covering = covering{desired: z.desired, names: names}
		for _, name := range names {
			for range z.HiddenBelow(name) {
				z.covering.covering = append(z.covering.covering, name)
				break
			}
		}
	}
	return z.covering.covering
}

// HiddenBelow yields the declared RRsets at or below a name with which a server does not answer if another zone, a
// delegation or a DNAME has that name: all but those that belong to a declared delegation, or to this one.
func (z *Zone) HiddenBelow(name string) iter.Seq[rrset.Key] {
	return func(yield func(rrset.Key) bool) {
		for set := range z.desired.All() {
			if !rrset.IsSubdomain(set.Name, name) || set.Name == name && set.Type == dns.TypeDS || z.isDelegated(set.Name) {
				continue
			}
			if !yield(set.Key) {
				return
			}
		}
	}
}

// isDelegated reports whether a name is at or below a declared delegation: what is declared there is part of it.
func (z *Zone) isDelegated(name string) bool {
	for ; name != z.desired.Name && name != ""; _, name, _ = strings.Cut(name, ".") {
		if _, found := z.desired.Get(rrset.Key{Name: name, Type: dns.TypeNS}); found {
			return true
		}
	}
	return false
}

// ForeignCuts returns the delegations and DNAMEs on the primary that nobody declares.
func (p *Primary) ForeignCuts() []rrset.Key { return p.difference.ForeignCuts() }

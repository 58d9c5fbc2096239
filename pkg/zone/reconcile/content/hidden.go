package content

import (
	"iter"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// covering are those of some names at or below which desired has data of its own.
type covering struct {
	desired         *source.Zone
	names, covering []string
}

// Covering returns those of some names below the zone's at or below which it declares data of its own. It is computed when
// that or the names have changed.
func (z *Zone) Covering(names []string) []string {
	if z.covering.desired != z.desired || !slices.Equal(z.covering.names, names) {
		z.covering = covering{z.desired, names, z.desired.Covering(names)}
	}
	return z.covering.covering
}

// HiddenBy yields the declared RRsets with which a server does not answer because of a delegation, a DNAME or another zone.
func (z *Zone) HiddenBy(by rrset.Key) iter.Seq[rrset.Key] { return z.desired.HiddenBy(by) }

// ForeignCuts returns the delegations and DNAMEs on the primary that nobody declares.
func (p *Primary) ForeignCuts() []rrset.Key { return p.difference.ForeignCuts() }

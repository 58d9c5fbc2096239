package content

import (
	"maps"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// leftovers are RRsets that were ours, that every primary was seen without, and that a secondary may still hold: if the primaries lose
// their data before it has followed, it must not bring them back as data that nobody declares.
type leftovers map[rrset.Key]leftover

type leftover struct {
	// serial is the one on which the primaries were without the RRset, since is when that was seen.
	serial uint32
	since  time.Time
}

// ForgetLeftovers drops what is desired again, and what no secondary can hold any more. followed reports whether each has
// come to a serial.
func (z *Zone) ForgetLeftovers(followed func(serial uint32) bool) {
	answers := map[uint32]bool{}
	maps.DeleteFunc(z.leftovers, func(key rrset.Key, l leftover) bool {
		if _, asked := answers[l.serial]; !asked {
			answers[l.serial] = followed(l.serial)
		}
		return answers[l.serial] || z.isDesired(key)
	})
}

// IsLeftoverSince reports whether a secondary may still hold an RRset that the primaries were seen without at that time or later.
func (z *Zone) IsLeftoverSince(key rrset.Key, at time.Time) bool {
	l, some := z.leftovers[key]
	return some && !l.since.Before(at)
}

// WithoutLeftovers returns a secondary's copy of the zone without leftovers, and whether it had any.
func (z *Zone) WithoutLeftovers(copied *observe.Mirror) (clean *observe.Mirror, had bool) {
	isLeftover := func(key rrset.Key) bool { _, some := z.leftovers[key]; return some && !z.isDesired(key) }
	for key := range z.leftovers {
		_, held := copied.Get(key)
		had = had || held && isLeftover(key)
	}
	if !had {
		return copied, false
	}
	var sets []rrset.RRset
	for set := range copied.All() {
		if !isLeftover(set.Key) {
			sets = append(sets, set)
		}
	}
	return observe.NewMirror(z.desired.Name, copied.SOA, sets...), true
}

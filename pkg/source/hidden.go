package source

import (
	"iter"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// IsDelegated reports whether a name is at or below a declared delegation: what is declared there is part of its referrals
// (RFC 1034 section 4.3.2).
func (z *Zone) IsDelegated(name string) bool {
	for ; name != z.Name && rrset.IsSubdomain(name, z.Name); name = rrset.ParentName(name) {
		if _, declared := z.Get(rrset.Key{Name: name, Type: dns.TypeNS}); declared {
			return true
		}
	}
	return false
}

// HiddenBelow yields the desired RRsets at or below a name with which a server does not answer if another zone, a delegation
// or a DNAME has that name: all but those that belong to a declared delegation, or to this one.
func (z *Zone) HiddenBelow(name string) iter.Seq[rrset.Key] {
	return func(yield func(rrset.Key) bool) {
		for set := range z.All() {
			if rrset.IsSubdomain(set.Name, name) && z.isHiddenBy(set.Key, name) && !yield(set.Key) {
				return
			}
		}
	}
}

// isHiddenBy is HiddenBelow for a key at or below the name. A DS record is the parent's (RFC 4035 section 3.1.4.1).
func (z *Zone) isHiddenBy(k rrset.Key, name string) bool {
	return (k.Name != name || k.Type != dns.TypeDS) && !z.IsDelegated(k.Name)
}

// Covering returns those of some names below the zone's for which HiddenBelow yields anything. It costs the size of the zone,
// whatever the number of names.
func (z *Zone) Covering(names []string) []string {
	covering := make(map[string]bool, len(names))
	for _, name := range names {
		covering[name] = false
	}
	if len(names) > 0 {
		for set := range z.All() {
			for name := set.Name; name != z.Name && name != ""; name = rrset.ParentName(name) {
				if found, asked := covering[name]; asked && !found {
					covering[name] = z.isHiddenBy(set.Key, name)
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !covering[name] })
}

package source

import (
	"iter"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// IsDelegated reports whether a name is at or below a declared delegation: what is declared there is part of its referrals (RFC 1034
// section 4.3.2).
func (z *Zone) IsDelegated(name string) bool {
	for at := range rrset.NamesBelow(z.Name, name) {
		if _, declared := z.Get(rrset.Key{Name: at, Type: dns.TypeNS}); declared {
			return true
		}
	}
	return false
}

// Hides reports whether a server that holds an RRset does not answer with it because of what has a name at or above: a delegation (NS), a
// DNAME or, with the zero type, another zone of that server, none of them declared. A referral has the addresses of its name servers as
// glue, which is no answer to a question for them (RFC 1034 section 4.3.2). A DS record is the parent's (RFC 4035 section 3.1.4.1), a
// DNAME redirects the names below its own (RFC 6672 section 2.2), and what is at or below a declared delegation is part of that.
func (z *Zone) Hides(by, k rrset.Key) bool {
	switch {
	case !rrset.IsSubdomain(k.Name, by.Name) || z.IsDelegated(by.Name):
		return false
	case by.Type == dns.TypeDNAME:
		return k.Name != by.Name
	}
	return k.Name != by.Name || k.Type != dns.TypeDS
}

// HiddenBy yields the desired RRsets that something hides.
func (z *Zone) HiddenBy(by rrset.Key) iter.Seq[rrset.Key] {
	return func(yield func(rrset.Key) bool) {
		for set := range z.All() {
			if z.Hides(by, set.Key) && !yield(set.Key) {
				return
			}
		}
	}
}

// Covering chooses the names below the zone's where another zone would hide anything. It costs the size of the zone, whatever the number
// of names.
func (z *Zone) Covering(names []string) []string {
	covering := make(map[string]bool, len(names))
	for _, name := range names {
		covering[name] = false
	}
	if len(names) > 0 {
		for set := range z.All() {
			for name := range rrset.NamesBelow(z.Name, set.Name) {
				if found, asked := covering[name]; asked && !found {
					covering[name] = z.Hides(rrset.Key{Name: name}, set.Key)
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !covering[name] })
}

package evaluate

import (
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// HasWrongData reports whether a server holds or answers something else than is declared.
func HasWrongData(s *syncv1.SyncStatus) bool {
	for i := range s.Servers {
		if isWrong(s.Servers[i].State) {
			return true
		}
	}
	return false
}

func isWrong(state syncv1.ServerState) bool {
	return state == syncv1.StateDivergent || state == syncv1.StateMissing || state == syncv1.StateShadowed
}

// ServersWithWrongData are the servers that, by a verdict, hold other data of a zone than is declared, on the right serial or on one
// ahead of it, or answer something else. Such a verdict needs another look before it is believed: content that was put together from
// increments may be out of date, the primaries may have been asked too early to know the serial, and servers may show a change before our
// caches show the object that asked for it.
func ServersWithWrongData(s *syncv1.SyncStatus, z *desired.Zone) (current, ahead, shadowed []netip.AddrPort) {
	for i := range s.Servers {
		r := &s.Servers[i]
		if !isWrong(r.State) {
			continue
		}
		addr, err := netip.ParseAddrPort(r.Address)
		if err != nil || r.SerialLag == nil && r.ReadBy == "" || r.Zone != "" && dns.Fqdn(r.Zone) != z.Declared.ZoneName() {
			continue
		}
		switch {
		case r.State == syncv1.StateShadowed:
			shadowed = append(shadowed, addr)
		case r.SerialLag != nil && *r.SerialLag < 0:
			ahead = append(ahead, addr)
		case r.SerialLag == nil || *r.SerialLag == 0:
			current = append(current, addr)
		}
	}
	return current, ahead, shadowed
}

// DisputedObjects decide what a verdict compares with: the object itself, the zone, and all that declare something at the names that the
// verdict shows.
func DisputedObjects(key desired.Key, s *syncv1.SyncStatus, z *desired.Zone) []desired.Key {
	out := []desired.Key{key, desired.KeyOf(z.Key)}
	for _, r := range s.RRsets {
		for k := range z.Declared.ObjectsAt(r.Name) {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

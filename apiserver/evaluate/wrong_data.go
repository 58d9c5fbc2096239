package evaluate

import (
	"net/netip"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// ServersWithWrongData returns the servers that, by a verdict, hold other data of a zone than is declared, on the right
// serial. Such a verdict needs another look before it is believed: content that was put together from increments may be out
// of date, and a server may show a change before our caches show the object that asked for it.
func ServersWithWrongData(s *syncv1.SyncStatus, z *desired.Zone) []netip.AddrPort {
	var out []netip.AddrPort
	for i := range s.Servers {
		r := &s.Servers[i]
		wrong := r.State == syncv1.StateDivergent || r.State == syncv1.StateMissing
		if !wrong || r.SerialLag == nil || *r.SerialLag != 0 || r.Zone != "" && dns.Fqdn(r.Zone) != z.Declared.ZoneName() {
			continue
		}
		if addr, err := netip.ParseAddrPort(r.Address); err == nil {
			out = append(out, addr)
		}
	}
	return out
}

// DisputedObjects returns the objects that declare what a verdict finds to be otherwise on servers: the object itself, and of
// a zone those at the names that the verdict shows.
func DisputedObjects(key desired.Key, s *syncv1.SyncStatus, z *desired.Zone) []desired.Key {
	out := []desired.Key{key}
	if key.Kind != syncstatus.ZoneKind.Kind {
		return out
	}
	for _, r := range s.RRsets {
		for k := range z.Declared.ObjectsAt(r.Name) {
			out = append(out, k)
		}
	}
	return out
}

package syncstatus

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// maxNameServers bounds the name servers in a SyncStatus.
const maxNameServers = 20

// nameServers compares the names that the servers publish in the zone's NS records with the servers themselves, as far
// as that follows from the zone's content and the addresses of pods and Services.
func (ev *Evaluation) nameServers() []syncv1.NameServer {
	if v1beta1.IsGoing(ev.zone) {
		return nil
	}
	var names []string
	for _, e := range ev.ofApex() {
		if e.mirror != nil {
			names = append(names, ev.publishedNames(e.mirror)...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var all []syncv1.NameServer
	for _, name := range names[:min(len(names), maxNameServers)] {
		all = append(all, ev.nameServer(name))
	}
	return all
}

// publishedNames are the names in the zone's NS records on one server.
func (ev *Evaluation) publishedNames(m *observe.Mirror) []string {
	s, _ := m.Get(rrset.Key{Name: ev.ZoneName(), Type: dns.TypeNS})
	return s.Rdata
}

func (ev *Evaluation) nameServer(name string) syncv1.NameServer {
	n := syncv1.NameServer{Name: name, LeadsTo: syncv1.TargetUnknown}
	beyond, unknown := true, false // on every server, on any
	for _, e := range ev.ofApex() {
		if e.mirror == nil || !e.knows(rrset.Key{Name: ev.ZoneName(), Type: dns.TypeNS}) {
			continue
		}
		if !slices.Contains(ev.publishedNames(e.mirror), name) {
			n.MissingOn = append(n.MissingOn, e.row.ServerName())
			continue
		}
		for _, t := range []uint16{dns.TypeA, dns.TypeAAAA} {
			s, _ := e.mirror.Get(rrset.Key{Name: name, Type: t})
			n.Addresses = append(n.Addresses, s.Rdata...)
		}
		unknown = unknown || !e.knows(rrset.Key{Name: name, Type: dns.TypeA}) && !e.knows(rrset.Key{Name: name, Type: dns.TypeAAAA})
		beyond = beyond && ev.isAnsweredElsewhere(e.mirror, name)
	}
	slices.Sort(n.Addresses)
	n.Addresses = slices.Compact(n.Addresses)
	n.Instances = ev.instancesAt(n.Addresses)
	switch {
	case len(n.Instances) > 0:
		n.LeadsTo = syncv1.TargetServer
	case !rrset.IsSubdomain(name, ev.ZoneName()):
		n.Message = "the name is outside the zone: its addresses are not known here"
	case len(n.Addresses) > 0:
		n.Message = "no address belongs to a pod or Service of this zone: they may belong to a load balancer or another server"
	case unknown:
		n.Message = "the zone is read by query on a server, and nobody declares addresses for the name: they are not known here"
	case beyond:
		n.Message = "the zone itself does not have the addresses: the name is below a delegation or matches a wildcard"
	default:
		n.LeadsTo, n.Message = syncv1.TargetNowhere, "the name is inside the zone and has no address: resolvers cannot reach it"
	}
	if len(n.MissingOn) > 0 {
		n.Message = strings.TrimPrefix(fmt.Sprintf("%s; not published by %s", n.Message, strings.Join(n.MissingOn, ", ")), "; ")
	}
	return n
}

// isAnsweredElsewhere reports whether the answer at a name inside the zone does not follow from the content at that name: it is below a
// delegation, or a wildcard may answer for it (RFC 4592).
func (ev *Evaluation) isAnsweredElsewhere(m *observe.Mirror, name string) bool {
	for above := name; above != "" && above != ev.ZoneName(); above = rrset.ParentName(above) {
		if _, delegated := m.Get(rrset.Key{Name: above, Type: dns.TypeNS}); delegated {
			return true
		}
	}
	for above := rrset.ParentName(name); above != "" && rrset.IsSubdomain(above, ev.ZoneName()); above = rrset.ParentName(above) {
		for range m.At("*." + above) {
			return true
		}
	}
	return false
}

// instancesAt are the instances of the zone that have any of the addresses, of a pod or of their Service.
func (ev *Evaluation) instancesAt(addresses []string) []string {
	var at []string
	for _, e := range ev.servers {
		name := cmp.Or(e.row.Instance, e.row.Provider)
		if e.row.Namespace != "" {
			name = e.row.Namespace + "/" + name
		}
		if !slices.Contains(at, name) && slices.ContainsFunc(addresses, e.hasAddress) {
			at = append(at, name)
		}
	}
	return at
}

func (e *serverAnswer) hasAddress(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && (a == e.id.peer.Addr.Addr() || a == e.service || slices.Contains(e.serviceAddresses, a))
}

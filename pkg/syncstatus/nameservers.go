package syncstatus

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// maxNameServers bounds the name servers that are shown.
const maxNameServers = 20

// nameServers sets the names that the servers publish in the zone's NS records against the servers themselves. It tells
// what the zone's content and the addresses of pods and Services show, and of the rest that it is not known.
func (j *Judgement) nameServers() []sync.NameServer {
	if j.zone.DeletionTimestamp != nil {
		return nil
	}
	var names []string
	for _, e := range j.servers {
		if e.mirror != nil {
			names = append(names, j.published(e.mirror)...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var all []sync.NameServer
	for _, name := range names[:min(len(names), maxNameServers)] {
		all = append(all, j.nameServer(name))
	}
	return all
}

// published are the names in the zone's NS records on one server.
func (j *Judgement) published(m *observe.Mirror) []string {
	s, _ := m.Get(rrset.Key{Name: j.ZoneName(), Type: dns.TypeNS})
	return s.Rdata
}

func (j *Judgement) nameServer(name string) sync.NameServer {
	n := sync.NameServer{Name: name, LeadsTo: sync.TargetUnknown}
	beyond := true // on every server
	for _, e := range j.servers {
		if e.mirror == nil {
			continue
		}
		if !slices.Contains(j.published(e.mirror), name) {
			n.MissingOn = append(n.MissingOn, e.row.Pod)
			continue
		}
		for _, t := range []uint16{dns.TypeA, dns.TypeAAAA} {
			s, _ := e.mirror.Get(rrset.Key{Name: name, Type: t})
			n.Addresses = append(n.Addresses, s.Rdata...)
		}
		beyond = beyond && j.beyond(e.mirror, name)
	}
	slices.Sort(n.Addresses)
	n.Addresses = slices.Compact(n.Addresses)
	n.Instances = j.instancesAt(n.Addresses)
	switch {
	case len(n.Instances) > 0:
		n.LeadsTo = sync.TargetServer
	case !rrset.IsSubdomain(name, j.ZoneName()):
		n.Message = "the name is outside the zone: where it leads is not known here"
	case len(n.Addresses) > 0:
		n.Message = "no address is that of a pod or Service of this zone: it may be a load balancer's or another server's"
	case beyond:
		n.Message = "the zone itself does not tell the addresses: a delegation or a wildcard stands over the name"
	default:
		n.LeadsTo, n.Message = sync.TargetNowhere, "the name is inside the zone and has no address: nobody can follow it"
	}
	if len(n.MissingOn) > 0 {
		n.Message = strings.TrimPrefix(fmt.Sprintf("%s; not published by %s", n.Message, strings.Join(n.MissingOn, ", ")), "; ")
	}
	return n
}

// beyond tells whether what a name inside the zone has is not for the zone's content at that very name to tell: another zone
// is delegated above it, or a wildcard may answer for it (RFC 4592).
func (j *Judgement) beyond(m *observe.Mirror, name string) bool {
	for above, more := name, true; more && above != j.ZoneName(); above, more = parent(above) {
		if _, delegated := m.Get(rrset.Key{Name: above, Type: dns.TypeNS}); delegated {
			return true
		}
	}
	for above, more := parent(name); more && rrset.IsSubdomain(above, j.ZoneName()); above, more = parent(above) {
		for range m.At("*." + above) {
			return true
		}
	}
	return false
}

func parent(name string) (above string, ok bool) {
	next, end := dns.NextLabel(name, 0)
	return name[next:], !end
}

// instancesAt are the instances of the zone that have any of the addresses, by a pod or by their Service.
func (j *Judgement) instancesAt(addresses []string) []string {
	var at []string
	for _, e := range j.servers {
		name := e.row.Instance
		if e.row.Namespace != "" {
			name = e.row.Namespace + "/" + name
		}
		if !slices.Contains(at, name) && slices.ContainsFunc(addresses, e.has) {
			at = append(at, name)
		}
	}
	return at
}

func (e *server) has(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && (a == e.service || a == e.id.addr.Addr())
}

package syncstatus

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
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
	for at := range rrset.NamesBelow(ev.ZoneName(), name) {
		if _, delegated := m.Get(rrset.Key{Name: at, Type: dns.TypeNS}); delegated {
			return true
		}
		for range m.At("*." + rrset.ParentName(at)) {
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

// Reasons of Delegated about name servers. Those about DS records are the DNSZone's.
const (
	reasonDelegated    = "Delegated"
	reasonNotDelegated = "NotDelegated"
	reasonNameServers  = "NameServersDiffer"
	reasonGlue         = "GlueDiffers"
	reasonUncomparable = "ContentUnknown"
)

// delegated says whether the zones above have what resolvers need to reach the zone and to validate it. Name servers are compared here, if
// the parent is known. What becomes of the zone's DS records is known to the controller alone, and is in the DNSZone's own condition. The
// Status is empty if nothing is known of a zone above.
func (ev *Evaluation) delegated(parent *Evaluation) (v status.Verdict) {
	if parent != nil {
		v = ev.delegatedBy(parent)
	}
	if own := meta.FindStatusCondition(ev.zone.Status.Conditions, status.Delegated); own != nil && (v.Status == "" || v.Holds()) {
		return status.Verdict{Status: own.Status, Reason: own.Reason, Message: own.Message}
	}
	return v
}

// delegatedBy compares the delegation and its glue (RFC 1034 section 4.2.2) in the parent with those in the zone, as their newest primaries
// hold them.
func (ev *Evaluation) delegatedBy(parent *Evaluation) status.Verdict {
	zone, above := ev.newestContent(), parent.newestContent()
	name, from := ev.ZoneName(), parent.shortName()
	switch {
	case zone == nil:
		return status.Unknown(reasonUncomparable, "no server of the zone has content to compare")
	case above == nil:
		return status.Unknown(reasonUncomparable, "no server of the parent zone "+from+" has content to compare")
	}
	if isCutAbove(above, name) {
		return status.Verdict{} // The zone above is another one, of which nothing is known.
	}
	apex := rrset.Key{Name: name, Type: dns.TypeNS}
	own, _ := zone.Get(apex)
	theirs, found := above.Get(apex)
	switch {
	case !found:
		return status.False(reasonNotDelegated, fmt.Sprintf("%s has no NS records for %s: resolvers do not find the zone; add an NSRecord there", from, name))
	case !slices.Equal(own.Rdata, theirs.Rdata):
		return status.False(reasonNameServers, fmt.Sprintf("%s delegates to %s, the zone has %s", from, strings.Join(theirs.Rdata, ", "), strings.Join(own.Rdata, ", ")))
	}
	for _, host := range own.Rdata {
		for _, rrtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
			k := rrset.Key{Name: host, Type: rrtype}
			have, _ := zone.Get(k)
			glue, _ := above.Get(k)
			if rrset.IsSubdomain(host, name) && !slices.Equal(have.Rdata, glue.Rdata) {
				return status.False(reasonGlue, fmt.Sprintf("for %s, %s has %s, the zone has %s", k, from, valuesText(glue), valuesText(have)))
			}
		}
	}
	return status.True(reasonDelegated, fmt.Sprintf("%s delegates to %s, as the zone has it", from, strings.Join(own.Rdata, ", ")))
}

// isCutAbove reports whether a zone's content has a delegation between the zone and a name.
func isCutAbove(m *observe.Mirror, name string) bool {
	for above := range rrset.NamesBelow(m.Zone, rrset.ParentName(name)) {
		if _, delegated := m.Get(rrset.Key{Name: above, Type: dns.TypeNS}); delegated {
			return true
		}
	}
	return false
}

// DelegatesTo reports whether a zone's content delegates another zone to one of its name servers.
func (ev *Evaluation) DelegatesTo(zone *Evaluation) bool {
	above, below := ev.newestContent(), zone.newestContent()
	if above == nil || below == nil {
		return false
	}
	apex := rrset.Key{Name: zone.ZoneName(), Type: dns.TypeNS}
	own, _ := below.Get(apex)
	theirs, _ := above.Get(apex)
	return slices.ContainsFunc(theirs.Rdata, func(host string) bool { return slices.Contains(own.Rdata, host) })
}

func valuesText(s rrset.RRset) string {
	if len(s.Rdata) == 0 {
		return "none"
	}
	return strings.Join(s.Rdata, ", ")
}

// ofApex are the servers whose apex is the zone object's; all if none is.
func (ev *Evaluation) ofApex() []serverAnswer {
	own := slices.DeleteFunc(slices.Clone(ev.servers), func(e serverAnswer) bool { return e.shared != "" })
	if len(own) == 0 {
		return ev.servers
	}
	return own
}

// newestContent is the content of the first server that has the newest serial; nil if none has.
func (ev *Evaluation) newestContent() *observe.Mirror {
	for _, e := range ev.ofApex() {
		if e.mirror != nil && !e.mirror.IsPartial() && e.lag == 0 {
			return e.mirror
		}
	}
	return nil
}

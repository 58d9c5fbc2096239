package zoneimport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// zoneLabel is the label by which the zone selects its records.
const zoneLabel = "zone"

// maxNameServers is how many spec.nameServers takes.
const maxNameServers = 64

// declareZone makes the DNSZone: the SOA, and the name servers with the addresses that they have in the zone. What of these it
// does not say is left among the sets.
func (m *manifestBuilder) declareZone() error {
	name := strings.TrimSuffix(m.content.name, ".")
	if !zoneField.MatchString(name) {
		return fmt.Errorf("a DNSZone cannot have the name %s: its labels are letters, digits, \"-\", \"_\" and \"/\"", name)
	}
	m.zone = &v1beta1.DNSZone{Spec: v1beta1.DNSZoneSpec{
		ZoneName: name,
		TTL:      new(int64(m.content.soa.TTL)),
		RecordsFrom: []v1beta1.RecordSource{
			{Selector: metav1.LabelSelector{MatchLabels: map[string]string{zoneLabel: m.zoneObject}}},
		},
		ClusterRef: m.servers.Cluster,
	}}
	if m.servers.Provider != "" {
		m.zone.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: m.servers.Provider}}
	}
	if len(m.servers.Instances) > 0 {
		m.zone.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: m.servers.Instances}}}
	}
	m.declareServers()
	if len(m.zone.Spec.NameServers) == 0 {
		return fmt.Errorf("a DNSZone can name none of the zone's name servers: %s", strings.Join(m.wanted[m.apexNS()].Rdata, ", "))
	}
	m.choosePrimary()
	m.declareSOA()
	return nil
}

func (m *manifestBuilder) apexNS() rrset.Key {
	return rrset.Key{Name: m.content.name, Type: dns.TypeNS}
}

// declareServers takes the NS records of the zone itself.
func (m *manifestBuilder) declareServers() {
	key := m.apexNS()
	i := slices.IndexFunc(m.sets, func(s placedSet) bool { return s.Key == key })
	set := m.sets[i]
	m.sets = slices.Delete(m.sets, i, i+1)
	if zoneTTL := m.content.soa.TTL; set.TTL > zoneTTL {
		m.report.change(set.place, key, "its TTL of %d seconds becomes %d, that of the zone and its SOA", set.TTL, zoneTTL)
		set.TTL = zoneTTL
	}
	m.wanted[key] = set
	var others []string
	for _, host := range set.Rdata {
		m.reportMissingAddress(host, set)
		if len(m.zone.Spec.NameServers) < maxNameServers && fitsHost(host) {
			m.zone.Spec.NameServers = append(m.zone.Spec.NameServers, m.newNameServer(host))
		} else {
			others = append(others, host)
		}
	}
	if set.TTL < m.content.soa.TTL && len(others) == 0 {
		others = set.Rdata[:1] // One record with a lower TTL lowers that of all.
	}
	if len(others) > 0 {
		m.sets = append(m.sets, placedSet{RRset: rrset.New(key, set.TTL, others...), place: set.place})
		slices.SortFunc(m.sets, comparePlaced)
	}
}

// choosePrimary sets the SOA's MNAME. A DNSZone publishes it as a name server, too, unless it is hidden: servers notify all name servers
// but the one that MNAME names.
func (m *manifestBuilder) choosePrimary() {
	primary := m.content.soa.MName
	isListed := slices.ContainsFunc(m.zone.Spec.NameServers, func(s v1beta1.NameServer) bool { return s.Hostname == primary })
	if m.zone.Spec.SOARecord.HiddenPrimary = !isListed && fitsHost(primary); !isListed && !fitsHost(primary) {
		first := m.zone.Spec.NameServers[0].Hostname
		m.changeSOA("MNAME %s becomes %s, which BIND does not notify of changes any more: spec.soaRecord.primaryNs does not take %[1]s", primary, first)
		primary = first
	}
	m.content.soa.MName, m.zone.Spec.SOARecord.PrimaryNS = primary, primary
}

// newNameServer returns a name server with its addresses, as far as the kind has room: one of each family, with the zone's TTL.
func (m *manifestBuilder) newNameServer(host string) v1beta1.NameServer {
	server := v1beta1.NameServer{Hostname: host}
	if rrset.IsSubdomain(host, m.content.name) {
		server.IPv4Address = m.takeAddress(rrset.Key{Name: host, Type: dns.TypeA})
		server.IPv6Address = m.takeAddress(rrset.Key{Name: host, Type: dns.TypeAAAA})
	}
	return server
}

// reportMissingAddress reports a name server in the zone that has no address there: for such name servers the controller publishes the
// addresses of the servers that it runs.
func (m *manifestBuilder) reportMissingAddress(host string, servers placedSet) {
	if !rrset.IsSubdomain(host, m.content.name) {
		return
	}
	for _, rrtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
		if _, found := m.wanted[rrset.Key{Name: host, Type: rrtype}]; found {
			return
		}
	}
	m.report.change(servers.place, rrset.Key{Name: host, Type: dns.TypeA}, "the zone has no address of this name server; Lockstep publishes those of the servers that it runs")
}

// takeAddress returns the only address of a name server and takes it out of the sets; empty if it needs objects of its own.
func (m *manifestBuilder) takeAddress(key rrset.Key) string {
	i, found := slices.BinarySearchFunc(m.sets, key, func(s placedSet, k rrset.Key) int { return s.Key.Compare(k) })
	if !found || len(m.sets[i].Rdata) != 1 || m.sets[i].TTL != m.content.soa.TTL || !fitsAddress(m.sets[i].Rdata[0]) {
		return ""
	}
	address := m.sets[i].Rdata[0]
	m.sets = slices.Delete(m.sets, i, i+1)
	return address
}

func (m *manifestBuilder) changeSOA(format string, args ...any) {
	m.report.change(m.content.soaPlace, rrset.Key{Name: m.content.name, Type: dns.TypeSOA}, format, args...)
}

// declareSOA sets the rest of the SOA. Its TTL is the zone's.
func (m *manifestBuilder) declareSOA() {
	soa, spec := &m.content.soa, &m.zone.Spec.SOARecord
	if !mailField.MatchString(soa.RName) {
		mailbox := "hostmaster." + m.content.name
		m.changeSOA("RNAME %s becomes %s: spec.soaRecord.adminEmail does not take it", soa.RName, mailbox)
		soa.RName = mailbox
	}
	spec.AdminEmail, spec.Serial = soa.RName, int64(soa.Serial)
	for _, timer := range []struct {
		name  string
		least uint32
		value *uint32
		field *int64
	}{
		{"refresh", 1, &soa.Refresh, &spec.Refresh}, {"retry", 1, &soa.Retry, &spec.Retry}, {"expire", 1, &soa.Expire, &spec.Expire},
	} {
		m.limitTimer(timer.name, timer.value, timer.least)
		*timer.field = int64(*timer.value)
	}
	m.limitTimer("minimum", &soa.Minimum, 0)
	spec.NegativeTTL = new(int64(soa.Minimum))
}

func (m *manifestBuilder) limitTimer(name string, value *uint32, least uint32) {
	if limited := min(max(*value, least), rrset.MaxTTL); limited != *value {
		m.changeSOA("%s %d becomes %d: it may be %d to %d", name, *value, limited, least, rrset.MaxTTL)
		*value = limited
	}
}

package coredns

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// This file answers as CoreDNS does: plugin/etcd and plugin/backend_lookup.go of CoreDNS 1.15. The tests compare both.

// Defaults of the plugin.
const (
	defaultTTL      = 300
	defaultPriority = 10
	defaultWeight   = 100
)

// answer is what CoreDNS answers for one name and type.
type answer struct {
	set rrset.RRset
	// mixed is true if the answer has more than the RRset, or its records have different TTLs, or there is none because a value
	// cannot be read.
	mixed bool
	// known has the rdata when there is much of it.
	known map[string]bool
}

// manyRdata is how much rdata is looked through one by one.
const manyRdata = 32

func (a *answer) add(ttl uint32, rdata string) {
	if a.has(rdata) {
		return
	}
	a.mixed = a.mixed || len(a.set.Rdata) > 0 && a.set.TTL != ttl
	a.set.TTL, a.set.Rdata = ttl, append(a.set.Rdata, rdata)
}

// has looks up rdata, with an index once there is much of it.
func (a *answer) has(rdata string) bool {
	if len(a.set.Rdata) < manyRdata {
		return slices.Contains(a.set.Rdata, rdata)
	}
	if a.known == nil {
		a.known = make(map[string]bool, 2*manyRdata)
		for _, have := range a.set.Rdata {
			a.known[have] = true
		}
	}
	had := a.known[rdata]
	a.known[rdata] = true
	return had
}

// answer is what CoreDNS answers for a name and type. An RRset that comes with something else, or with several TTLs, has the TTL 0, which
// no RRset has that CoreDNS can hold.
func (s *snapshot) answer(key rrset.Key) (rrset.RRset, bool) {
	a := answer{set: rrset.RRset{Key: key}}
	services, readable := s.services(key)
	a.mixed = !readable
	switch key.Type {
	case dns.TypeA, dns.TypeAAAA, dns.TypeTXT:
		a.addPlain(key, services)
	case dns.TypeMX:
		a.addMail(services)
	case dns.TypeSRV:
		a.addServices(services)
	default:
		a.addAlias(key.Type, services)
	}
	set := rrset.New(key, a.set.TTL, a.set.Rdata...)
	if a.mixed {
		set.TTL = 0
	}
	return set, len(set.Rdata) > 0 && s.take(set)
}

// services are the values from which CoreDNS derives an answer; readable is false if there is one that it cannot read.
func (s *snapshot) services(key rrset.Key) (found []entry, readable bool) {
	if place := s.placeOf(key); place != key.Name {
		if found := s.lookUp(place, false); len(found) > 0 {
			return s.usable(found, key.Type)
		}
	}
	return s.usable(s.lookUp(key.Name, isExact(key.Type)), key.Type)
}

// lookUp finds what is below a name's key, or at it if nothing is below or only that is asked for.
func (s *snapshot) lookUp(name string, exact bool) []entry {
	path := s.pathOf(name)
	if !exact {
		if found := s.below(path); len(found) > 0 {
			return found
		}
	}
	if e, found := s.at(path); found {
		return []entry{e}
	}
	return nil
}

func (s *snapshot) usable(found []entry, rrtype uint16) (services []entry, readable bool) {
	if !s.visit(len(found)) {
		return nil, false
	}
	services = make([]entry, 0, len(found))
	for _, e := range found {
		if e.broken {
			return nil, false
		}
		if e.value.Host != "" || rrtype == dns.TypeTXT && e.value.Text != "" {
			e.value.TTL = cmp.Or(e.value.TTL, defaultTTL)
			e.value.Priority = cmp.Or(e.value.Priority, defaultPriority)
			services = append(services, e)
		}
	}
	return filterGroup(services), true
}

// filterGroup keeps the values without a group and those of the group of the shortest key, or all if there is no such group or the
// shortest keys do not agree.
func filterGroup(services []entry) []entry {
	if len(services) == 0 {
		return nil
	}
	group, shortest, compared := services[0].value.Group, strings.Count(services[0].key, "/"), len(services)
	for i, e := range services {
		if n := strings.Count(e.key, "/"); n < shortest {
			if e.value.Group == "" {
				compared = i + 1
				break
			}
			group, shortest = e.value.Group, n
		}
	}
	if group == "" {
		return services
	}
	isOther := func(e entry) bool { return e.value.Group != "" && e.value.Group != group }
	if slices.ContainsFunc(services[:compared], func(e entry) bool { return isOther(e) && strings.Count(e.key, "/") == shortest }) {
		return services
	}
	return slices.DeleteFunc(services, isOther)
}

// kindOf is what CoreDNS takes a value for: an address, a text, or else an alias (CNAME).
func kindOf(v value) (rrtype uint16, address bool) {
	ip, err := netip.ParseAddr(v.Host)
	switch {
	case err == nil && ip.Zone() == "" && ip.Unmap().Is4():
		return dns.TypeA, true
	case err == nil && ip.Zone() == "":
		return dns.TypeAAAA, true
	case v.Text != "":
		return dns.TypeTXT, false
	}
	return dns.TypeCNAME, false
}

// addPlain adds addresses or texts. An alias among the values is added to the answer, unless it points below the name.
func (a *answer) addPlain(key rrset.Key, services []entry) {
	for _, e := range services {
		kind, _ := kindOf(e.value)
		switch {
		case kind == dns.TypeCNAME && !dns.IsSubDomain(key.Name, dns.Fqdn(e.value.Host)):
			a.mixed = true
		case kind != key.Type:
		case kind == dns.TypeTXT:
			a.add(e.value.TTL, rdataOfText(e.value.Text))
		default:
			a.add(e.value.TTL, canonical(key, e.value.Host))
		}
	}
}

func (a *answer) addMail(services []entry) {
	for _, e := range services {
		switch kind, address := kindOf(e.value); {
		case !e.value.Mail || kind == dns.TypeTXT:
		case address || e.value.TargetStrip != 0:
			a.mixed = true // CoreDNS makes a name of the key.
		default:
			a.add(e.value.TTL, canonical(a.set.Key, fmt.Sprintf("%d %s", uint16(e.value.Priority), e.value.Host))) //nolint:gosec // as CoreDNS does
		}
	}
}

func (a *answer) addServices(services []entry) {
	sums := map[int]int{}
	for _, e := range services {
		sums[e.value.Priority] += cmp.Or(e.value.Weight, defaultWeight)
	}
	for _, e := range services {
		v := e.value
		switch kind, address := kindOf(v); {
		case v.Port == -1 || kind == dns.TypeTXT:
		case address || v.TargetStrip != 0:
			a.mixed = true
		default:
			weight := servedWeight(cmp.Or(v.Weight, defaultWeight), sums[v.Priority])
			a.add(v.TTL, canonical(a.set.Key, fmt.Sprintf("%d %d %d %s", uint16(v.Priority), weight, uint16(v.Port), v.Host))) //nolint:gosec // as CoreDNS does
		}
	}
}

// addAlias adds the target of a CNAME or PTR.
func (a *answer) addAlias(rrtype uint16, services []entry) {
	if len(services) == 0 {
		return
	}
	v := services[0].value
	if _, address := kindOf(v); !address {
		a.add(v.TTL, canonical(rrset.Key{Type: rrtype}, v.Host))
	}
}

// canonical brings rdata into canonical form; what is no rdata stays as it is.
func canonical(key rrset.Key, rdata string) string {
	if parsed, err := rrset.Parse(key, rdata); err == nil {
		return parsed
	}
	return rdata
}

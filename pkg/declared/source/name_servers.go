package source

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// NameServers is what there is to say about the names of a zone's own servers.
type NameServers struct {
	// Waiting says why none of the zone's own name servers can be published: their servers have no address yet. Empty if one can. Until then
	// servers keep what IsKept holds for as it is, and the zone is created nowhere.
	Waiting string
	// Pending are the names that wait.
	Pending []string
	// Remark names those that are not published, and those that have the same address; empty if there are none.
	Remark string
}

// addServerAddresses gives name servers of the zone that are inside it and have no address those of its servers. One whose servers have
// none yet is left out: BIND serves no zone with it.
func (d *groupDecision) addServerAddresses() {
	d.nameServers = NameServers{}
	var remarks, waiting []string
	missing := map[string]bool{}
	names := d.nameServersWithoutAddress()
	servers := d.publishedServers(len(names))
	for i, name := range names {
		pending := ""
		for j, s := range servers {
			if i%len(servers) != j%len(names) {
				continue
			}
			if d.addAddresses(name, s.Addresses); len(s.Addresses) == 0 {
				namespace, service, _ := strings.Cut(s.Service, "/")
				pending = fmt.Sprintf("Service %s has no address yet that clients could use: see kubectl get service -n %s %s, or set the address of %s in spec.nameServers",
					s.Service, namespace, service, name)
			}
		}
		if pending != "" && len(d.addressesOf(name)) == 0 {
			missing[name] = true
			waiting = append(waiting, pending)
			remarks = append(remarks, name+" is not published: "+pending)
		}
	}
	if len(missing) > 0 && !d.leaveOut(missing) {
		d.nameServers = NameServers{Waiting: waiting[0], Pending: slices.Sorted(maps.Keys(missing))}
		return
	}
	if shared := d.sharedAddress(); shared != "" {
		remarks = append(remarks, shared)
	}
	d.nameServers.Remark = strings.Join(remarks, "; ")
}

// publishedServers returns the servers whose addresses so many names get: all that are open to clients outside, or all primaries and as
// many others as there are names.
func (d *groupDecision) publishedServers(names int) (servers []Server) {
	for i, s := range d.opts.Servers {
		if s.Exposed || s.Primary || i < names {
			servers = append(servers, s)
		}
	}
	return servers
}

// ownNameServers returns the zone's name servers that are inside it: first those of the zone object, in the order of its spec.
func (d *groupDecision) ownNameServers() (names []string) {
	for _, name := range slices.Concat(d.Servers, findRRset(d.sets[d.tree.apex], dns.TypeNS).Rdata) {
		if rrset.IsSubdomain(name, d.Name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (d *groupDecision) nameServersWithoutAddress() []string {
	return slices.DeleteFunc(d.ownNameServers(), func(name string) bool { return len(d.addressesOf(name)) > 0 })
}

func (d *groupDecision) addressesOf(name string) (addresses []string) {
	for _, t := range []uint16{dns.TypeA, dns.TypeAAAA} {
		if set := findRRset(d.sets[d.tree.nodeAt(name)], t); set != nil {
			addresses = append(addresses, set.Rdata...)
		}
	}
	return addresses
}

// leaveOut takes name servers out of the zone's NS records, unless these would be empty or another object declares one of them.
func (d *groupDecision) leaveOut(missing map[string]bool) bool {
	set := findRRset(d.sets[d.tree.apex], dns.TypeNS)
	var rdata []string
	var owners [][]*Ref
	for i, name := range set.Rdata {
		switch {
		case !missing[name]:
			rdata, owners = append(rdata, name), append(owners, set.Owners[i])
		case slices.ContainsFunc(set.Owners[i], func(by *Ref) bool { return by.Kind != d.ref.Kind }):
			return false
		}
	}
	if len(rdata) > 0 {
		set.Rdata, set.Owners = rdata, owners
	}
	return len(rdata) > 0
}

// sharedAddress names the name servers that have the same address; empty if no two have.
func (d *groupDecision) sharedAddress() string {
	own := d.ownNameServers()
	for _, first := range own {
		for _, a := range d.addressesOf(first) {
			if same := slices.DeleteFunc(slices.Clone(own), func(name string) bool { return !slices.Contains(d.addressesOf(name), a) }); len(same) > 1 {
				return fmt.Sprintf("%s have one address, %s, and fail together (RFC 2182 section 3.1)", strings.Join(same, " and "), a)
			}
		}
	}
	return ""
}

// ChangedNameServers says what has become of the zone object's own NS records and of the addresses that it has given its name servers, in
// comparison with an older version: "ns1.example.com. A 203.0.113.10 instead of 10.96.0.7". It is empty if nothing has.
func (z *Zone) ChangedNameServers(old *Zone) string {
	var changes []string
	for name := range z.ChangedNames(old) {
		for _, t := range []uint16{dns.TypeNS, dns.TypeA, dns.TypeAAAA} {
			key := rrset.Key{Name: name, Type: t}
			was, _ := old.Get(key)
			is, _ := z.Get(key)
			if !(z.IsApexData(key) || old.IsApexData(key)) || slices.Equal(was.Rdata, is.Rdata) {
				continue
			}
			changes = append(changes, fmt.Sprintf("%s %s instead of %s", key, valuesText(is), valuesText(was)))
		}
	}
	slices.Sort(changes)
	return strings.Join(changes, "; ")
}

func valuesText(s rrset.RRset) string {
	return cmp.Or(strings.Join(s.Rdata, ", "), "none")
}

// Package model says what zones have to hold. It is written from docs/reference/zones.md alone, slow and simple, comparing every
// declaration with every other, and shares no code with what tests compare with it.
package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Declaration is what an object, or one endpoint of a DNSEndpoint, declares at one name.
type Declaration struct {
	By      *Object
	Index   int
	Name    string // complete, with the final dot
	Type    string
	TTL     int64
	Rdata   []string
	Invalid bool
}

// Key returns name and type.
func (d *Declaration) Key() string { return d.Name + " " + d.Type }

func (d *Declaration) isType(rrtypes ...string) bool { return slices.Contains(rrtypes, d.Type) }

// Verdict is what becomes of a declaration.
type Verdict struct {
	Invalid bool
	// Winner is the older declaration that excludes this one.
	Winner *Declaration
	// Blocked is true when foreign data excludes it.
	Blocked bool
}

// Accepted reports whether the declaration is valid and no older one excludes it.
func (v Verdict) Accepted() bool { return !v.Invalid && v.Winner == nil }

// RRset is one RRset of a zone.
type RRset struct {
	TTL   int64
	Rdata []string
}

// Zone is what a zone's object declares, and what others put into the zone.
type Zone struct {
	Object, Name string
	Created      time.Time
	UID          string
	TTL          int64
	// NameServers are the names that the zone object itself lists as name servers, Addresses their addresses.
	NameServers []string
	Addresses   map[string][]string
	// Foreign is what people put there by hand, by "name type".
	Foreign map[string]RRset
}

// Servers are the Service addresses of a zone's servers, in their order.
type Servers struct{ Primaries, Secondaries []string }

// Expect returns what the zone has to hold, by "name type", and the verdict on every declaration. Name servers without an
// address get those of servers.
func (z *Zone) Expect(declared []*Declaration, servers Servers) (map[string]RRset, map[*Declaration]Verdict) {
	verdicts := map[*Declaration]Verdict{}
	hosts := slices.Clone(z.NameServers)
	for _, d := range declared {
		if d.isType("NS") && !d.Invalid {
			hosts = append(hosts, d.Rdata...)
		}
	}
	accepted := z.ownDeclarations()
	for _, d := range oldestFirst(declared) {
		winner := z.firstClash(d, accepted, hosts)
		verdicts[d] = Verdict{Invalid: d.Invalid, Winner: winner}
		if winner == nil && !d.Invalid {
			accepted = append(accepted, d)
		}
	}
	content := mergeDeclarations(accepted)
	z.addNameServerAddresses(content, servers)
	for _, d := range accepted {
		if z.isBlocked(d, content) {
			verdicts[d] = Verdict{Blocked: true}
		}
	}
	for d, v := range verdicts {
		if v.Blocked {
			delete(content, d.Key())
		}
	}
	for key, a := range z.Foreign {
		if _, ours := content[key]; !ours {
			content[key] = a
		}
	}
	return content, verdicts
}

// ownDeclarations returns the declarations of the zone object itself, which come before all others.
func (z *Zone) ownDeclarations() []*Declaration {
	ns := &Declaration{Name: z.Name, Type: "NS", TTL: z.TTL, Rdata: z.NameServers}
	all := []*Declaration{ns}
	for _, server := range slices.Sorted(maps.Keys(z.Addresses)) {
		if IsWithin(server, z.Name) {
			all = append(all, &Declaration{Name: server, Type: "A", TTL: z.TTL, Rdata: z.Addresses[server]})
		}
	}
	return all
}

// oldestFirst returns the declarations by age. Those of one second are ordered by name.
func oldestFirst(declared []*Declaration) []*Declaration {
	return slices.SortedFunc(slices.Values(declared), func(a, b *Declaration) int {
		return cmp.Or(a.By.Created.Compare(b.By.Created), cmp.Compare(a.By.Name, b.By.Name), cmp.Compare(a.By.Kind, b.By.Kind),
			cmp.Compare(a.By.UID, b.By.UID), cmp.Compare(a.Index, b.Index))
	})
}

// firstClash returns the first of the accepted declarations that excludes another one.
func (z *Zone) firstClash(d *Declaration, accepted []*Declaration, hosts []string) *Declaration {
	for _, a := range accepted {
		if z.clashes(a, d, hosts) || z.clashes(d, a, hosts) {
			return a
		}
	}
	return nil
}

// clashes reports whether a, for what it is, cannot stand beside b. The caller asks in both directions.
func (z *Zone) clashes(a, b *Declaration, hosts []string) bool {
	if a.Invalid || b.Invalid {
		return false
	}
	switch {
	case a.isType("CNAME") && b.isType("CNAME"):
		return a.Name == b.Name && a.Rdata[0] != b.Rdata[0]
	case a.isType("CNAME") && b.isType("NS") && b.Name == z.Name && slices.Contains(b.Rdata, a.Name):
		return true
	case a.isType("CNAME"):
		return a.Name == b.Name
	case a.isType("NS") && a.Name != z.Name:
		glue := b.isType("A", "AAAA") && slices.Contains(hosts, b.Name)
		return IsWithin(b.Name, a.Name) && !glue && !(b.isType("NS") && b.Name == a.Name)
	}
	return false
}

// mergeDeclarations puts declarations of one name and type together, with the lowest TTL.
func mergeDeclarations(accepted []*Declaration) map[string]RRset {
	content := map[string]RRset{}
	for _, d := range accepted {
		a, exists := content[d.Key()]
		if !exists || d.TTL < a.TTL {
			a.TTL = d.TTL
		}
		a.Rdata = append(slices.Clone(a.Rdata), d.Rdata...)
		content[d.Key()] = a
	}
	return content
}

// addNameServerAddresses adds addresses for name servers inside the zone that have none, first those that the zone object names: each has
// one server's, if there are as many, and every primary counts.
func (z *Zone) addNameServerAddresses(content map[string]RRset, servers Servers) {
	var names []string
	for _, server := range slices.Concat(z.NameServers, slices.Sorted(slices.Values(content[z.Name+" NS"].Rdata))) {
		_, v4 := content[server+" A"]
		_, v6 := content[server+" AAAA"]
		if IsWithin(server, z.Name) && !v4 && !v6 && !slices.Contains(names, server) {
			names = append(names, server)
		}
	}
	more := min(max(0, len(names)-len(servers.Primaries)), len(servers.Secondaries))
	addresses := slices.Concat(servers.Primaries, servers.Secondaries[:more])
	for i := range max(len(names), len(addresses)) {
		if len(names) == 0 || len(addresses) == 0 {
			break
		}
		name := names[i%len(names)]
		rdata := append(content[name+" A"].Rdata, addresses[i%len(addresses)])
		content[name+" A"] = RRset{z.TTL, rdata}
	}
}

// isBlocked reports whether foreign data makes an RRset impossible: a CNAME stands alone at its name.
func (z *Zone) isBlocked(d *Declaration, content map[string]RRset) bool {
	for key := range z.Foreign {
		name, rrtype, _ := strings.Cut(key, " ")
		_, ours := content[key]
		if name == d.Name && !ours && (rrtype == "CNAME" || d.isType("CNAME")) {
			return true
		}
	}
	return false
}

// Lines returns a zone's content, one sorted line for each RRset.
func Lines(content map[string]RRset) []string {
	var lines []string
	for key, a := range content {
		name, rrtype, _ := strings.Cut(key, " ")
		lines = append(lines, Line(name, uint32(a.TTL), rrtype, slices.Clone(a.Rdata)...))
	}
	slices.Sort(lines)
	return lines
}

// IsWithin reports whether a name is the zone's own or below it.
func IsWithin(name, zone string) bool { return name == zone || strings.HasSuffix(name, "."+zone) }

// Line returns an RRset as tests write it, such as "www.example.com. 300 A 192.0.2.1 | 192.0.2.2".
func Line(name string, ttl uint32, rrtype string, rdata ...string) string {
	slices.Sort(rdata)
	return fmt.Sprintf("%s %d %s %s", name, ttl, rrtype, strings.Join(slices.Compact(rdata), " | "))
}

package integration

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// What belongs into zones, told a second time: written from docs/reference/zones.md alone, slow and simple, comparing
// every declaration with every other. It shares no code with what it judges.

// declaration is what one object, or one endpoint of a DNSEndpoint, says about one name.
type declaration struct {
	by      *thing
	index   int
	name    string // complete, with the final dot
	rrtype  string
	ttl     int64
	rdata   []string
	invalid bool
}

func (d *declaration) key() string { return d.name + " " + d.rrtype }

func (d *declaration) is(rrtypes ...string) bool { return slices.Contains(rrtypes, d.rrtype) }

// verdict is what becomes of a declaration.
type verdict struct {
	invalid bool
	// loses to this declaration, which is older.
	winner *declaration
	// blocked by what somebody else put into the zone.
	blocked bool
}

func (v verdict) accepted() bool { return !v.invalid && v.winner == nil }

// answer is one RRset of a zone.
type answer struct {
	ttl   int64
	rdata []string
}

// modelZone is a zone: what its object says, and what others put into it.
type modelZone struct {
	object, name string
	created      time.Time
	uid          string
	ttl          int64
	// servers are the names that the zone object itself lists as name servers, addresses what it says of them.
	servers   []string
	addresses map[string][]string
	// foreign is what people put there by hand, by "name type".
	foreign map[string]answer
}

// expect gives what the zone holds, by "name type", and what becomes of every declaration. Name servers without an
// address get those of fallback.
func (z *modelZone) expect(declared []*declaration, fallback []string) (map[string]answer, map[*declaration]verdict) {
	verdicts := map[*declaration]verdict{}
	hosts := slices.Clone(z.servers)
	for _, d := range declared {
		if d.is("NS") && !d.invalid {
			hosts = append(hosts, d.rdata...)
		}
	}
	accepted := z.own()
	for _, d := range oldestFirst(declared) {
		winner := z.firstClash(d, accepted, hosts)
		verdicts[d] = verdict{invalid: d.invalid, winner: winner}
		if winner == nil && !d.invalid {
			accepted = append(accepted, d)
		}
	}
	content := unite(accepted)
	z.giveAddresses(content, fallback)
	for _, d := range accepted {
		if z.isBlocked(d, content) {
			verdicts[d] = verdict{blocked: true}
		}
	}
	for d, v := range verdicts {
		if v.blocked {
			delete(content, d.key())
		}
	}
	for key, a := range z.foreign {
		if _, ours := content[key]; !ours {
			content[key] = a
		}
	}
	return content, verdicts
}

// own are the declarations of the zone object itself, which come before all others.
func (z *modelZone) own() []*declaration {
	ns := &declaration{name: z.name, rrtype: "NS", ttl: z.ttl, rdata: z.servers}
	all := []*declaration{ns}
	for _, server := range slices.Sorted(maps.Keys(z.addresses)) {
		if within(server, z.name) {
			all = append(all, &declaration{name: server, rrtype: "A", ttl: z.ttl, rdata: z.addresses[server]})
		}
	}
	return all
}

func oldestFirst(declared []*declaration) []*declaration {
	return slices.SortedFunc(slices.Values(declared), func(a, b *declaration) int {
		return cmp.Or(a.by.created.Compare(b.by.created), cmp.Compare(a.by.name, b.by.name), cmp.Compare(a.by.kind, b.by.kind),
			cmp.Compare(a.by.uid, b.by.uid), cmp.Compare(a.index, b.index))
	})
}

// firstClash is the first of the accepted declarations that excludes another one.
func (z *modelZone) firstClash(d *declaration, accepted []*declaration, hosts []string) *declaration {
	for _, a := range accepted {
		if z.clash(a, d, hosts) || z.clash(d, a, hosts) {
			return a
		}
	}
	return nil
}

// clash tells whether a, for what it is, cannot stand beside b. It is asked in both directions.
func (z *modelZone) clash(a, b *declaration, hosts []string) bool {
	if a.invalid || b.invalid {
		return false
	}
	switch {
	case a.is("CNAME") && b.is("CNAME"):
		return a.name == b.name && a.rdata[0] != b.rdata[0]
	case a.is("CNAME") && b.is("NS") && b.name == z.name && slices.Contains(b.rdata, a.name):
		return true
	case a.is("CNAME"):
		return a.name == b.name
	case a.is("NS") && a.name != z.name:
		glue := b.is("A", "AAAA") && slices.Contains(hosts, b.name)
		return within(b.name, a.name) && !glue && !(b.is("NS") && b.name == a.name)
	}
	return false
}

// unite puts declarations of one name and type together, with the lowest TTL.
func unite(accepted []*declaration) map[string]answer {
	content := map[string]answer{}
	for _, d := range accepted {
		a, exists := content[d.key()]
		if !exists || d.ttl < a.ttl {
			a.ttl = d.ttl
		}
		a.rdata = append(slices.Clone(a.rdata), d.rdata...)
		content[d.key()] = a
	}
	return content
}

// giveAddresses gives name servers of the zone that are inside it and have no address those of its primaries.
func (z *modelZone) giveAddresses(content map[string]answer, fallback []string) {
	for _, server := range content[z.name+" NS"].rdata {
		_, v4 := content[server+" A"]
		_, v6 := content[server+" AAAA"]
		if within(server, z.name) && !v4 && !v6 {
			content[server+" A"] = answer{z.ttl, fallback}
		}
	}
}

// isBlocked tells whether foreign data makes an RRset impossible: a CNAME stands alone at its name.
func (z *modelZone) isBlocked(d *declaration, content map[string]answer) bool {
	for key := range z.foreign {
		name, rrtype, _ := strings.Cut(key, " ")
		_, ours := content[key]
		if name == d.name && !ours && (rrtype == "CNAME" || d.is("CNAME")) {
			return true
		}
	}
	return false
}

// linesOf writes a zone's content as copyOf has it.
func linesOf(content map[string]answer) []string {
	var lines []string
	for key, a := range content {
		name, rrtype, _ := strings.Cut(key, " ")
		lines = append(lines, line(name, uint32(a.ttl), rrtype, slices.Clone(a.rdata)...)) //nolint:gosec // a test's own
	}
	slices.Sort(lines)
	return lines
}

// within tells whether a name is a zone's own or below it.
func within(name, zone string) bool { return name == zone || strings.HasSuffix(name, "."+zone) }

// The examples of docs/reference/zones.md, so that the model that judges others has been judged itself.
func TestRandomModel(t *testing.T) {
	old, young := &thing{name: "old", created: time.Unix(1, 0)}, &thing{name: "young", created: time.Unix(2, 0)}
	say := func(by *thing, name, rrtype string, ttl int64, rdata ...string) *declaration {
		if name += ".example.com."; strings.HasPrefix(name, "@.") {
			name = "example.com."
		}
		return &declaration{by: by, name: name, rrtype: rrtype, ttl: ttl, rdata: rdata}
	}
	apex := []string{"example.com. 3600 NS ns1.example.com.", "ns1.example.com. 3600 A 10.96.0.17"}
	for name, c := range map[string]struct {
		declared []*declaration
		foreign  map[string]answer
		want     []string
		losers   int
	}{
		"united, lowest TTL": {
			[]*declaration{say(old, "www", "A", 300, "192.0.2.2"), say(young, "www", "A", 60, "192.0.2.1", "192.0.2.2")},
			nil, []string{"www.example.com. 60 A 192.0.2.1 | 192.0.2.2"}, 0},
		"an alias beside older data": {
			[]*declaration{say(young, "www", "CNAME", 300, "x."), say(old, "www", "A", 300, "192.0.2.1")},
			nil, []string{"www.example.com. 300 A 192.0.2.1"}, 1},
		"data beside an older alias": {
			[]*declaration{say(old, "www", "CNAME", 300, "x."), say(young, "www", "A", 300, "192.0.2.1")},
			nil, []string{"www.example.com. 300 CNAME x."}, 1},
		"two aliases": {
			[]*declaration{say(young, "www", "CNAME", 300, "y."), say(old, "www", "CNAME", 300, "x.")},
			nil, []string{"www.example.com. 300 CNAME x."}, 1},
		"an alias of the zone's name server": {
			[]*declaration{say(old, "ns1", "CNAME", 300, "x.")}, nil, nil, 1},
		"below a delegation": {
			[]*declaration{say(old, "team", "NS", 300, "ns.team.example.com."), say(young, "ns.team", "A", 300, "192.0.2.1"),
				say(young, "www.team", "A", 300, "192.0.2.1"), say(young, "team", "NS", 300, "ns.else.")},
			nil, []string{"ns.team.example.com. 300 A 192.0.2.1", "team.example.com. 300 NS ns.else. | ns.team.example.com."}, 1},
		"a delegation above older data": {
			[]*declaration{say(young, "team", "NS", 300, "ns.else."), say(old, "www.team", "A", 300, "192.0.2.1")},
			nil, []string{"www.team.example.com. 300 A 192.0.2.1"}, 1},
		"foreign": {
			[]*declaration{say(old, "www", "CNAME", 300, "x."), say(old, "a", "A", 300, "192.0.2.1")},
			map[string]answer{"www.example.com. TXT": {60, []string{`"x"`}}, "a.example.com. A": {60, []string{"192.0.2.9"}}},
			[]string{`www.example.com. 60 TXT "x"`, "a.example.com. 300 A 192.0.2.1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			zone := &modelZone{name: "example.com.", ttl: 3600, servers: []string{"ns1.example.com."}, foreign: c.foreign}
			content, verdicts := zone.expect(c.declared, []string{"10.96.0.17"})
			want := slices.Sorted(slices.Values(slices.Concat(apex, c.want)))
			if diff := gocmp.Diff(want, linesOf(content)); diff != "" {
				t.Error(diff)
			}
			losers := 0
			for _, v := range verdicts {
				if v.winner != nil {
					losers++
				}
			}
			if losers != c.losers {
				t.Errorf("%d losers, want %d", losers, c.losers)
			}
		})
	}
}

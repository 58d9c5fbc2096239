package model

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The examples of docs/reference/zones.md: what other tests are compared with is tested itself.
func TestExpect(t *testing.T) {
	old, young := &Object{Name: "old", Created: time.Unix(1, 0)}, &Object{Name: "young", Created: time.Unix(2, 0)}
	say := func(by *Object, name, rrtype string, ttl int64, rdata ...string) *Declaration {
		if name += ".example.com."; strings.HasPrefix(name, "@.") {
			name = "example.com."
		}
		return &Declaration{By: by, Name: name, Type: rrtype, TTL: ttl, Rdata: rdata}
	}
	apex := []string{"example.com. 3600 NS ns1.example.com.", "ns1.example.com. 3600 A 10.96.0.17"}
	for name, c := range map[string]struct {
		declared []*Declaration
		foreign  map[string]RRset
		want     []string
		losers   int
	}{
		"united, lowest TTL": {
			[]*Declaration{say(old, "www", "A", 300, "192.0.2.2"), say(young, "www", "A", 60, "192.0.2.1", "192.0.2.2")},
			nil, []string{"www.example.com. 60 A 192.0.2.1 | 192.0.2.2"}, 0},
		"an alias beside older data": {
			[]*Declaration{say(young, "www", "CNAME", 300, "x."), say(old, "www", "A", 300, "192.0.2.1")},
			nil, []string{"www.example.com. 300 A 192.0.2.1"}, 1},
		"data beside an older alias": {
			[]*Declaration{say(old, "www", "CNAME", 300, "x."), say(young, "www", "A", 300, "192.0.2.1")},
			nil, []string{"www.example.com. 300 CNAME x."}, 1},
		"two aliases": {
			[]*Declaration{say(young, "www", "CNAME", 300, "y."), say(old, "www", "CNAME", 300, "x.")},
			nil, []string{"www.example.com. 300 CNAME x."}, 1},
		"an alias of the zone's name server": {
			[]*Declaration{say(old, "ns1", "CNAME", 300, "x.")}, nil, nil, 1},
		"below a delegation": {
			[]*Declaration{say(old, "team", "NS", 300, "ns.team.example.com."), say(young, "ns.team", "A", 300, "192.0.2.1"),
				say(young, "www.team", "A", 300, "192.0.2.1"), say(young, "team", "NS", 300, "ns.else.")},
			nil, []string{"ns.team.example.com. 300 A 192.0.2.1", "team.example.com. 300 NS ns.else. | ns.team.example.com."}, 1},
		"a delegation above older data": {
			[]*Declaration{say(young, "team", "NS", 300, "ns.else."), say(old, "www.team", "A", 300, "192.0.2.1")},
			nil, []string{"www.team.example.com. 300 A 192.0.2.1"}, 1},
		"foreign": {
			[]*Declaration{say(old, "www", "CNAME", 300, "x."), say(old, "a", "A", 300, "192.0.2.1")},
			map[string]RRset{"www.example.com. TXT": {60, []string{`"x"`}}, "a.example.com. A": {60, []string{"192.0.2.9"}}},
			[]string{`www.example.com. 60 TXT "x"`, "a.example.com. 300 A 192.0.2.1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			zone := &Zone{Name: "example.com.", TTL: 3600, NameServers: []string{"ns1.example.com."}, Foreign: c.foreign}
			content, verdicts := zone.Expect(c.declared, Servers{Primaries: []string{"10.96.0.17"}, Secondaries: []string{"10.96.0.18"}})
			want := slices.Sorted(slices.Values(slices.Concat(apex, c.want)))
			if diff := cmp.Diff(want, Lines(content)); diff != "" {
				t.Error(diff)
			}
			losers := 0
			for _, v := range verdicts {
				if v.Winner != nil {
					losers++
				}
			}
			if losers != c.losers {
				t.Errorf("%d losers, want %d", losers, c.losers)
			}
		})
	}
}

// Each name server has one server's address, and all primaries count.
func TestAddNameServerAddresses(t *testing.T) {
	servers := Servers{Primaries: []string{"10.96.0.1", "10.96.0.2"}, Secondaries: []string{"10.96.0.3"}}
	zone := &Zone{Name: "example.com.", TTL: 60, NameServers: []string{"ns9.example.com."}}
	for names, want := range map[string]string{
		"ns9": "ns9:10.96.0.1,10.96.0.2", "ns1 ns9": "ns1:10.96.0.2 ns9:10.96.0.1",
		"ns1 ns2 ns3 ns9": "ns1:10.96.0.2 ns2:10.96.0.3 ns3:10.96.0.1 ns9:10.96.0.1",
	} {
		content := map[string]RRset{}
		ns := RRset{}
		for _, name := range strings.Fields(names) {
			ns.Rdata = append(ns.Rdata, name+".example.com.")
		}
		content["example.com. NS"] = ns
		zone.addNameServerAddresses(content, servers)
		var got []string
		for _, name := range strings.Fields(names) {
			got = append(got, name+":"+strings.Join(content[name+".example.com. A"].Rdata, ","))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s, want %s", s, want)
		}
	}
}

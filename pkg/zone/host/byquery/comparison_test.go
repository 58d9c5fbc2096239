package byquery

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// What was found equal is not asked again, however the zone changes meanwhile; what differs is asked until it does not.
func TestComparison(t *testing.T) {
	var all []rrset.RRset
	for n := range 2*maxCompared + 1 {
		all = append(all, address(fmt.Sprint("r", n), "192.0.2.1"))
	}
	s := &server{serial: 1, sets: contentOf(all...)}
	wrong := all[7]
	s.sets[wrong.Key] = address("r7", "192.0.2.66")
	c := &host.Comparison{}
	contents := func() *observe.Mirror { return observe.NewMirror(zone, s.soa(), all...) }
	differs := false
	for range 3 {
		err := Continue(t.Context(), c, s.ask, contents())
		if err == nil {
			t.Fatal("a server with other data passes")
		}
		differs = differs || errors.Is(err, host.ErrDiffers)
	}
	if !differs {
		t.Error("nothing is said to differ")
	}
	s.sets[wrong.Key], s.serial = wrong, 2
	if err := Continue(t.Context(), c, s.ask, observe.NewMirror(zone, rrset.SOA{Serial: 1}, all...)); !errors.Is(err, host.ErrChanged) {
		t.Errorf("of another version: %v", err)
	}
	for tries := 0; Continue(t.Context(), c, s.ask, contents()) != nil; tries++ {
		if tries > 3 {
			t.Fatal("no end")
		}
	}
	s.asked = nil
	more := address("more", "192.0.2.2")
	all, s.sets[more.Key] = append(all, more), more
	if err := Continue(t.Context(), c, s.ask, contents()); err != nil || !slices.Equal(s.asked, []string{more.Name}) {
		t.Errorf("asked %v: %v", s.asked, err)
	}
	silent := &server{serial: 2, sets: s.sets, silent: wrong.Name}
	if err := Continue(t.Context(), &host.Comparison{}, silent.ask, observe.NewMirror(zone, s.soa(), wrong)); err == nil {
		t.Error("a server that does not answer passes")
	}
}

// What a server holds and does not answer with is not asked for.
func TestIsAnswered(t *testing.T) {
	set := func(name string, rrtype uint16) rrset.RRset {
		if name != "" {
			name += "."
		}
		return rrset.RRset{Key: rrset.Key{Name: name + zone, Type: rrtype}, TTL: 60, Rdata: []string{"x"}}
	}
	answered := []rrset.RRset{
		set("", dns.TypeNS), set("", dns.TypeA), set("www", dns.TypeA), set("*", dns.TypeTXT), set("sub", dns.TypeNS), set("sub", dns.TypeDS), set("d", dns.TypeDNAME), set("d", dns.TypeA),
	}
	hidden := []rrset.RRset{
		set("ns.sub", dns.TypeA), set("sub", dns.TypeTXT), set("a.b.sub", dns.TypeNS), set("www.d", dns.TypeA), set("www", dns.TypeRRSIG), set("", dns.TypeDNSKEY),
	}
	m := observe.NewMirror(zone, rrset.SOA{}, slices.Concat(answered, hidden)...)
	for i, s := range slices.Concat(answered, hidden) {
		if is := isAnswered(m, s.Key); is != (i < len(answered)) {
			t.Errorf("%s: %t", s.Key, is)
		}
	}
}

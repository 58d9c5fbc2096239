package source_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/test/named"
)

// Whatever a zone held before, planning and applying leads to exactly what is desired, and then there is nothing to do.
func TestBINDFollowsPlans(t *testing.T) {
	const name = "example.com."
	first := source.OddZone(t, rand.New(rand.NewPCG(1, 5)), name, 40)
	server := named.Start(t, named.Options{Zones: []named.Zone{{Name: name, File: source.ZoneFile(first, 1)}}, Extra: source.ExtraOptions})
	provider := rfc2136.New(rfc2136.Options{})
	defer provider.Close()
	target := rfc2136.Target{Server: server.Addr, Zone: name, Key: &server.Update}
	for seed := range uint64(40) {
		z := source.OddZone(t, rand.New(rand.NewPCG(seed, 6)), name, 40)
		have, soa := source.Served(t, server, name)
		owned := func(rrset.Key) bool { return true }
		changes := plan.Calculate(z, plan.Map(have), owned, z.SOA, soa)
		next := z.SOA
		next.Serial = rrset.AddSerial(soa.Serial, uint32(rfc2136.Batches(changes)+1))
		result, err := provider.Apply(t.Context(), target, changes, soa, next)
		if err != nil || len(result.Refused) > 0 {
			var refused []error
			for _, key := range slices.SortedFunc(maps.Keys(result.Refused), rrset.Key.Compare) {
				refused = append(refused, fmt.Errorf("%s: %w", key, result.Refused[key]))
			}
			t.Fatalf("seed %d: %v, refused: %v", seed, err, errors.Join(refused...))
		}
		got, soa := source.Served(t, server, name)
		if diff := cmp.Diff(source.Wanted(z), got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if again := plan.Calculate(z, plan.Map(got), owned, z.SOA, soa); again.HasChanges() {
			t.Fatalf("seed %d: a second plan has changes: %+v", seed, again)
		}
	}
}

// Names and targets are answered in upper and lower case as they are declared, although they are compared without (RFC 4343).
func TestBINDKeepsSpelling(t *testing.T) {
	const name = "example.com."
	z := source.SpelledZone(t)
	server := named.Start(t, named.Options{Zones: []named.Zone{{Name: name, File: "example.com. 1 SOA a. b. 1 2 3 4 5\nexample.com. 1 NS ns.example.org.\n"}}, Extra: source.ExtraOptions})
	provider := rfc2136.New(rfc2136.Options{})
	defer provider.Close()
	have, soa := source.Served(t, server, name)
	changes := plan.Calculate(z, plan.Map(have), func(rrset.Key) bool { return true }, z.SOA, soa)
	next := z.SOA
	next.Serial = soa.Serial + 1
	if _, err := provider.Apply(t.Context(), rfc2136.Target{Server: server.Addr, Zone: name, Key: &server.Update}, changes, soa, next); err != nil {
		t.Fatal(err)
	}
	var got []string
	for question, rrtype := range map[string]uint16{
		"_ipp._tcp.example.com.": dns.TypePTR, "mixed.example.com.": dns.TypeMX, "alias.example.com.": dns.TypeCNAME,
	} {
		m := new(dns.Msg).SetQuestion(question, rrtype)
		reply, err := dns.ExchangeContext(t.Context(), m, server.Addr.String())
		if err != nil {
			t.Fatal(err)
		}
		for _, rr := range reply.Answer {
			got = append(got, strings.TrimPrefix(rr.String(), rr.Header().String()))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"10 Mail.Example.org.", `Office\ Printer._ipp._tcp.example.com.`, "Web.example.com."}, got); diff != "" {
		t.Error(diff)
	}
	if again, _ := source.Served(t, server, name); !cmp.Equal(source.Wanted(z), again, cmpopts.IgnoreFields(rrset.RRset{}, "Spelling")) {
		t.Errorf("a transfer has other data: %s", cmp.Diff(source.Wanted(z), again))
	}
}

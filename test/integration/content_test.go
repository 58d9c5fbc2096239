package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/model"
)

// copyOf is what one server holds of a zone: its serial and one line for each RRset but the SOA, sorted, such as
// "www.example.com. 300 A 192.0.2.1 | 192.0.2.2".
type copyOf struct {
	serial uint32
	lines  []string
}

// transferZone reads a zone from a server by AXFR.
func transferZone(ctx context.Context, server, zone string, key *wire.Key) (copyOf, error) {
	addr, err := netip.ParseAddrPort(server)
	if err != nil {
		return copyOf{}, err
	}
	// The time limit of a test is not one of the server: when it ends, the error is the last one before.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	result, err := wire.Transfer(ctx, addr, dns.Fqdn(zone), nil, key)
	if err != nil {
		return copyOf{}, err
	}
	type head struct {
		name, rrtype string
		ttl          uint32
	}
	sets := map[head][]string{}
	for _, r := range result.Records {
		h := head{r.Name, dns.Type(r.Type).String(), r.TTL}
		sets[h] = append(sets[h], r.Rdata)
	}
	c := copyOf{serial: result.SOA.Serial}
	for h, rdata := range sets {
		c.lines = append(c.lines, model.Line(h.name, h.ttl, h.rrtype, rdata...))
	}
	slices.Sort(c.lines)
	return c, nil
}

// copies reads the zone from every server, by pod name.
func (f *fixture) copies(ctx context.Context, zone string, key *wire.Key) (map[string]copyOf, error) {
	servers, err := f.servers(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]copyOf{}
	var errs []error
	for pod, server := range servers {
		c, err := transferZone(ctx, server, zone, key)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", pod, err))
			continue
		}
		all[pod] = c
	}
	return all, errors.Join(errs...)
}

// waitSameContent waits until all servers hold the fixture's zone on one serial and with one content that passes the check,
// and returns that content.
func (f *fixture) waitSameContent(limit kube.Patience, check func(lines []string) error) copyOf {
	f.Helper()
	key := f.key(named.KeyTransfer)
	var agreed copyOf
	kube.Eventually(f, limit, func(ctx context.Context) error {
		all, err := f.copies(ctx, f.zone, key)
		if err != nil {
			return err
		}
		if f.size > 0 && len(all) != f.size {
			return fmt.Errorf("%d servers have the zone, want %d", len(all), f.size)
		}
		if agreed, err = commonCopy(all); err != nil {
			return err
		}
		return check(agreed.lines)
	})
	return agreed
}

// commonCopy returns the copy that all servers have.
func commonCopy(all map[string]copyOf) (copyOf, error) {
	pods := slices.Sorted(maps.Keys(all))
	first := all[pods[0]]
	for _, pod := range pods[1:] {
		if c := all[pod]; c.serial != first.serial || !slices.Equal(c.lines, first.lines) {
			return first, fmt.Errorf("%s (serial %d) and %s (serial %d) differ:\n%s", pods[0], first.serial, pod, c.serial,
				strings.Join(difference(first.lines, c.lines), "\n"))
		}
	}
	return first, nil
}

// difference lists what only one of two sorted copies has: "-" is missing from the second, "+" from the first.
func difference(first, second []string) []string {
	var lines []string
	for _, l := range first {
		if _, ok := slices.BinarySearch(second, l); !ok {
			lines = append(lines, "- "+l)
		}
	}
	for _, l := range second {
		if _, ok := slices.BinarySearch(first, l); !ok {
			lines = append(lines, "+ "+l)
		}
	}
	return lines
}

// contains checks that a copy has each of the lines.
func contains(want ...string) func([]string) error {
	return func(lines []string) error {
		for _, l := range want {
			if !slices.Contains(lines, l) {
				return fmt.Errorf("%q is not in the zone:\n%s", l, strings.Join(lines, "\n"))
			}
		}
		return nil
	}
}

// containsNo checks that a copy has nothing at the names.
func containsNo(names ...string) func([]string) error {
	return func(lines []string) error {
		for _, l := range lines {
			for _, name := range names {
				if strings.HasPrefix(l, name+" ") {
					return fmt.Errorf("%q is in the zone", l)
				}
			}
		}
		return nil
	}
}

// passesBoth passes what both checks pass.
func passesBoth(a, b func([]string) error) func([]string) error {
	return func(lines []string) error { return errors.Join(a(lines), b(lines)) }
}

// updateByHand sends an update to the named of a pod behind the controller's back, as an administrator with nsupdate would: no
// prerequisite, and no serial, which BIND then counts up by itself.
func (f *fixture) updateByHand(pod string, edit func(*dns.Msg)) {
	f.Helper()
	key := f.key(named.KeyUpdate)
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		return sendUpdate(ctx, servers[pod], f.zone, key, edit)
	})
}

// sendUpdate sends one dynamic update.
func sendUpdate(ctx context.Context, server, zone string, key *wire.Key, edit func(*dns.Msg)) error {
	addr, err := netip.ParseAddrPort(server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := wire.Dial(ctx, addr, key)
	if err != nil {
		return err
	}
	defer conn.Close()
	m := new(dns.Msg)
	m.SetUpdate(dns.Fqdn(zone))
	edit(m)
	reply, err := conn.Exchange(ctx, m)
	if err != nil {
		return err
	}
	if reply.Rcode != dns.RcodeSuccess {
		return fmt.Errorf("the update by hand was answered %s", dns.RcodeToString[reply.Rcode])
	}
	return nil
}

// addRecords makes an update that adds records, given as in a zone file.
func addRecords(records ...string) func(*dns.Msg) {
	return func(m *dns.Msg) { m.Insert(parseRecords(records)) }
}

// removeRRsets makes an update that removes the RRsets of the records, given as in a zone file.
func removeRRsets(records ...string) func(*dns.Msg) {
	return func(m *dns.Msg) { m.RemoveRRset(parseRecords(records)) }
}

func parseRecords(records []string) []dns.RR {
	rrs := make([]dns.RR, len(records))
	for i, record := range records {
		rr, err := dns.NewRR(record)
		if err != nil {
			panic(err)
		}
		rrs[i] = rr
	}
	return rrs
}

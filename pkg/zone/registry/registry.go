package registry

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/chain"
)

const (
	// maxServers is how many name servers of a zone above are asked: the root and most top-level domains have 13 at most.
	maxServers = 16
	// maxConnections is how many connections all zones of a namespace have with zones above at the same time.
	maxConnections = 8
	// timeout bounds one question, lookTimeout all of them.
	timeout, lookTimeout = 3 * time.Second, 15 * time.Second
)

// Registry asks zones above. It is safe for concurrent use.
type Registry struct {
	// LookupNS finds the name servers of a zone, as net.Resolver.LookupNS does.
	LookupNS func(ctx context.Context, name string) ([]*net.NS, error)
	// Names finds their addresses.
	Names outbound.Resolver
	// Gate decides which addresses may be asked, and counts connections.
	Gate *outbound.Gate
	// Port is the one of name servers: 53.
	Port uint16
}

// New returns a Registry that uses the system's resolver.
func New(gate *outbound.Gate) *Registry {
	return &Registry{LookupNS: outbound.LookupNS, Names: outbound.Resolver{Permit: gate.Permits}, Gate: gate, Port: 53}
}

// Delegation is what a zone above says of a zone.
type Delegation struct {
	chain.Parent
	// servers are the addresses that were asked.
	servers []netip.AddrPort
}

// Find asks the name servers of the zone above a zone of a namespace for its DS records; name and nameServers, those of the zone itself, are
// canonical. It is nil if no zone above delegates the zone to one of them: whoever has the name there is somebody else. The error means that
// nobody can say: no server that answers delegates it so, and others are silent, or who they are is not known.
func (r *Registry) Find(ctx context.Context, namespace, name string, nameServers []string) (*Delegation, error) {
	ctx, cancel := context.WithTimeout(outbound.WithAccount(ctx, r.Gate.Account(namespace, "registries", maxConnections)), lookTimeout)
	defer cancel()
	parent, hosts, err := r.nameServersAbove(ctx, name)
	if err != nil || parent == "" {
		return nil, err
	}
	d := &Delegation{Parent: chain.Parent{Name: strings.TrimSuffix(parent, "."), IsElsewhere: true}, servers: r.addressesOf(ctx, hosts)}
	if parent == "." {
		d.Name = parent
	}
	delegates, silent := d.delegates(ctx, name, nameServers)
	if !delegates && silent == nil {
		return nil, nil
	}
	d.Servers = make([]chain.Answer, len(d.servers))
	var wg sync.WaitGroup
	for i, at := range d.servers {
		wg.Go(func() { d.Servers[i] = askDS(ctx, at, parent, name) })
	}
	wg.Wait()
	return d, silent
}

// nameServersAbove are the host names of the closest zone above that has name servers; none if there is no such zone.
func (r *Registry) nameServersAbove(ctx context.Context, name string) (parent string, hosts []string, err error) {
	for parent = rrset.ParentName(name); parent != ""; parent = rrset.ParentName(parent) {
		found, err := r.LookupNS(ctx, parent)
		if failure, ok := errors.AsType[*net.DNSError](err); ok && failure.IsNotFound {
			err = nil
		}
		if err != nil {
			return "", nil, err
		}
		for _, ns := range found {
			hosts = append(hosts, ns.Host)
		}
		if len(hosts) > 0 || parent == "." {
			break
		}
	}
	if len(hosts) == 0 {
		return "", nil, nil
	}
	slices.Sort(hosts)
	return parent, hosts[:min(len(hosts), maxServers)], nil
}

// addressesOf are one address of each name server; the zero value of one that has none that may be asked, which so stays silent.
func (r *Registry) addressesOf(ctx context.Context, hosts []string) []netip.AddrPort {
	servers := make([]netip.AddrPort, len(hosts))
	var wg sync.WaitGroup
	for i, host := range hosts {
		wg.Go(func() {
			if found, err := r.Names.Resolve(ctx, host); err == nil && len(found) > 0 {
				servers[i] = netip.AddrPortFrom(found[0], r.Port) // An IPv4 address, if there is one.
			}
		})
	}
	wg.Wait()
	return servers
}

// errSilent means that name servers of the zone above do not answer, and none of the others delegates the zone.
var errSilent = errors.New("name servers of the zone above do not answer")

// delegates reports whether a server delegates a zone to one of some name servers. One server that does is enough: that another one does not,
// because it is behind or fails, takes nothing back.
func (d *Delegation) delegates(ctx context.Context, name string, nameServers []string) (delegates bool, err error) {
	for _, at := range d.servers {
		reply := ask(ctx, at, name, dns.TypeNS)
		if reply == nil || reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError {
			err = errSilent
			continue
		}
		for _, rr := range slices.Concat(reply.Answer, reply.Ns) {
			ns, ok := rr.(*dns.NS)
			if ok && dns.CanonicalName(ns.Hdr.Name) == name && slices.Contains(nameServers, dns.CanonicalName(ns.Ns)) {
				return true, nil
			}
		}
	}
	return false, err
}

// askDS asks a server for the DS records of a zone. Only an answer with authority of the zone above counts.
func askDS(ctx context.Context, at netip.AddrPort, parent, name string) chain.Answer {
	reply := ask(ctx, at, name, dns.TypeDS)
	if reply == nil || !reply.Authoritative || reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError {
		return chain.Answer{}
	}
	var answer chain.Answer
	for _, rr := range reply.Answer {
		if k, ttl, rdata := rrset.FromRR(rr); k == (rrset.Key{Name: name, Type: dns.TypeDS}) && len(answer.DS) < maxDS {
			answer.DS, answer.TTL = append(answer.DS, rdata), max(answer.TTL, time.Duration(ttl)*time.Second)
		}
	}
	answer.IsKnown = len(answer.DS) > 0 || slices.ContainsFunc(reply.Ns, func(rr dns.RR) bool {
		soa, ok := rr.(*dns.SOA)
		return ok && dns.CanonicalName(soa.Hdr.Name) == parent
	})
	return answer
}

// maxDS bounds the DS records that are taken from an answer.
const maxDS = 64

// ask asks over TCP: what the answer leads to must not be forged by somebody who sees no packet. It is nil without a reply.
func ask(ctx context.Context, at netip.AddrPort, name string, rrtype uint16) *dns.Msg {
	if !at.IsValid() {
		return nil
	}
	reply, err := wire.Query(ctx, at, name, rrtype, wire.WithTCP(), wire.WithTimeout(timeout))
	if err != nil {
		return nil
	}
	return reply.Msg
}

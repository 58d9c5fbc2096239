package serving

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/ledger"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// AddProviders returns servers with those of providers among them, primaries first. One that two providers have is in it once. A
// provider without a UID stands for one that does not exist: it has one primary without an address, which says so. Secondaries by
// address are not among them: nothing is asked of a server that cannot tell us from others.
func AddProviders(servers []observe.Server, providers []*v1beta1.DNSProvider) []observe.Server {
	return addProviders(servers, slices.DeleteFunc(slices.Clone(providers), IsByAddress))
}

// ServersOf returns the servers of one provider, as AddProviders adds them, also those by address.
func ServersOf(p *v1beta1.DNSProvider) []observe.Server {
	return addProviders(nil, []*v1beta1.DNSProvider{p})
}

// IsByAddress reports whether a provider's secondaries have no key: they transfer zones, and are notified, by their addresses.
func IsByAddress(p *v1beta1.DNSProvider) bool {
	return p.Spec.Secondaries != nil && p.Spec.Secondaries.TransferKey == nil
}

func addProviders(servers []observe.Server, providers []*v1beta1.DNSProvider) []observe.Server {
	for _, p := range providers {
		for _, s := range serversOfProvider(p) {
			isSame := func(o observe.Server) bool { return o.Provider != "" && o.Addr.IsValid() && o.Addr == s.Addr }
			if !slices.ContainsFunc(servers, isSame) {
				servers = append(servers, s)
			}
		}
	}
	slices.SortStableFunc(servers, func(a, b observe.Server) int { return cmp.Compare(a.Role, b.Role) })
	return servers
}

// serversOfProvider returns the servers of a provider; those of host names with the addresses in its status.
func serversOfProvider(p *v1beta1.DNSProvider) (servers []observe.Server) {
	if problem := ProviderProblem(p); problem != "" {
		return []observe.Server{{Namespace: p.Namespace, Provider: p.Name, Pod: p.Name + "/", Role: observe.Primary, Message: problem}}
	}
	primaries, secondaries := DeclaredServers(p)
	for _, s := range primaries {
		servers = append(servers, providerServer(p, s, observe.Primary))
	}
	for _, s := range secondaries {
		servers = append(servers, providerServer(p, s, observe.Secondary))
	}
	if p.Spec.CoreDNS != nil {
		servers = replicasOf(p, servers)
	}
	return servers
}

// DeclaredServers returns the servers in a provider's specification by their roles.
func DeclaredServers(p *v1beta1.DNSProvider) (primaries, secondaries []v1beta1.ProviderServer) {
	switch {
	case p.Spec.RFC2136 != nil:
		return p.Spec.RFC2136.Primaries, p.Spec.RFC2136.Secondaries
	case p.Spec.Secondaries != nil:
		return nil, p.Spec.Secondaries.Servers
	case p.Spec.CoreDNS != nil:
		return p.Spec.CoreDNS.Servers.Addresses, nil
	}
	return nil, nil
}

// replicasOf returns the replicas of CoreDNS: those that are declared, or those of the Service, which the controller finds and which
// are in the provider's status. There is at least one, which says what is missing.
func replicasOf(p *v1beta1.DNSProvider, declared []observe.Server) []observe.Server {
	replicas, missing := declared, fmt.Sprintf("DNSProvider %s names no replica of CoreDNS that can be asked: set spec.coreDNS.servers.service or addresses", p.Name)
	if service := p.Spec.CoreDNS.Servers.Service; service != nil {
		missing = fmt.Sprintf("the endpoints of Service %s have not been looked up yet", service.Name)
		for _, known := range p.Status.Servers {
			s := observe.Server{Namespace: p.Namespace, Provider: p.Name, Pod: p.Name + "/" + known.Address, Role: observe.Primary}
			var err error
			if s.Addr, err = netip.ParseAddrPort(known.Address); err != nil {
				s.Message = known.Message
			}
			replicas = append(replicas, s)
		}
	}
	if len(replicas) == 0 {
		replicas = []observe.Server{{Namespace: p.Namespace, Provider: p.Name, Pod: p.Name + "/", Role: observe.Primary, Message: missing}}
	}
	for i := range replicas {
		replicas[i].Unsigned, replicas[i].Shared, replicas[i].ReadBy = true, true, v1beta1.ReadByQuery
	}
	return replicas
}

// ProviderProblem returns why no zone can be served by a provider, whatever its servers answer; empty if it can.
func ProviderProblem(p *v1beta1.DNSProvider) string {
	spec := p.Spec.RFC2136
	switch {
	case p.UID == "":
		return fmt.Sprintf("DNSProvider %s does not exist in this namespace: create it, or remove it from spec.providerRefs", p.Name)
	case IsByAddress(p):
		return ""
	case p.Spec.Secondaries != nil:
		if _, err := GuestKeyName(p.Namespace, p.Name); err != nil {
			return err.Error()
		}
		return ""
	case p.Spec.CoreDNS != nil:
		return coreDNSProblem(p)
	case spec == nil:
		return fmt.Sprintf("DNSProvider %s is of a type that this version does not support: use rfc2136 or secondaries", p.Name)
	}
	return ""
}

// unknownOwner stands for an owner whose name is not known yet.
const unknownOwner = "-"

// IsOwned reports whether values, not names, belong to a provider.
func IsOwned(p *v1beta1.DNSProvider) bool {
	return p.Spec.RFC2136 != nil && p.Spec.RFC2136.Ownership == v1beta1.OwnershipValues
}

// OwnerOf names a provider in the zones where values belong to it. A Kubernetes cluster is named by the provider or, if it does not, as given;
// without both the result is empty. The provider's namespace and name are part of it, so nobody can name another's in the same cluster.
func OwnerOf(p *v1beta1.DNSProvider, cluster string) string {
	if !IsOwned(p) || p.Spec.RFC2136.OwnerID == "" && cluster == "" {
		return ""
	}
	return ledger.OwnerName(cmp.Or(p.Spec.RFC2136.OwnerID, cluster), p.Namespace, p.Name)
}

func coreDNSProblem(p *v1beta1.DNSProvider) string {
	if s := p.Spec.CoreDNS.Servers.Service; s != nil && s.Namespace != "" && s.Namespace != p.Namespace {
		return fmt.Sprintf("DNSProvider %s names a Service of namespace %s in spec.coreDNS.servers.service, and may only name one of its own: create the provider there, or use addresses", p.Name, s.Namespace)
	}
	etcd := p.Spec.CoreDNS.Etcd
	n := slices.IndexFunc(etcd.Endpoints, func(e string) bool { return !strings.HasPrefix(e, "https://") })
	if n >= 0 && (etcd.CredentialsSecretRef != nil || etcd.TLSSecretRef != nil) {
		return fmt.Sprintf("DNSProvider %s has Secrets for etcd and the endpoint %s in spec.coreDNS.etcd.endpoints: they are used with https only, so change it to https://, or remove credentialsSecretRef and tlsSecretRef", p.Name, etcd.Endpoints[n])
	}
	return ""
}

// ServerAddress returns address and port of a provider's server, as in its status.
func ServerAddress(s v1beta1.ProviderServer) string {
	return net.JoinHostPort(s.Address, strconv.Itoa(int(cmp.Or(s.Port, 53))))
}

func providerServer(p *v1beta1.DNSProvider, declared v1beta1.ProviderServer, role observe.Role) observe.Server {
	s := observe.Server{Namespace: p.Namespace, Provider: p.Name, Pod: p.Name + "/" + ServerAddress(declared), Role: role}
	switch {
	case p.Spec.RFC2136 != nil:
		s.Shared, s.ReadBy = p.Spec.RFC2136.Writers == v1beta1.WritersShared, p.Spec.RFC2136.ReadBy
	case p.Spec.Secondaries != nil:
		s.ReadBy = p.Spec.Secondaries.ReadBy
	}
	if IsOwned(p) {
		if s.Owner = cmp.Or(OwnerOf(p, ""), p.Status.Owner); s.Owner == "" {
			s.Owner, s.Message = unknownOwner, "the name under which values are kept in the zone is not known yet; see status.owner of the DNSProvider"
			return s
		}
	}
	port := uint16(cmp.Or(declared.Port, 53)) //nolint:gosec // validated
	if ip, err := netip.ParseAddr(declared.Address); err == nil {
		s.Addr = netip.AddrPortFrom(ip, port)
		return s
	}
	s.Message = fmt.Sprintf("host name %s has not been looked up yet", declared.Address)
	for _, known := range p.Status.Servers {
		if known.Address != ServerAddress(declared) {
			continue
		}
		if ip, err := netip.ParseAddr(known.IP); err == nil {
			s.Addr, s.Message = netip.AddrPortFrom(ip, port), ""
		} else if known.Message != "" {
			s.Message = known.Message
		}
	}
	return s
}

// Package kinds is the table of the kinds of hosts: a new one is a line here, and a package that hosttest is run over.
package kinds

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/bind"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/byquery"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/coredns"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/owned"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/secondary"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/shared"
)

// Backends are the kinds of places without an SOA.
var Backends = []host.BackendKind{coredns.Kind{}}

// Pass is what the hosts of a zone are made from, for one pass.
type Pass struct {
	Zone      *host.Zone
	Instances []*v1beta1.Bind9Instance
	Providers []*v1beta1.DNSProvider
	DNS       host.DNS
	Notifier  host.Notifier
	Keys      host.KeySource
	Sidecar   bind.Sidecar
	Updates   rfc2136.Updater
	Memory    *host.Memory
}

// place is a server of the zone, with the instance or the provider that has it; neither if it is gone.
type place struct {
	*Pass
	*host.Access
	instance *v1beta1.Bind9Instance
	provider *v1beta1.DNSProvider
}

// The kinds of servers: the first that takes a server is its kind.
var (
	primaries = []struct {
		takes func(observe.Server) bool
		host  func(place) host.Primary
	}{
		{isPod, func(p place) host.Primary { return p.bind() }},
		{isOwned, func(p place) host.Primary { return owned.New(p.Access, p.reader(), p.Updates) }},
		{isShared, func(p place) host.Primary { return shared.New(p.Access, p.reader(), p.Updates) }},
		{isAny, func(p place) host.Primary { return rfc2136.NewHost(p.Access, p.reader(), p.Updates) }},
	}
	secondaries = []struct {
		takes func(observe.Server) bool
		host  func(place) host.Secondary
	}{
		{isPod, func(p place) host.Secondary { return p.bind() }},
		{isAny, func(p place) host.Secondary { return secondary.New(p.Access, p.reader(), p.provider) }},
	}
)

func isPod(s observe.Server) bool    { return s.Provider == "" }
func isOwned(s observe.Server) bool  { return s.Owner != "" }
func isShared(s observe.Server) bool { return s.Shared }
func isAny(observe.Server) bool      { return true }

func (p place) bind() *bind.Host {
	return bind.New(p.Access, p.instance, p.Sidecar, p.Updates, p.Memory)
}

// reader is the way in which a server is read.
func (p place) reader() host.ReadMethod {
	if p.Server.ReadBy == v1beta1.ReadByQuery {
		return byquery.Reader{Access: p.Access, Content: host.Recall[byquery.Content](p.Memory, host.IDOf(p.Server))}
	}
	return host.ByTransfer{Access: p.Access}
}

// Of is the zone on a server: a host.Primary or a host.Secondary, as is the server's role.
func (p *Pass) Of(server observe.Server) host.Host {
	at := p.placeOf(server)
	if server.Role == observe.Primary {
		for _, kind := range primaries {
			if kind.takes(server) {
				return kind.host(at)
			}
		}
	}
	for _, kind := range secondaries {
		if kind.takes(server) {
			return kind.host(at)
		}
	}
	return nil
}

func (p *Pass) placeOf(server observe.Server) place {
	at := place{Pass: p, Access: &host.Access{Zone: p.Zone, Server: server, DNS: p.DNS, Notifier: p.Notifier, Keys: p.Keys}}
	for _, i := range p.Instances {
		if isPod(server) && IsServerOf(i, server) {
			at.instance, at.UpdateSecret, at.TransferSecret = i, keyrotation.UpdateKeySecret(i), keyrotation.TransferKeySecret(i)
			return at
		}
	}
	for _, provider := range p.Providers {
		if provider.Name == server.Provider {
			at.provider = provider
			at.UpdateSecret, at.TransferSecret = tsigkey.ProviderSecrets(provider)
			return at
		}
	}
	return at
}

// IsServerOf reports whether a server is one of an instance.
func IsServerOf(i *v1beta1.Bind9Instance, server observe.Server) bool {
	return client.ObjectKeyFromObject(i) == client.ObjectKey{Namespace: server.Namespace, Name: server.Instance}
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// zoneConfig is how a zone is configured on a server: whom a primary notifies and which keys of others may transfer it, where a
// secondary transfers from, and with which policy a primary signs. It is not confirmed while it is what should be there and nobody has looked since the
// controller started.
type zoneConfig struct {
	servers   []string
	transfer  []string
	policy    string
	confirmed bool
}

func (c zoneConfig) isSame(o zoneConfig) bool {
	return slices.Equal(c.servers, o.servers) && slices.Equal(c.transfer, o.transfer) && c.policy == o.policy
}

// configFor returns the configuration that the zone should have on servers with a role.
func (p zonePass) configFor(role observe.Role) zoneConfig {
	if role == observe.Primary {
		notified, keys := p.guests()
		return zoneConfig{servers: slices.Concat(p.services(v1beta1.RoleSecondary), notified), transfer: keys, policy: p.signing.Policy}
	}
	return zoneConfig{servers: p.services(v1beta1.RolePrimary)}
}

// updateConfigs changes the configuration of a zone where it is, when servers have joined or left. What an earlier process
// has set is checked once: in the first pass that finds the zone at rest, or a secondary that cannot transfer it, which may
// have outdated addresses. A failure is tried again with the next pass; what it concerns works without, only slower. The
// remark is about a policy that could not be set.
func (p zonePass) updateConfigs(ctx context.Context, servers []statuswriter.ServerOutcome, rested bool) (remark string) {
	for _, out := range servers {
		stuck := cannotTransfer(out.Err)
		if out.Serial == 0 || out.Err != nil && !stuck || isForeignServer(out.Server) {
			continue
		}
		want := p.configFor(out.Role)
		entry, ok := p.state.configs.Load(podOf(out.Server))
		known, _ := entry.(zoneConfig)
		switch {
		case len(want.servers) == 0 && out.Role == observe.Secondary:
		case !ok && want.policy == p.lastPolicy():
			p.state.configs.Store(podOf(out.Server), want)
		case !known.isSame(want) || !known.confirmed && (rested || stuck):
			if err := p.updateConfig(ctx, out.Server, want); err != nil {
				log.FromContext(ctx).Info("zone configuration could not be changed", "zone", p.zone.Spec.ZoneName, "server", out.Pod, "reason", err.Error())
				if want.policy != known.policy {
					remark = fmt.Sprintf("dnssecPolicy %q could not be set on %s: %v", want.policy, out.Pod, err)
				}
				continue
			}
			want.confirmed = true
			p.state.configs.Store(podOf(out.Server), want)
		}
	}
	return remark
}

// cannotTransfer reports whether a secondary's error is that it gets the zone from no primary, although its sidecar answers.
func cannotTransfer(err error) bool {
	var e *bindcar.Error
	return errors.Is(err, host.ErrTransfer) || errors.As(err, &e) && e.Code == http.StatusFailedDependency
}

// lastPolicy returns the policy in the zone's status: before this process has looked at a primary, it has that one.
func (p zonePass) lastPolicy() string {
	if p.zone.Status.DNSSEC == nil {
		return ""
	}
	return p.zone.Status.DNSSEC.Policy
}

// updateConfig changes what the zone has on a server, unless it is that already.
func (p zonePass) updateConfig(ctx context.Context, server observe.Server, want zoneConfig) error {
	name := source.DNSName(p.zone)
	zone, err := p.sidecar.Zone(ctx, inventory.SidecarOf(server), name)
	if err != nil {
		return err
	}
	if server.Role == observe.Primary && zone.Type == bindcar.Secondary {
		return p.promote(ctx, server)
	}
	servers, keys := append([]string{}, want.servers...), append([]string{}, want.transfer...) // An empty list is one; null is none.
	patch, have := bindcar.PatchZone{AlsoNotify: &servers, AllowTransfer: &keys}, zone.AlsoNotify
	if server.Role == observe.Secondary {
		patch, have = bindcar.PatchZone{Primaries: &servers}, zone.Primaries
	} else if !slices.Equal(zone.AllowTransfer, keys) {
		have = nil
	}
	if zone.DNSSECPolicy != want.policy {
		secret := p.signing.KeySecretName(p.zone)
		patch.DNSSECPolicy, patch.KeySecret, have = &want.policy, &secret, nil
	}
	if owner := p.key().String(); zone.Owner == "" {
		patch.Owner, have = &owner, nil
	}
	if have != nil && slices.Equal(have, servers) {
		return nil
	}
	return p.sidecar.PatchZone(ctx, inventory.SidecarOf(server), name, patch)
}

// createOnSecondary adds the zone to a secondary, which then transfers it.
func (p zonePass) createOnSecondary(ctx context.Context, server observe.Server) error {
	config := p.configFor(observe.Secondary)
	if len(config.servers) == 0 {
		return fmt.Errorf("no primary of zone %s has a Service address yet", p.zone.Spec.ZoneName)
	}
	err := p.sidecar.CreateZone(ctx, inventory.SidecarOf(server), bindcar.CreateZone{
		ZoneName: source.DNSName(p.zone), ZoneType: bindcar.Secondary, Owner: p.key().String(), ZoneConfig: bindcar.ZoneConfig{Primaries: config.servers},
	})
	if err == nil {
		p.recordCreated(server, config)
	}
	return err
}

// recordCreated records that a zone is on a server now.
func (p zonePass) recordCreated(server observe.Server, config zoneConfig) {
	config.confirmed = true
	p.state.configs.Store(podOf(server), config)
}

// demote turns a zone on a primary that does not sign it into one that follows the signer: named changes the type of no
// zone, so it is deleted and added again. In between, for as long as the transfer takes, the server does not answer for it.
func (p zonePass) demote(ctx context.Context, server observe.Server) error {
	instance := p.instanceOf(server)
	_, demoted := p.state.demoted.Load(podOf(server))
	if demoted || instance == nil || instance.Spec.Role.Normalize() != v1beta1.RolePrimary {
		return nil
	}
	name := source.DNSName(p.zone)
	zone, err := p.sidecar.Zone(ctx, inventory.SidecarOf(server), name)
	if err != nil {
		return err
	}
	if zone.Type != bindcar.Secondary {
		log.FromContext(ctx).Info("zone demoted to a secondary of its signer", "zone", p.zone.Spec.ZoneName, "server", server.Pod)
		if err := p.sidecar.DeleteZone(ctx, inventory.SidecarOf(server), name, p.key().String()); err != nil {
			return err
		}
		if err := p.createOnSecondary(ctx, server); err != nil {
			return err
		}
	}
	p.state.demoted.Store(podOf(server), true)
	return nil
}

// promote deletes a zone from a primary that has followed another: the next pass, which comes at once, creates it in whole.
func (p zonePass) promote(ctx context.Context, server observe.Server) error {
	log.FromContext(ctx).Info("zone promoted to a primary", "zone", p.zone.Spec.ZoneName, "server", server.Pod)
	if err := p.sidecar.DeleteZone(ctx, inventory.SidecarOf(server), source.DNSName(p.zone), p.key().String()); err != nil {
		return err
	}
	p.state.demoted.Delete(podOf(server))
	p.zones.Enqueue(p.key())
	return nil
}

// evictOther deletes a zone of this name that another DNSZone has left on a server to which this one comes, and reports whether
// it did: what it finds would be followed as data that nobody declares. A server that has this zone by its status is not
// asked.
func (p zonePass) evictOther(ctx context.Context, server observe.Server) (evicted bool, err error) {
	isOwn := func(i v1beta1.ZoneInstance) bool {
		return i.Namespace == server.Namespace && i.Name == server.Instance && i.Status == v1beta1.ZoneConfigured
	}
	if _, own := p.state.configs.Load(podOf(server)); own || isForeignServer(server) || slices.ContainsFunc(p.zone.Status.Bind9Instances, isOwn) {
		return false, nil
	}
	name := source.DNSName(p.zone)
	zone, err := p.sidecar.Zone(ctx, inventory.SidecarOf(server), name)
	switch {
	case bindcar.IsNotFound(err) || err == nil && (zone.Owner == "" || zone.Owner == p.key().String()):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("finding out whose zone the server has: %w", err)
	case p.zone.Annotations[v1beta1.PausedAnnotation] == "true":
		return false, errOthersZone
	}
	log.FromContext(ctx).Info("removing another DNSZone's data from a server", "zone", p.zone.Spec.ZoneName, "server", server.Pod, "owner", zone.Owner)
	err = p.sidecar.DeleteZone(ctx, inventory.SidecarOf(server), name, zone.Owner)
	p.dns.ForgetZone(server.Peer(), p.asked())
	return err == nil, err
}

// errOthersZone is a zone that a paused one does not replace.
var errOthersZone = errors.New("the server still has the data of another DNSZone of this name, and nothing is changed while the zone is paused")

package bind

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// zoneConfig is how a zone is configured on a server: whom a primary notifies and which keys of others may transfer it, where a
// secondary transfers from, with which policy a primary signs, and which Secret has its keys. It is not confirmed while it is what should be there and
// nobody has looked since the controller started.
type zoneConfig struct {
	servers   []string
	transfer  []string
	policy    string
	keySecret string
	confirmed bool
}

func (c zoneConfig) isSame(o zoneConfig) bool {
	return slices.Equal(c.servers, o.servers) && slices.Equal(c.transfer, o.transfer) && c.policy == o.policy && c.keySecret == o.keySecret
}

// configFor is what the zone should have on servers with a role.
func (h *Host) configFor(role observe.Role) zoneConfig {
	if role == observe.Primary {
		return zoneConfig{servers: h.Notified, transfer: h.TransferKeys, policy: h.Signing.Policy, keySecret: h.Signing.KeySecretName(h.Object)}
	}
	return zoneConfig{servers: h.Primaries}
}

// Configure implements host.Host: it changes the configuration of the zone, when servers have joined or left. What an earlier process
// has set is checked once: in the first pass that finds the zone at rest, or a secondary that cannot transfer it, which may
// have outdated addresses. A failure is tried again with the next pass; what it concerns works without, only slower. The
// remark is about a policy that could not be set.
func (h *Host) Configure(ctx context.Context, hasZone bool, err error, rested bool) (remark string) {
	stuck := cannotTransfer(err)
	if !hasZone || err != nil && !stuck {
		return ""
	}
	want, known := h.configFor(h.Server.Role), zoneConfig{}
	if h.known.config != nil {
		known = *h.known.config
	}
	switch {
	case len(want.servers) == 0 && h.Server.Role == observe.Secondary:
	case h.known.config == nil && want.policy == h.lastPolicy():
		h.known.config = &want
	case !known.isSame(want) || !known.confirmed && (rested || stuck):
		if err := h.updateConfig(ctx, want); err != nil {
			log.FromContext(ctx).Info("zone configuration could not be changed", "zone", h.Object.Spec.ZoneName, "server", h.Server.Pod, "reason", err.Error())
			if want.policy != known.policy {
				remark = fmt.Sprintf("dnssecPolicy %q could not be set on %s: %v", want.policy, h.Server.Pod, err)
			}
			return remark
		}
		h.noteCreated(want)
	}
	return ""
}

// cannotTransfer reports whether a secondary gets the zone from no primary, although its sidecar answers.
func cannotTransfer(err error) bool {
	var e *bindcar.Error
	return errors.Is(err, host.ErrTransfer) || errors.As(err, &e) && e.Code == http.StatusFailedDependency
}

// lastPolicy is the policy in the zone's status: before this process has looked at a primary, the zone has that one.
func (h *Host) lastPolicy() string {
	if h.Object.Status.DNSSEC == nil {
		return ""
	}
	return h.Object.Status.DNSSEC.Policy
}

// updateConfig changes what the zone has on a server, unless it is that already.
func (h *Host) updateConfig(ctx context.Context, want zoneConfig) error {
	zone, err := h.sidecar.Zone(ctx, h.address(), h.name())
	if err != nil {
		return err
	}
	if h.isOthers(zone) {
		h.LookAgain()
		return h.evict(ctx, zone)
	}
	if h.Server.Role == observe.Primary && zone.Type == bindcar.Secondary {
		return h.promote(ctx)
	}
	servers, keys := append([]string{}, want.servers...), append([]string{}, want.transfer...) // An empty list is one; null is none.
	patch, have := bindcar.PatchZone{AlsoNotify: &servers, AllowTransfer: &keys}, zone.AlsoNotify
	if h.Server.Role == observe.Secondary {
		patch, have = bindcar.PatchZone{Primaries: &servers}, zone.Primaries
	} else if !slices.Equal(zone.AllowTransfer, keys) {
		have = nil
	}
	if zone.DNSSECPolicy != want.policy || zone.KeySecret != want.keySecret {
		patch.DNSSECPolicy, patch.KeySecret, have = &want.policy, &want.keySecret, nil
	}
	if owner, uid := h.Key.String(), string(h.Object.UID); zone.Owner == "" || zone.OwnerUID == "" {
		patch.Owner, patch.OwnerUID, have = &owner, &uid, nil
	}
	if have != nil && slices.Equal(have, servers) {
		return nil
	}
	return h.sidecar.PatchZone(ctx, h.address(), h.name(), patch)
}

// createSecondary adds the zone to a secondary, which then transfers it.
func (h *Host) createSecondary(ctx context.Context) error {
	config := h.configFor(observe.Secondary)
	if len(config.servers) == 0 {
		return fmt.Errorf("no primary of zone %s has a Service address yet", h.Object.Spec.ZoneName)
	}
	err := h.sidecar.CreateZone(ctx, h.address(), bindcar.CreateZone{
		ZoneName: h.name(), ZoneType: bindcar.Secondary, Owner: h.Key.String(), OwnerUID: string(h.Object.UID), ZoneConfig: bindcar.ZoneConfig{Primaries: config.servers},
	})
	if err == nil {
		h.noteCreated(config)
	}
	return err
}

// noteCreated notes the configuration that the zone has on the server now.
func (h *Host) noteCreated(config zoneConfig) {
	config.confirmed = true
	h.known.config = &config
}

// demote turns a zone on a primary that does not sign it into one that follows the signer: named changes the type of no
// zone, so it is deleted and added again. In between, for as long as the transfer takes, the server does not answer for it.
func (h *Host) demote(ctx context.Context) error {
	if h.known.demoted || h.instance == nil || h.instance.Spec.Role.Normalize() != v1beta1.RolePrimary {
		return nil
	}
	zone, err := h.sidecar.Zone(ctx, h.address(), h.name())
	if err != nil {
		return err
	}
	if zone.Type != bindcar.Secondary {
		log.FromContext(ctx).Info("zone demoted to a secondary of its signer", "zone", h.Object.Spec.ZoneName, "server", h.Server.Pod)
		if err := h.sidecar.DeleteZone(ctx, h.address(), h.name(), h.owner()); err != nil {
			return err
		}
		if err := h.createSecondary(ctx); err != nil {
			return err
		}
	}
	h.known.demoted = true
	return nil
}

// promote deletes a zone from a primary that has followed another: the next pass, which comes at once, creates it in whole.
func (h *Host) promote(ctx context.Context) error {
	log.FromContext(ctx).Info("zone promoted to a primary", "zone", h.Object.Spec.ZoneName, "server", h.Server.Pod)
	if err := h.sidecar.DeleteZone(ctx, h.address(), h.name(), h.owner()); err != nil {
		return err
	}
	h.known.demoted = false
	h.LookAgain()
	return nil
}

// Claim implements host.Host. A server that has this zone by its status is not asked. The status is about an instance: of a primary with several
// pods, one may have been away while the zone was deleted and made again. A secondary's pod is set right by Configure.
func (h *Host) Claim(ctx context.Context) (evicted bool, err error) {
	isOwn := func(i v1beta1.ZoneInstance) bool {
		return i.Namespace == h.Server.Namespace && i.Name == h.Server.Instance && i.Status == v1beta1.ZoneConfigured
	}
	isOneOfSome := h.Server.Role == observe.Primary && h.instance != nil && named.Replicas(h.instance) > 1
	if h.known.config != nil || !isOneOfSome && slices.ContainsFunc(h.Object.Status.Bind9Instances, isOwn) {
		return false, nil
	}
	zone, err := h.sidecar.Zone(ctx, h.address(), h.name())
	switch {
	case bindcar.IsNotFound(err) || err == nil && !h.isOthers(zone):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("finding out whose zone the server has: %w", err)
	case h.Paused:
		return false, errOthersZone
	}
	err = h.evict(ctx, zone)
	return err == nil, err
}

// isOthers reports whether a server has the zone with the data of another DNSZone, perhaps one that had this one's name before: the server was
// away while that was deleted.
func (h *Host) isOthers(zone bindcar.Zone) bool {
	return zone.OwnedBy().IsOther(h.owner())
}

// evict removes the zone of another DNSZone.
func (h *Host) evict(ctx context.Context, zone bindcar.Zone) error {
	log.FromContext(ctx).Info("removing another DNSZone's data from a server", "zone", h.Object.Spec.ZoneName, "server", h.Server.Pod,
		"owner", zone.Owner, "ownerUID", zone.OwnerUID)
	err := h.sidecar.DeleteZone(ctx, h.address(), h.name(), zone.OwnedBy())
	h.Forget()
	return err
}

// errOthersZone is a zone that a paused one does not replace.
var errOthersZone = errors.New("the server still has the data of another DNSZone of this name, and nothing is changed while the zone is paused")

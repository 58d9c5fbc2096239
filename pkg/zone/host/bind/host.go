// Package bind is a zone on a pod of an instance: BIND with our sidecar, which adds, configures and deletes zones, and orders transfers.
// Only the servers that Lockstep runs have that. They are read by transfer and written to by RFC 2136 updates like any other.
package bind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/miekg/dns"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
)

// Sidecar changes which zones a server has.
type Sidecar interface {
	CreateZone(ctx context.Context, server bindcar.Address, zone bindcar.CreateZone) error
	// DeleteZone deletes a zone that has the data of an owner.
	DeleteZone(ctx context.Context, server bindcar.Address, zone string, owner bindcar.Owner) error
	PatchZone(ctx context.Context, server bindcar.Address, zone string, patch bindcar.PatchZone) error
	Zone(ctx context.Context, server bindcar.Address, zone string) (bindcar.Zone, error)
	Command(ctx context.Context, server bindcar.Address, zone, command string) (string, error)
	CheckDS(ctx context.Context, server bindcar.Address, zone string, key bindcar.CheckDS) error
}

// Host is a zone on a pod, primary or secondary.
type Host struct {
	*host.Access
	host.ByTransfer
	rfc2136.Exclusive
	sidecar Sidecar
	// instance is the pod's; nil if it is not the zone's any more.
	instance *v1beta1.Bind9Instance
	known    *memory
}

// New is the zone on a pod of an instance.
func New(at *host.Access, instance *v1beta1.Bind9Instance, sidecar Sidecar, updates rfc2136.Updater, kept *host.Memory) *Host {
	return &Host{
		Access: at, ByTransfer: host.ByTransfer{Access: at}, Exclusive: rfc2136.Exclusive{To: at, Updates: updates},
		sidecar: sidecar, instance: instance, known: host.Recall[memory](kept, host.IDOf(at.Server)),
	}
}

// memory is what is known between passes of how a server has the zone.
type memory struct {
	// config is the configuration, if it is known; demoted is true of a primary that is known to have the zone as a secondary, because
	// another one signs it.
	config  *zoneConfig
	demoted bool
}

// address is that of the pod's sidecar, name the zone's as the sidecar has it, and owner its DNSZone.
func (h *Host) address() bindcar.Address { return inventory.SidecarOf(h.Server) }
func (h *Host) name() string             { return declaration.DNSName(h.Object) }
func (h *Host) owner() bindcar.Owner {
	return bindcar.Owner{Name: h.Key.String(), UID: string(h.Object.UID)}
}

// Obstacle implements host.Primary.
func (h *Host) Obstacle() error {
	if h.Server.Addr.IsValid() {
		return nil
	}
	// Its keys may not exist yet either, and a failure to read one is remembered for a while.
	return fmt.Errorf("pod %s does not run: %s", h.Server.Pod, cmp.Or(h.Server.Message, "it does not exist or has no address yet"))
}

// Missing implements host.Primary.
func (h *Host) Missing(observe.Observation) error { return nil }

// Apex implements host.Primary.
func (h *Host) Apex(string) string { return "" }

// At implements host.Host. The sidecar's notifications tell when the zone changes.
func (h *Host) At() host.Place {
	at := h.Access.At()
	at.Restores = at.Role == observe.Secondary && at.Addr.IsValid()
	return at
}

// Create implements host.Primary.
func (h *Host) Create(ctx context.Context, zone host.Copy) error {
	config := h.configFor(observe.Primary)
	request := bindcar.CreateZone{
		ZoneName: h.name(), ZoneType: bindcar.Primary, UpdateKeyName: h.UpdateKey.Name, Owner: h.Key.String(), OwnerUID: string(h.Object.UID),
		ReplaceUnloaded: zone.ReplaceUnloaded,
		ZoneConfig: bindcar.ZoneConfig{
			TTL: zone.SOA.TTL, SOA: sidecarSOA(zone.SOA), Records: sidecarRecords(zone.Content), AlsoNotify: config.servers, AllowTransfer: config.transfer,
			DNSSECPolicy: config.policy, KeySecret: config.keySecret,
		},
	}
	err := h.sidecar.CreateZone(ctx, h.address(), request)
	if bindcar.IsExists(err) {
		return host.ErrExists
	}
	log.FromContext(ctx).Info("zone created on a primary", "zone", h.Object.Spec.ZoneName, "server", h.Server.Pod,
		"records", len(request.ZoneConfig.Records), "serial", zone.SOA.Serial, "failed", err != nil)
	if err == nil {
		h.noteCreated(config)
	}
	return err
}

// Delete implements host.Host. The data of another DNSZone of that name stays, also of one that was made again.
func (h *Host) Delete(ctx context.Context) error {
	err := h.sidecar.DeleteZone(ctx, h.address(), h.name(), h.owner())
	h.Forget()
	if bindcar.IsNotFound(err) {
		return nil
	}
	return err
}

// TellDS tells named that a key has a DS record in the zone above, or has none any more: it never asks there.
func (h *Host) TellDS(ctx context.Context, keyTag uint16, published bool) error {
	return h.sidecar.CheckDS(ctx, h.address(), h.name(), bindcar.CheckDS{KeyTag: keyTag, Published: published})
}

// Remedy implements host.Host.
func (h *Host) Remedy(err error) string {
	var e *wire.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch {
	case e.TSIGError == dns.RcodeBadTime:
		return "; set the clocks of the nodes that the server and the controller run on"
	case e.RefusesKey() && h.UpdateSecret.Name != "":
		return fmt.Sprintf("; compare Secrets %s and %s with what rndc tsig-list says in the pod, which loads changed keys within two minutes; they are read again every minute",
			h.UpdateSecret, h.TransferSecret)
	case e.Rcode == dns.RcodeNotAuth && e.TSIGError == 0:
		return "; see that no view of the server keeps the zone from the keys of Lockstep"
	}
	return host.RefusalRemedy(e)
}

func sidecarSOA(soa rrset.SOA) *bindcar.SOA {
	return &bindcar.SOA{PrimaryNS: soa.MName, AdminEmail: soa.RName, Serial: soa.Serial,
		Refresh: soa.Refresh, Retry: soa.Retry, Expire: soa.Expire, NegativeTTL: soa.Minimum}
}

func sidecarRecords(content iter.Seq[rrset.RRset]) []bindcar.Record {
	var records []bindcar.Record
	for s := range content {
		ttl := s.TTL
		for _, rdata := range s.Rdata {
			records = append(records, bindcar.Record{Name: s.SpelledName(), Type: dns.Type(s.Type).String(), Value: s.SpelledRdata(rdata), TTL: &ttl})
		}
	}
	return records
}

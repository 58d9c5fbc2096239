package zone

import (
	"context"
	"iter"

	"github.com/miekg/dns"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// create gives the primary the complete zone in one piece, so that it never answers from an empty one.
func (p *pass) create(ctx context.Context, q *primary) error {
	soa, content := p.target.soa, p.content()
	if p.hasSignedCopy() {
		soa, content = p.target.reference.SOA, copied(p.target.reference)
	}
	request := bindcar.CreateZone{
		ZoneName: source.DNSName(p.zone), ZoneType: bindcar.Primary, UpdateKeyName: q.update.Name,
		ZoneConfig: bindcar.ZoneConfig{
			TTL: soa.TTL, SOA: sidecarSOA(soa), Records: sidecarRecords(content), AlsoNotify: p.services(v1beta1.RoleSecondary),
			DNSSECPolicy: p.signing.policy, KeySecret: p.signing.secret(p.zone),
		},
	}
	if err := p.ensureKeySecret(ctx); err != nil {
		return err
	}
	err := p.deps.Sidecar.CreateZone(ctx, fleet.SidecarOf(q.server), request)
	if bindcar.IsExists(err) {
		// It is configured, but its data could not be loaded. A fresh copy replaces it.
		if err = p.deps.Sidecar.DeleteZone(ctx, fleet.SidecarOf(q.server), request.ZoneName); err == nil {
			err = p.deps.Sidecar.CreateZone(ctx, fleet.SidecarOf(q.server), request)
		}
	}
	log.FromContext(ctx).Info("zone created on a primary", "zone", p.zone.Spec.ZoneName, "server", q.server.Pod,
		"records", len(request.ZoneConfig.Records), "serial", soa.Serial, "failed", err != nil)
	if err == nil {
		p.created(q.server, p.peersOf(observe.Primary))
	}
	return err
}

// hasSignedCopy tells whether the zone comes back as a secondary has it, signatures included: with the same keys the signer
// goes on where it was, on the serial that the secondaries know. What else has changed is an update then.
func (p *pass) hasSignedCopy() bool {
	reference := p.target.reference
	return p.signing.on() && reference != nil && len(keySigningKeys(reference)) > 0 && signedThrough(reference)
}

// content yields all RRsets of the target: the desired ones, and those of the reference that nobody here declared.
func (p *pass) content() iter.Seq[rrset.RRset] {
	if p.target.reference == nil {
		return p.state.desired.All()
	}
	return plan.Overlay{Top: p.state.desired, Bottom: p.target.reference, Hide: p.state.owned}.All()
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
			records = append(records, bindcar.Record{Name: s.Name, Type: dns.TypeToString[s.Type], Value: rdata, TTL: &ttl})
		}
	}
	return records
}

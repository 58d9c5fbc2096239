package review

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// reviewPermission refuses a zone that would be served nowhere: another zone has come to the same servers with its name before,
// or it is not permitted there. An update that leads the zone to other servers has it come there last, also after zones that are
// about to come there: age that was gained elsewhere does not count. A zone that is being deleted stays where it is.
func (r zoneReviewer) reviewPermission(ctx context.Context, zone, old *v1beta1.DNSZone) (Result, error) {
	all, err := r.objects.fleet(ctx)
	if err != nil {
		return Result{}, err
	}
	reviewed := *zone
	zone = &reviewed
	zone.Status = v1beta1.DNSZoneStatus{}
	if old != nil {
		zone.Status = old.Status // Whatever is sent.
		switch comes := all.Comes(old, zone); {
		case comes:
			zone.CreationTimestamp.Reset()
		case zone.DeletionTimestamp != nil:
			return Result{}, nil
		}
	}
	names := namesBeside{objects: r.objects, ctx: ctx, zone: zone}
	refusal := all.RefusalOf(zone, names)
	if refusal == (membership.Refusal{}) {
		return Result{}, nil
	}
	if live := r.objects.liveFleet(ctx); live != nil {
		names.live = true
		if refusal = live.RefusalOf(zone, names); refusal == (membership.Refusal{}) {
			return Result{}, nil
		}
	}
	return Result{Problems: field.ErrorList{field.Invalid(field.NewPath("spec", "zoneName"), zone.Spec.ZoneName, refusal.Message)}}, nil
}

// namesBeside are the zones beside one that is reviewed, and their delegations.
type namesBeside struct {
	objects Objects
	ctx     context.Context //nolint:containedctx // lives as long as one review
	zone    *v1beta1.DNSZone
	// live reads past the cache.
	live bool
}

// ZonesNamed implements membership.Names. What the cache still has under the zone's own name was deleted or is about to
// change: it does not count.
func (n namesBeside) ZonesNamed(name string) []*v1beta1.DNSZone {
	return slices.DeleteFunc(n.objects.zoneCache().ZonesNamed(name), func(other *v1beta1.DNSZone) bool { return sameZone(other, n.zone) })
}

// Delegates implements membership.Names.
func (n namesBeside) Delegates(zone *v1beta1.DNSZone, name string) bool {
	kind := v1beta1.KindOf(&v1beta1.NSRecord{})
	var records []v1beta1.Record
	for _, key := range []string{name, unstampedKey(name)} {
		found, err := n.objects.recordsUnder(n.ctx, kind, zone.Namespace, key)
		if err != nil {
			return false
		}
		records = append(records, found...)
	}
	if n.live {
		records = n.objects.liveNSRecords(n.ctx, zone.Namespace)
	}
	return slices.ContainsFunc(records, func(record v1beta1.Record) bool {
		owner, err := source.OwnerName(record.RecordName(), zone.Spec.ZoneName)
		ns, ok := record.(*v1beta1.NSRecord)
		return err == nil && owner == name && ok && membership.DelegatesHere(ns, zone) && record.GetDeletionTimestamp() == nil && sameZone(n.objects.zoneCache().ZoneOfRecord(record), zone)
	})
}

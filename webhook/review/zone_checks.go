package review

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
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
	names := &namesBeside{objects: r.objects, ctx: ctx, zone: zone}
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
	return Result{Problems: field.ErrorList{field.Invalid(field.NewPath("spec", "zoneName"), zone.Spec.ZoneName, refusal.Message)}, basis: names.found}, nil
}

// namesBeside are the zones beside one that is reviewed, and their delegations.
type namesBeside struct {
	objects Objects
	ctx     context.Context //nolint:containedctx // lives as long as one review
	zone    *v1beta1.DNSZone
	// live reads past the cache.
	live bool
	// found are the zones that were asked for.
	found []client.Object
}

// ZonesNamed implements membership.Names. What the cache still has under the zone's own name was deleted or is about to
// change: it does not count.
func (n *namesBeside) ZonesNamed(name string) []*v1beta1.DNSZone {
	zones := slices.DeleteFunc(n.objects.zoneCache().ZonesNamed(name), func(other *v1beta1.DNSZone) bool { return sameZone(other, n.zone) })
	for _, zone := range zones {
		if !slices.Contains(n.found, client.Object(zone)) {
			n.found = append(n.found, zone)
		}
	}
	return zones
}

// Delegates implements membership.Names.
func (n *namesBeside) Delegates(zone *v1beta1.DNSZone, name string) bool {
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
		owner, err := declaration.OwnerName(record.RecordName(), zone.Spec.ZoneName)
		ns, ok := record.(*v1beta1.NSRecord)
		return err == nil && owner == name && ok && membership.DelegatesHere(ns, zone) && record.GetDeletionTimestamp() == nil && sameZone(n.objects.zoneCache().ZoneOfRecord(record), zone)
	})
}

// reviewSelection judges which records a zone's selectors match, when these are new or changed: a record that an older zone has
// stays with that zone, so a selector that matches it would do nothing; one that a younger zone has would be taken from it.
func (r zoneReviewer) reviewSelection(ctx context.Context, zone, old *v1beta1.DNSZone) (Result, error) {
	if len(zone.Spec.RecordsFrom) == 0 || (old != nil && equality.Semantic.DeepEqual(old.Spec.RecordsFrom, zone.Spec.RecordsFrom)) {
		return Result{}, nil
	}
	records, err := r.objects.recordsOf(ctx, zone.Namespace)
	if err != nil || len(records) == 0 {
		return Result{}, err // The records are probably still to come.
	}
	s := selectorReview{zone: zone, old: old, objects: r.objects}
	var v Result
	for i := range zone.Spec.RecordsFrom {
		problem, basis, warning := s.reviewSelector(ctx, i, records)
		if problem != nil {
			v.Problems, v.basis = append(v.Problems, problem), append(v.basis, basis...)
		}
		if warning != "" {
			v.Warnings = append(v.Warnings, warning)
		}
	}
	return v, nil
}

// selectorReview compares what the selectors of a zone match with what its old ones did.
type selectorReview struct {
	zone, old *v1beta1.DNSZone
	objects   Objects
}

// reviewSelector judges one selector: the records that other zones have are a problem when one of these is older, else worth a warning,
// as is a selector without any.
func (s selectorReview) reviewSelector(ctx context.Context, i int, records []v1beta1.Record) (problem *field.Error, basis []client.Object, warning string) {
	only := *s.zone
	only.Spec.RecordsFrom = s.zone.Spec.RecordsFrom[i : i+1]
	path := field.NewPath("spec", "recordsFrom").Index(i).Child("selector")
	matches, taken, kept := 0, otherRecords{}, otherRecords{}
	for _, record := range records {
		if ok, _ := membership.SelectsRecord(&only, record); !ok {
			continue
		}
		matches++
		holder := s.objects.zoneCache().ZoneOfRecord(record)
		if holder == nil || sameZone(holder, s.zone) || s.selectedBefore(record) {
			continue
		}
		if membership.TakesFirst(holder, s.zone, record) {
			kept.add(holder, record)
		} else {
			taken.add(holder, record)
		}
	}
	switch {
	case kept.count > 0:
		return field.Invalid(path, kept.first, fmt.Sprintf("DNSZone %s is older and selects %s, which this selector matches too: "+
			"a record belongs to one zone, the oldest; narrow the selector, or give the records other labels", kept.zone, kept.describe())), kept.objects, ""
	case taken.count > 0:
		return nil, nil, fmt.Sprintf("%s: takes %s from %s", path, taken.describe(), taken.from)
	case s.zone.Spec.RecordsFrom[i].NamespaceSelector != nil: // Those of other namespaces are not looked at.
	case matches == 0 && !s.objects.hasLiveRecords(ctx, s.zone.Namespace, &s.zone.Spec.RecordsFrom[i].Selector):
		return nil, nil, fmt.Sprintf("%s: selects none of the records in namespace %s so far", path, s.zone.Namespace)
	}
	return nil, nil, ""
}

// selectedBefore reports whether the zone selected the record already.
func (s selectorReview) selectedBefore(record v1beta1.Record) bool {
	if s.old == nil {
		return false
	}
	ok, _ := membership.SelectsRecord(s.old, record)
	return ok
}

// otherRecords are records that other zones have, of which the first is named.
type otherRecords struct {
	zone, first string
	// from says whose the first is.
	from  string
	count int
	// objects are all of them, and the zone of the first.
	objects []client.Object
}

func (o *otherRecords) add(holder *v1beta1.DNSZone, record v1beta1.Record) {
	o.objects = append(o.objects, record)
	if o.count++; o.count == 1 {
		o.objects = append(o.objects, holder)
		o.zone, o.first = membership.KeyOfZone(holder).String(), source.KeyOf(record).String()
		if o.from = "DNSZone " + o.zone + ", which is younger"; holder.Namespace != record.GetNamespace() {
			o.from = "a zone of another namespace, which comes after those of this one"
		}
	}
}

func (o *otherRecords) describe() string {
	if o.count == 1 {
		return o.first
	}
	return fmt.Sprintf("%s and %d more", o.first, o.count-1)
}

// reviewSigner refuses a change that leads a signed zone to servers without its keys. Resolvers that have a DS record of them would reject
// every answer from that moment on. Only a zone of which it is known that no resolver has one may go.
func (r zoneReviewer) reviewSigner(ctx context.Context, zone, old *v1beta1.DNSZone) (field.ErrorList, error) {
	if old == nil || old.Status.DNSSEC == nil || !old.Status.DNSSEC.Signed {
		return nil, nil
	}
	if at, known := old.Status.DNSSEC.Delegation.ForgottenAt(); known && time.Now().After(at) {
		return nil, nil
	}
	theirs := old.Status.DNSSEC.Policy == ""
	if d := old.Status.DNSSEC.Delegation; theirs && (d == nil || d.TTL == 0) { // Its DS records are its operator's, if there are any.
		return nil, nil
	}
	all, err := r.objects.fleet(ctx)
	if err != nil || !all.SigningMoves(old, zone) {
		return nil, err
	}
	path, value := field.NewPath("spec"), zone.Spec.ZoneName
	if zone.Spec.ClusterRef != old.Spec.ClusterRef {
		path, value = path.Child("clusterRef"), zone.Spec.ClusterRef
	}
	if theirs {
		return field.ErrorList{field.Invalid(path, value, "others sign the zone, and the zone above has DS records of their keys: validating resolvers would reject what other servers answer. "+
			"Set dnssecPolicy: insecure, wait until the condition Delegated has the reason DSAbsent, and move it")}, nil
	}
	return field.ErrorList{field.Invalid(path, value, "the zone is signed, and its keys stay with the servers that it has: validating resolvers would reject what others answer. "+
		"Set dnssecPolicy: insecure where it is, wait until status.dnssec is gone, move it, and sign it again")}, nil
}

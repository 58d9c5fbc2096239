package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/webhook/review/trap"
)

// recordReviewer judges records of all ten kinds: first the data itself, then the record among those of its zone.
type recordReviewer struct {
	objects Objects
	// complete is true if no further change comes: whatever excludes a record stays.
	complete bool
}

func (r recordReviewer) review(ctx context.Context, record, old v1beta1.Record) (Result, error) {
	zone := r.objects.zoneCache().ZoneOfRecord(record)
	namespace := record.GetNamespace()
	if membership.MayTravel(record) {
		namespace = "" // all
	}
	warn := zone == nil && r.objects.zoneCache().CountZones(namespace) > 0
	if warn {
		zone = r.objects.zoneCache().Among(r.objects.liveZones(ctx, namespace)...).ZoneOfRecord(record)
	}
	if zone == nil {
		return reviewUnselected(record, warn), nil
	}
	var problems field.ErrorList
	owner, err := declaration.OwnerName(record.RecordName(), zone.Spec.ZoneName)
	if err != nil {
		problems = problemsOfError("spec.name", err)
	}
	_, rdata, err := declaration.RecordData(record, zone.Spec.ZoneName)
	if err != nil {
		problems = append(problems, problemsOfError("spec", err)...)
	}
	if len(problems) > 0 {
		return Result{Problems: problems, basis: []client.Object{zone}}, nil
	}
	related, err := findRelated(ctx, r.objects, zone, record)
	if err != nil {
		return Result{}, err
	}
	relative, err := findRelativeTarget(ctx, r.objects, zone, record)
	if err != nil {
		return Result{}, err
	}
	var circle []trap.Found
	if !r.complete { // What is known of all zones is looked at together.
		if circle, err = findCircle(ctx, r.objects, zone, record, owner, rdata); err != nil {
			return Result{}, err
		}
	}
	neighbors := related.all()
	result := r.conflictsWith(ctx, zone, neighbors, record, old)
	for range maxRounds { // What excludes the record may be excluded itself.
		if len(result.Problems)+len(result.Warnings) == 0 {
			break
		}
		if more, err := related.addExcluding(ctx); err != nil || !more {
			break
		}
		neighbors = related.all()
		result = r.conflictsWith(ctx, zone, neighbors, record, old)
	}
	result.Warnings = slices.Concat(result.Warnings, r.warnHidden(ctx, zone, neighbors, record), r.warnUnsupported(ctx, zone, neighbors, record))
	result.Traps = slices.Concat(trap.OfOwner("spec.name", declaration.RecordType(record), owner, rdata), trap.OfRecord(record, rdata), findTwice(declaration.ValueField(record), declaration.RecordType(record), rdata, zone), relative, circle)
	result.basis = []client.Object{zone}
	for _, o := range neighbors {
		if o, ok := o.(client.Object); ok {
			result.basis = append(result.basis, o)
		}
	}
	return result, nil
}

// warnHidden warns of a record that servers hide: they answer from the zone with the longest name, and another zone of the
// namespace on the same servers has a longer one (RFC 1034 section 4.3.2). What is delegated is meant to be there.
func (r recordReviewer) warnHidden(ctx context.Context, zone *v1beta1.DNSZone, neighbors []source.Object, record v1beta1.Record) []string {
	owner, err := declaration.OwnerName(record.RecordName(), zone.Spec.ZoneName)
	hiding := zoneHiding(r.objects.zoneCache(), zone, owner)
	if err != nil || hiding == nil || isDelegated(zone, append(slices.Clone(neighbors), record), owner) {
		return nil
	}
	if now := r.objects.liveZones(ctx, zone.Namespace); len(now) > 0 {
		if hiding = zoneHiding(membership.NewCache(now...), zone, owner); hiding == nil {
			return nil
		}
	}
	return []string{fmt.Sprintf("servers answer for %s from DNSZone %s, whose zone %s is longer than %s: declare this in that zone",
		owner, hiding.Name, hiding.Spec.ZoneName, zone.Spec.ZoneName)}
}

// findRelativeTarget warns of a target that was probably meant to be complete: it has no final dot, and the zone has nothing at the name that it
// stands for. The name server of a delegation may well be inside of that.
func findRelativeTarget(ctx context.Context, o Objects, zone *v1beta1.DNSZone, record v1beta1.Record) ([]trap.Found, error) {
	host, remark := declaration.RelativeTarget(record, zone.Spec.ZoneName)
	if host == "" {
		return nil, nil
	}
	owner, err := declaration.OwnerName(record.RecordName(), zone.Spec.ZoneName)
	if err != nil || record.RecordName() != "@" && rrset.IsSubdomain(host, owner) {
		return nil, nil
	}
	declared, err := findDeclared(ctx, o, zone, record, host)
	if err != nil || declared {
		return nil, err
	}
	named, _, _ := strings.Cut(remark, " ")
	if _, err := netip.ParseAddr(strings.TrimSuffix(host, "."+declaration.DNSName(zone)+".")); err == nil {
		return []trap.Found{trap.New(trap.AddressTarget, named, remark+"; name a host, and declare the address by an ARecord or AAAARecord")}, nil
	}
	return []trap.Found{trap.New(trap.RelativeTarget, named, remark+", where nothing is declared; write it with a final dot if it is complete")}, nil
}

// findTwice warns of the first target that has the zone's name twice.
func findTwice(field string, rrtype uint16, rdata []string, zone *v1beta1.DNSZone) []trap.Found {
	for _, value := range rdata {
		if found := trap.Twice(field, rrset.TargetOf(rrtype, value), declaration.DNSName(zone)+"."); found != nil {
			return found
		}
	}
	return nil
}

// zoneHiding returns the zone below another one, of its namespace and on the same cluster, from which servers answer for a name;
// nil if there is none.
func zoneHiding(zones *membership.Cache, zone *v1beta1.DNSZone, owner string) *v1beta1.DNSZone {
	apex, err := declaration.ZoneName(zone.Spec.ZoneName)
	for name := owner; err == nil && name != apex && rrset.IsSubdomain(name, apex); name = rrset.ParentName(name) {
		for _, below := range zones.ZonesNamed(name) {
			sameCluster := below.Spec.ClusterRef != "" && below.Spec.ClusterRef == zone.Spec.ClusterRef ||
				below.Spec.ClusterProviderRef != "" && below.Spec.ClusterProviderRef == zone.Spec.ClusterProviderRef
			if below.Namespace == zone.Namespace && sameCluster {
				return below
			}
		}
	}
	return nil
}

// isDelegated reports whether one of some objects delegates a name or one above it, below the zone's own.
func isDelegated(zone *v1beta1.DNSZone, objects []source.Object, owner string) bool {
	return slices.ContainsFunc(objects, func(o source.Object) bool {
		record, ok := o.(v1beta1.Record)
		if !ok || declaration.RecordType(record) != dns.TypeNS {
			return false
		}
		cut, err := declaration.OwnerName(record.RecordName(), zone.Spec.ZoneName)
		return err == nil && record.RecordName() != "@" && rrset.IsSubdomain(owner, cut)
	})
}

// noZone stands for the zone that a record may come to be in (RFC 2606 section 2). The root would not do: "@" may be a
// target, and the root is no host.
const noZone = "invalid."

// reviewUnselected judges a record that no zone selects: its data, which depends on the zone in nothing but complete names. Where
// there are zones, it is to warn: one of them was probably meant. Where there are none, they are probably still to come.
func reviewUnselected(record v1beta1.Record, warn bool) Result {
	_, rdata, err := declaration.RecordData(record, noZone)
	if err != nil {
		return Result{Problems: problemsOfError("spec", err)}
	}
	result := Result{Traps: trap.OfRecord(record, rdata)}
	if warn {
		result.Warnings = []string{fmt.Sprintf(
			"metadata.labels: no DNSZone in namespace %s selects this %s: it is stored, and published once a zone's recordsFrom matches its labels%s",
			record.GetNamespace(), v1beta1.KindOf(record).Kind, status.ElsewhereRemark)}
	}
	return result
}

// conflictsWith finds what the record and its neighbors cannot all be at once. The zone is built as it would be and, if not everything has
// a place there, as it is, by the very function that the controller uses.
func (r recordReviewer) conflictsWith(ctx context.Context, zone *v1beta1.DNSZone, neighbors []source.Object, record, old v1beta1.Record) Result {
	with := append(slices.Clone(neighbors), record)
	after, err := source.Build(zone, with, source.Options{})
	if err != nil || allAccepted(after) {
		return Result{} // An error is the zone's own fault, which its own review reports.
	}
	opts := r.options(ctx, zone) // No server takes fewer records than without any.
	if after, err = source.Build(zone, with, opts); err != nil || allAccepted(after) {
		return Result{}
	}
	present := slices.Clone(neighbors)
	if old != nil {
		present = append(present, old)
	}
	before, err := source.Build(zone, present, opts)
	if err != nil {
		return Result{}
	}
	result := r.newConflicts(zone, before, after, record)
	if !r.complete && len(result.Problems) == 0 && len(result.Warnings) == 0 {
		result.Warnings = warnOlder(zone, after, opts, neighbors, record)
	}
	return result
}

// options has how many records of one name and type a zone's servers take, which manifests do not say.
func (r recordReviewer) options(ctx context.Context, zone *v1beta1.DNSZone) source.Options {
	if r.complete {
		return source.Options{MaxRecords: source.RecordLimit{Max: math.MaxInt}}
	}
	return source.Options{MaxRecords: recordLimit(ctx, r.objects, zone)}
}

// allAccepted reports whether everything that is declared has its place in a zone.
func allAccepted(zone *source.Zone) bool {
	for _, d := range zone.Declarations.All() {
		if !d.Accepted {
			return false
		}
	}
	return true
}

// newConflicts reports the record when it is not accepted, and every neighbor that was accepted before and is not any more. A record that
// waits for older data of its name is stored: whoever replaces an alias by addresses, or the reverse, creates one object before deleting
// the other. A record of the zone's namespace may take the place of another namespace's.
func (r recordReviewer) newConflicts(zone *v1beta1.DNSZone, before, after *source.Zone, record v1beta1.Record) (result Result) {
	for id, d := range sortedDeclarations(after) {
		was, _ := before.Declarations.Get(id)
		switch {
		case d.Accepted:
		case id.ObjectKey == source.KeyOf(record) && d.Waits && !r.complete:
			until := "is gone"
			if d.Reason == status.Unsupported || d.Key.Type == dns.TypeDS {
				until = "has changed"
			}
			result.Warnings = append(result.Warnings, "spec.name: "+d.Message+": this "+id.Kind+" is published as soon as that "+until+", and not before")
		case id.ObjectKey == source.KeyOf(record):
			result.Problems = append(result.Problems, problemsOfError("spec.name", errors.New(d.Message))...)
		case was.Accepted && record.GetNamespace() == zone.Namespace && id.Namespace != zone.Namespace:
			result.Warnings = append(result.Warnings, fmt.Sprintf("spec.name: %s, declared by an object of another namespace, is not published any more", d.Key))
		case was.Accepted:
			result.Problems = append(result.Problems, field.Invalid(field.NewPath("spec", "name"), record.RecordName(), displacedText(d, id, record.GetNamespace())))
		}
	}
	return result
}

// warnOlder warns of a record that has a place in a zone only until an older object that waits for the same name gets it.
func warnOlder(zone *v1beta1.DNSZone, after *source.Zone, opts source.Options, neighbors []source.Object, record v1beta1.Record) []string {
	waiting := []source.Object{record}
	for _, o := range neighbors {
		for _, d := range after.Of(source.KeyOf(o)) {
			if d.Waits {
				waiting = append(waiting, o)
				break
			}
		}
	}
	later, err := source.Build(zone, waiting, opts)
	if err != nil {
		return nil
	}
	d, _ := later.Declarations.Get(source.ID{ObjectKey: source.KeyOf(record)})
	if d.Accepted {
		return nil
	}
	return []string{"published only until an older object that waits for the name gets it: " + d.Message}
}

// displacedText says to somebody in a namespace which declaration would lose its place. Of another namespace it says what DNS does.
func displacedText(d source.Declaration, id source.ID, namespace string) string {
	if id.Namespace != namespace {
		return fmt.Sprintf("%s, declared by an object of another namespace, could not be published any more", d.Key)
	}
	return id.String() + " could not be published any more: " + d.Message
}

// sortedDeclarations yields what is declared in a zone, in a stable order.
func sortedDeclarations(zone *source.Zone) iter.Seq2[source.ID, source.Declaration] {
	all := maps.Collect(zone.Declarations.All())
	order := slices.SortedFunc(maps.Keys(all), func(a, b source.ID) int {
		return cmp.Or(strings.Compare(a.String(), b.String()), cmp.Compare(a.Index, b.Index))
	})
	return func(yield func(source.ID, source.Declaration) bool) {
		for _, id := range order {
			if !yield(id, all[id]) {
				return
			}
		}
	}
}

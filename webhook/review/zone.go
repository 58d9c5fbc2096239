package review

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/webhook/review/trap"
)

// zoneReviewer judges zones: their selectors, their own data, whether they may be served and what their selectors match
// (zone_checks.go), and whether the servers are there that they name (servers.go).
type zoneReviewer struct {
	objects Objects
}

// review judges a zone. One that is being deleted can still be led to other servers.
func (r zoneReviewer) review(ctx context.Context, zone, old *v1beta1.DNSZone) (Result, error) {
	if zone.DeletionTimestamp != nil {
		return r.reviewPermission(ctx, zone, old)
	}
	if problems := checkSelectors(zone); len(problems) > 0 {
		return Result{Problems: problems}, nil
	}
	built, err := source.Build(zone, nil, source.Options{})
	if err != nil {
		return Result{Problems: problemsOfError("spec", err)}, nil
	}
	if problem := cmp.Or(checkSerial(zone, old), r.checkCrowd(zone, old)); problem != nil {
		return Result{Problems: field.ErrorList{problem}}, nil
	}
	v, err := r.reviewPermission(ctx, zone, old)
	if err != nil {
		return Result{}, err
	}
	moved, err := r.reviewSigner(ctx, zone, old)
	if err != nil {
		return Result{}, err
	}
	selection, err := r.reviewSelection(ctx, zone, old)
	if err != nil {
		return Result{}, err
	}
	missing, err := r.missingReferences(ctx, zone)
	v.Problems, v.basis = slices.Concat(v.Problems, moved, selection.Problems), slices.Concat(v.basis, selection.basis)
	v.Warnings = slices.Concat(v.Warnings, selection.Warnings, missing)
	v.Traps = trap.OfZone(zone, built.Name, built.SOA)
	if !namesServers(zone) {
		v.Warnings = append(v.Warnings, "spec: it names no servers, so that nobody serves the zone: set clusterRef, clusterProviderRef, bind9InstancesFrom or providerRefs")
	}
	if built.NameServers.Remark != "" {
		v.Warnings = append(v.Warnings, "spec.nameServers: "+built.NameServers.Remark)
	}
	return v, err
}

// namesServers reports whether a zone says by which servers it is served.
func namesServers(zone *v1beta1.DNSZone) bool {
	spec := zone.Spec
	return spec.ClusterRef != "" || spec.ClusterProviderRef != "" || len(spec.Bind9InstancesFrom)+len(spec.ProviderRefs) > 0
}

// What has to do with a name looks at all zones that have it, of all namespaces, and what has to do with a record at all zones of its namespace
// that may select it by the same label: each is told of it. So a namespace has maxNamesakes zones of one name at most, each for servers of
// its own, and maxAlike that select alike, fewer if their selectors are large: a record belongs to one of them.
const maxNamesakes, maxAlike = 100, 16

// checkCrowd refuses one zone too many of a name, or that selects as others do.
func (r zoneReviewer) checkCrowd(zone, old *v1beta1.DNSZone) *field.Error {
	spec, zones := field.NewPath("spec"), r.objects.zoneCache()
	if (old == nil || old.Spec.ZoneName != zone.Spec.ZoneName) && zones.CountNamesakes(zone) >= maxNamesakes {
		return field.Invalid(spec.Child("zoneName"), zone.Spec.ZoneName, fmt.Sprintf(
			"namespace %s has %d DNSZones of this name already, as many as it may: delete one of them, or use another namespace", zone.Namespace, maxNamesakes))
	}
	if old != nil && equality.Semantic.DeepEqual(old.Spec.RecordsFrom, zone.Spec.RecordsFrom) {
		return nil
	}
	if alike, adds := zones.WeighAlike(zone), membership.SelectionWeight(zone); alike+adds > maxAlike {
		size := ""
		if adds > 1 {
			size = ", as its selectors have many labels and values"
		}
		return field.Invalid(spec.Child("recordsFrom"), field.OmitValueType{}, fmt.Sprintf(
			"namespace %s may have %d DNSZones that select records by the same label, or by none, has %d, and this adds %d%s: a record belongs to one zone; give the "+
				"records of this one a label of their own, such as zone: %s, and select that", zone.Namespace, maxAlike, alike, adds, size, zone.Name))
	}
	return nil
}

// checkSerial refuses to raise the serial of a zone that is served by more than secondaries understand: to them the new one is lower
// (RFC 1982 section 3.2). One that is lower than the zone's is met already.
func checkSerial(zone, old *v1beta1.DNSZone) *field.Error {
	if old == nil || old.Status.Serial == nil || zone.Spec.SOARecord.Serial == old.Spec.SOARecord.Serial {
		return nil
	}
	wanted, has := zone.Spec.SOARecord.Serial, *old.Status.Serial
	if wanted-has <= rrset.MaxSerialStep {
		return nil
	}
	return field.Invalid(field.NewPath("spec", "soaRecord", "serial"), wanted, fmt.Sprintf(
		"the zone's serial is %d, and secondaries take a serial for higher only if it is by at most %d (RFC 1982): set %d first, and %d once all secondaries have that",
		has, rrset.MaxSerialStep, has+rrset.MaxSerialStep, wanted))
}

// checkSelectors checks every label selector of the zone.
func checkSelectors(zone *v1beta1.DNSZone) field.ErrorList {
	spec := field.NewPath("spec")
	var problems field.ErrorList
	for i := range zone.Spec.RecordsFrom {
		from, path := &zone.Spec.RecordsFrom[i], spec.Child("recordsFrom").Index(i)
		if problems = append(problems, checkSelector(path.Child("selector"), &from.Selector)...); from.NamespaceSelector != nil {
			problems = append(problems, checkSelector(path.Child("namespaceSelector"), from.NamespaceSelector)...)
		}
	}
	for i := range zone.Spec.Bind9InstancesFrom {
		problems = append(problems, checkSelector(spec.Child("bind9InstancesFrom").Index(i).Child("selector"), &zone.Spec.Bind9InstancesFrom[i].Selector)...)
	}
	return problems
}

// checkSelector checks one selector, label by label and requirement by requirement, so that the field at fault is named.
func checkSelector(path *field.Path, s *metav1.LabelSelector) field.ErrorList {
	var problems field.ErrorList
	for key, value := range s.MatchLabels {
		one := &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
		if _, err := metav1.LabelSelectorAsSelector(one); err != nil {
			problems = append(problems, field.Invalid(path.Child("matchLabels").Key(key), value, err.Error()))
		}
	}
	for i, requirement := range s.MatchExpressions {
		one := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}}
		if _, err := metav1.LabelSelectorAsSelector(one); err != nil {
			problems = append(problems, field.Invalid(path.Child("matchExpressions").Index(i), requirementText(requirement),
				err.Error()+"; operators are In and NotIn (with values), Exists and DoesNotExist (without)"))
		}
	}
	return problems
}

func requirementText(r metav1.LabelSelectorRequirement) string {
	return fmt.Sprintf("%s %s %v", r.Key, r.Operator, r.Values)
}

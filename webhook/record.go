package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// recordReview judges records of all eight kinds: first the data itself, then the record among those of its zone.
type recordReview struct {
	objects objects
}

func (r recordReview) judge(ctx context.Context, record, old v1beta1.Record) (verdict, error) {
	zones, err := r.objects.zones(ctx, record.GetNamespace())
	if err != nil {
		return verdict{}, err
	}
	zone := source.ZoneOf(zones, record)
	if zone == nil {
		return outside(record, len(zones) > 0), nil
	}
	var problems field.ErrorList
	if _, err := source.OwnerName(record.RecordName(), zone.Spec.ZoneName); err != nil {
		problems = problemsOf("spec.name", err)
	}
	if _, _, err := source.RecordData(record, zone.Spec.ZoneName); err != nil {
		problems = append(problems, problemsOf("spec", err)...)
	}
	if len(problems) > 0 {
		return verdict{problems: problems}, nil
	}
	neighbours, err := r.objects.neighbours(ctx, zone, record)
	if err != nil {
		return verdict{}, err
	}
	return verdict{problems: conflicts(zone, zones, neighbours, record, old)}, nil
}

// outside judges a record that no zone selects: its data, which depends on the zone in nothing but complete names. Where
// there are zones, it warns: one of them was probably meant. Where there are none, they are probably still to come.
func outside(record v1beta1.Record, zones bool) verdict {
	if _, _, err := source.RecordData(record, "."); err != nil {
		return verdict{problems: problemsOf("spec", err)}
	}
	if !zones {
		return verdict{}
	}
	return verdict{warnings: []string{fmt.Sprintf(
		"no DNSZone in namespace %s selects this %s: it is stored, and published once a zone's recordsFrom matches its labels",
		record.GetNamespace(), v1beta1.KindOf(record).Kind)}}
}

// conflicts finds what the record and its neighbours, those at the same owner name, cannot all be at once. The zone is
// built as it is and as it would be, by the very function that the controller uses.
func conflicts(zone *v1beta1.DNSZone, zones []*v1beta1.DNSZone, neighbours []v1beta1.Record, record, old v1beta1.Record) field.ErrorList {
	var same []v1beta1.Record
	for _, other := range neighbours {
		if winner := source.ZoneOf(zones, other); winner != nil && winner.Name == zone.Name {
			same = append(same, other)
		}
	}
	present := slices.Clone(same)
	if old != nil {
		present = append(present, old)
	}
	before, err := source.Build(zone, present, source.Options{})
	if err != nil {
		return nil // the zone's own fault, which its own review tells
	}
	after, err := source.Build(zone, append(same, record), source.Options{})
	if err != nil {
		return nil
	}
	return compare(before, after, record)
}

// compare reports the record when it is not accepted, and every neighbour that was accepted before and is not any more.
func compare(before, after *source.Zone, record v1beta1.Record) field.ErrorList {
	accepted := map[string]bool{}
	for _, d := range before.Declarations {
		accepted[d.Ref.Kind+"/"+d.Ref.Name] = d.Accepted
	}
	var problems field.ErrorList
	for _, d := range after.Declarations {
		id := d.Ref.Kind + "/" + d.Ref.Name
		switch {
		case d.Accepted:
		case id == identity(record):
			problems = append(problems, problemsOf("spec.name", errors.New(d.Message))...)
		case accepted[id]:
			problems = append(problems, field.Invalid(field.NewPath("spec", "name"), record.RecordName(),
				id+" could not be published any more: "+d.Message))
		}
	}
	return problems
}

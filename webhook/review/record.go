package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// recordReviewer judges records of all eight kinds: first the data itself, then the record among those of its zone.
type recordReviewer struct {
	objects Objects
}

func (r recordReviewer) review(ctx context.Context, record, old v1beta1.Record) (Result, error) {
	zone := r.objects.zoneCache().ZoneOfRecord(record)
	warn := zone == nil && r.objects.zoneCache().CountZones(record.GetNamespace()) > 0
	if warn {
		zone = membership.NewCache(r.objects.liveZones(ctx, record.GetNamespace())...).ZoneOfRecord(record)
	}
	if zone == nil {
		return reviewUnselected(record, warn), nil
	}
	var problems field.ErrorList
	if _, err := source.OwnerName(record.RecordName(), zone.Spec.ZoneName); err != nil {
		problems = problemsOfError("spec.name", err)
	}
	if _, _, err := source.RecordData(record, zone.Spec.ZoneName); err != nil {
		problems = append(problems, problemsOfError("spec", err)...)
	}
	if len(problems) > 0 {
		return Result{Problems: problems}, nil
	}
	neighbors, err := findRelated(ctx, r.objects, zone, record)
	if err != nil {
		return Result{}, err
	}
	return Result{Problems: conflictsWith(zone, neighbors, record, old)}, nil
}

// noZone stands for the zone that a record may come to be in (RFC 2606 section 2). The root would not do: "@" may be a
// target, and the root is no host.
const noZone = "invalid."

// reviewUnselected judges a record that no zone selects: its data, which depends on the zone in nothing but complete names. Where
// there are zones, it is to warn: one of them was probably meant. Where there are none, they are probably still to come.
func reviewUnselected(record v1beta1.Record, warn bool) Result {
	if _, _, err := source.RecordData(record, noZone); err != nil {
		return Result{Problems: problemsOfError("spec", err)}
	}
	if !warn {
		return Result{}
	}
	return Result{Warnings: []string{fmt.Sprintf(
		"no DNSZone in namespace %s selects this %s: it is stored, and published once a zone's recordsFrom matches its labels",
		record.GetNamespace(), v1beta1.KindOf(record).Kind)}}
}

// conflictsWith finds what the record and its neighbors cannot all be at once. The zone is built as it is and as it would be,
// by the very function that the controller uses.
func conflictsWith(zone *v1beta1.DNSZone, neighbors []source.Object, record, old v1beta1.Record) field.ErrorList {
	present := slices.Clone(neighbors)
	if old != nil {
		present = append(present, old)
	}
	before, err := source.Build(zone, present, source.Options{})
	if err != nil {
		return nil // the zone's own fault, which its own review reports
	}
	after, err := source.Build(zone, append(slices.Clone(neighbors), record), source.Options{})
	if err != nil {
		return nil
	}
	return newConflicts(before, after, record)
}

// newConflictState reports the record when it is not accepted, and every neighbor that was accepted before and is not any more.
func newConflicts(before, after *source.Zone, record v1beta1.Record) field.ErrorList {
	var problems field.ErrorList
	for id, d := range sortedDeclarations(after) {
		was, _ := before.Declarations.Get(id)
		switch {
		case d.Accepted:
		case id.ObjectKey == source.KeyOf(record):
			problems = append(problems, problemsOfError("spec.name", errors.New(d.Message))...)
		case was.Accepted:
			problems = append(problems, field.Invalid(field.NewPath("spec", "name"), record.RecordName(),
				id.String()+" could not be published any more: "+d.Message))
		}
	}
	return problems
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

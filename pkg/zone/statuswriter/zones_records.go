package statuswriter

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// listRecords lists programmed records of a zone: all of them or, in a zone that has more, status.MaxZoneRecords. Those are the ones that
// it listed before, as far as they are still programmed, and others beside them, so that nobody has to look at the whole of such a zone.
// programmed is how many there are.
func (w *Writer) listRecords(ctx context.Context, e SyncCompleted, programmed int, before []v1beta1.RecordReference) []v1beta1.RecordReference {
	if e.Desired == nil || !e.Programmed.Holds() {
		return nil
	}
	l := recordList{SyncCompleted: e, most: min(programmed, status.MaxZoneRecords), chosen: map[source.ID]source.Declaration{}}
	for _, r := range before {
		for id, d := range e.Desired.Of(source.ObjectKey{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}) {
			l.chooseRecord(id, d)
		}
	}
	for id, d := range e.Desired.Declarations.All() {
		if len(l.chosen) >= l.most {
			break
		}
		l.chooseRecord(id, d)
	}
	refs := make([]v1beta1.RecordReference, 0, len(l.chosen))
	for _, d := range l.chosen {
		refs = append(refs, v1beta1.RecordReference{
			APIVersion: d.Ref.APIVersion, Kind: d.Ref.Kind, Namespace: d.Ref.Namespace, Name: d.Ref.Name,
			RecordName: relativeName(d.Key.Name, e.Desired.Name), LastReconciledAt: w.reconciledAt(ctx, e, d, before),
		})
	}
	slices.SortFunc(refs, compareReferences)
	return refs
}

// recordList is the choice of records that a zone's status lists.
type recordList struct {
	SyncCompleted
	most   int
	chosen map[source.ID]source.Declaration
}

func (l *recordList) chooseRecord(id source.ID, d source.Declaration) {
	if _, stuck := l.unprogrammedVerdict(d); stuck || !d.Accepted || len(l.chosen) >= l.most {
		return
	}
	l.chosen[id] = d
}

func compareReferences(a, b v1beta1.RecordReference) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.RecordName, b.RecordName))
}

// relativeName writes an owner name as records do.
func relativeName(name, zone string) string {
	if name == zone {
		return "@"
	}
	return strings.TrimSuffix(name, "."+zone)
}

// reconciledAt is when a declaration reached BIND, as far as the cache knows: the time in the status of the record, if that is about its
// present data, else that of the pass. DNSEndpoints have none; for them it is when the zone began to list the name.
func (w *Writer) reconciledAt(ctx context.Context, e SyncCompleted, d source.Declaration, before []v1beta1.RecordReference) *metav1.Time {
	at := metav1.NewTime(e.At.Truncate(time.Second))
	kind, ok := v1beta1.RecordKindOf(d.Ref.Kind)
	if !ok {
		name := relativeName(d.Key.Name, e.Desired.Name)
		i := slices.IndexFunc(before, func(r v1beta1.RecordReference) bool {
			return r.Kind == d.Ref.Kind && r.Namespace == d.Ref.Namespace && r.Name == d.Ref.Name && r.RecordName == name
		})
		if i >= 0 && before[i].LastReconciledAt != nil {
			return before[i].LastReconciledAt
		}
		return &at
	}
	record := kind.New()
	if err := w.Cache.Get(ctx, client.ObjectKey{Namespace: d.Ref.Namespace, Name: d.Ref.Name}, record.(client.Object), client.UnsafeDisableDeepCopy); err != nil {
		return &at
	}
	if s := record.GetRecordStatus(); s.RecordHash == source.Hash(d) && s.LastUpdated != nil {
		return s.LastUpdated
	}
	return &at
}

package statuswriter

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// writeRecord does the task of one record. One that is gone, or is not the one that was read, needs nothing: what there is
// instead has a task of its own.
func (w *Writer) writeRecord(ctx context.Context, key source.ObjectKey, n statusTask) error {
	kind, ok := v1beta1.RecordKindOf(key.Kind)
	if !ok {
		return nil
	}
	record := kind.New()
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, record.(client.Object)); err != nil {
		return client.IgnoreNotFound(err)
	}
	if n.released {
		return w.releaseRecord(ctx, record, n)
	}
	w.watchOutcomes(key, record, n.zone)
	e, ok := w.latestOutcome(n.zone)
	if !ok || e.Desired == nil || !record.GetDeletionTimestamp().IsZero() {
		return nil
	}
	for _, d := range e.Desired.Of(key) {
		if d.Ref.UID == record.GetUID() {
			return w.writeRecordStatus(ctx, record, e, d)
		}
	}
	if reason, held := e.Held[key]; held {
		return w.writeHeld(ctx, record, reason)
	}
	return nil
}

// writeHeld writes why a record that moves to another zone is not served there yet.
func (w *Writer) writeHeld(ctx context.Context, record v1beta1.Record, reason string) error {
	prev := *record.GetRecordStatus()
	next := status.Held(prev, record.GetGeneration(), reason, w.Now())
	if equality.Semantic.DeepEqual(next, prev) {
		return nil
	}
	return w.writeStatus(ctx, v1beta1.KindOf(record).Kind, record, &next)
}

// writeRecordStatus writes the status of a record that a zone selects, if it differs.
func (w *Writer) writeRecordStatus(ctx context.Context, record v1beta1.Record, e SyncCompleted, d source.Declaration) error {
	prev := *record.GetRecordStatus()
	if e.Programmed.Reason == status.PrimaryFailed && isProgrammed(record, d) {
		return nil
	}
	keys := source.PublishedKeys(record, e.Desired.Name)
	facts := recordFacts(e, d)
	facts.Absent = e.isAbsent(d, record, keys)
	next := status.Record(prev, facts, e.At)
	if !equality.Semantic.DeepEqual(next, prev) {
		if err := w.writeStatus(ctx, d.Ref.Kind, record, &next); err != nil {
			return err
		}
		if e.Programmed.Holds() {
			w.recordTransition(record, prev.Conditions, next.Conditions)
		}
	}
	if !e.hasSettled(d.Ref.Generation, record) {
		return nil
	}
	return w.removeFormerNames(ctx, record, keys, e)
}

// isAbsent reports whether a pass has seen that no primary holds what the status describes of a record that is not accepted, or was renamed.
// keys are the RRsets that it may have data in.
func (e SyncCompleted) isAbsent(d source.Declaration, record v1beta1.Record, keys []rrset.Key) bool {
	if published := record.GetRecordStatus().PublishedName; d.Accepted && (published == "" || published+"." == d.Key.Name) {
		return false
	}
	former := slices.DeleteFunc(slices.Clone(keys), func(k rrset.Key) bool { return d.Accepted && k == d.Key })
	return e.hasSettled(d.Ref.Generation, record) && !e.isAnyStuck(former)
}

// isProgrammed reports whether a record's status says that its present data is programmed. Such a record keeps that status while a
// primary is away: nothing new is known about it, and the zone's status has the primary's problem.
func isProgrammed(record v1beta1.Record, d source.Declaration) bool {
	s := record.GetRecordStatus()
	return s.ObservedGeneration == d.Ref.Generation && meta.IsStatusConditionTrue(s.Conditions, status.Programmed) &&
		s.RecordHash == source.Hash(d)
}

// recordFacts are what a pass found out about one declaration.
func recordFacts(e SyncCompleted, d source.Declaration) status.RecordFacts {
	f := status.RecordFacts{
		Zone: e.Zone, Generation: d.Ref.Generation,
		Owner: strings.TrimSuffix(d.Key.Name, "."), Hash: source.Hash(d), ReadyReason: status.ReconcileFailed,
	}
	if d.Key.Type == dns.TypeA || d.Key.Type == dns.TypeAAAA {
		f.Addresses = strings.Join(d.Rdata, ",")
	}
	f.Accepted, f.Programmed = declarationVerdicts(e, d)
	if d.Accepted && !e.Programmed.Holds() {
		if f.ReadyReason = e.Programmed.Reason; f.ReadyReason != status.NoPrimaryInstances {
			f.ReadyReason = status.ZoneNotConfigured
		}
	}
	return f
}

// declarationVerdicts are the two halves of a declaration's outcome.
func declarationVerdicts(e SyncCompleted, d source.Declaration) (accepted, programmed status.Verdict) {
	if !d.Accepted {
		v := status.False(d.Reason, d.Message)
		return v, v
	}
	accepted = status.PartOf(e.Zone.Spec.ZoneName, d.Note)
	switch v, not := e.unprogrammedVerdict(d); {
	case not && v.Reason == status.Unsupported: // The other hosts of the zone have it.
		return v, v
	case not:
		return accepted, v
	}
	return accepted, status.AnsweredByAll(e.Zone.Spec.ZoneName, d.Key)
}

// releaseRecord removes our marks from a record whose data is in no zone: a deleted one may go now, the status of any other
// says that no zone has it. The status is last: for as long as it names the zone the record is released again. A record
// that the zone has taken up again in the meantime stays as it is.
func (w *Writer) releaseRecord(ctx context.Context, record v1beta1.Record, n statusTask) error {
	why := status.NoZoneSelects(record)
	if w.Place != nil && record.GetDeletionTimestamp().IsZero() {
		at := w.Place(record)
		if at.isClaimed(n.zone) {
			return nil
		}
		if len(at.Taken) > 0 {
			why = status.AboutToBeTaken(at.Taken[0].String())
		}
	}
	free, err := apply.Metadata(ctx, w.Client, record, noMarks())
	if err != nil || !record.GetDeletionTimestamp().IsZero() {
		return err
	}
	record = free.(v1beta1.Record)
	next := status.Unselected(*record.GetRecordStatus(), record.GetGeneration(), why, w.Now())
	if equality.Semantic.DeepEqual(next, *record.GetRecordStatus()) {
		return nil
	}
	return w.writeStatus(ctx, v1beta1.KindOf(record).Kind, record, &next)
}

// noMarks removes what shows that an object's data may be in DNS.
func noMarks() apply.Marks {
	return apply.Marks{
		RemoveFinalizers:  []string{v1beta1.Finalizer},
		RemoveAnnotations: []string{v1beta1.ZoneAnnotation, v1beta1.FormerNamesAnnotation},
	}
}

package syncevent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// writers bounds the status writes that run at once; kube-apiserver's fairness does the rest.
const writers = 16

// Records tells every record of a zone what became of it, and lets go of those that have left the zone.
type Records struct {
	client client.Client

	mu sync.Mutex
	// told holds for each record what it was last told, so that a pass over a large zone costs little for the records
	// that it changes nothing for.
	told map[types.UID]news
}

// news is all that a record's status is made from, beside the record itself.
type news struct {
	// resourceVersion of the record that the news was compared with.
	resourceVersion string
	zone            types.UID
	key             rrset.Key
	ttl             uint32
	accepted        bool
	// reason, message and note are the declaration's own.
	reason, message, note string
	// programmed is why the data is not programmed; zero when it is.
	programmed status.Verdict
}

// NewRecords makes the listener.
func NewRecords(c client.Client) *Records {
	return &Records{client: c, told: map[types.UID]news{}}
}

// OnSyncCompleted implements Listener.
func (l *Records) OnSyncCompleted(ctx context.Context, e SyncCompleted) error {
	var group errgroup.Group
	group.SetLimit(writers)
	for _, record := range e.Released {
		group.Go(func() error { return l.Release(ctx, record, e.At) })
	}
	if e.Desired != nil {
		for i := range e.Desired.Declarations {
			d := &e.Desired.Declarations[i]
			record, ok := e.Records[d.Ref.UID]
			if !ok || (e.Problem.Reason == status.PrimaryFailed && programmed(record, d)) {
				continue
			}
			if n := newsOf(e, d, record); !l.knows(record, n) {
				group.Go(func() error { return l.tell(ctx, e, d, record, n) })
			}
		}
	}
	return group.Wait()
}

// programmed tells whether a record says of its present data that it is programmed. Such a record keeps that status while
// a primary is away: nothing new is known about it, and the zone's status tells of the primary.
func programmed(record v1beta1.Record, d *source.Declaration) bool {
	s := record.GetRecordStatus()
	return s.ObservedGeneration == d.Ref.Generation && meta.IsStatusConditionTrue(s.Conditions, status.Programmed) &&
		s.RecordHash == source.Hash(*d)
}

func newsOf(e SyncCompleted, d *source.Declaration, record v1beta1.Record) news {
	n := news{
		resourceVersion: record.GetResourceVersion(), zone: e.Zone.UID, key: d.Key, ttl: d.TTL,
		accepted: d.Accepted, reason: d.Reason, message: d.Message, note: d.Note, programmed: e.Unprogrammed[d.Key],
	}
	if !e.Problem.Holds() {
		n.programmed = e.Problem
	}
	return n
}

func (l *Records) knows(record v1beta1.Record, n news) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told[record.GetUID()] == n
}

// tell writes the status of one selected record when it differs from what the record already says. The news is kept
// only then: a status that was written comes back with another resourceVersion and is compared once more.
func (l *Records) tell(ctx context.Context, e SyncCompleted, d *source.Declaration, record v1beta1.Record, n news) error {
	next := status.Record(*record.GetRecordStatus(), recordFacts(e, d), e.At)
	if !equality.Semantic.DeepEqual(next, *record.GetRecordStatus()) {
		return ApplyStatus(ctx, l.client, v1beta1.KindOf(record).GroupVersionKind(), record, &next)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[record.GetUID()] = n
	return nil
}

// recordFacts picks out of a pass what concerns one declaration.
func recordFacts(e SyncCompleted, d *source.Declaration) status.RecordFacts {
	kind, _ := v1beta1.RecordKindOfType(d.Key.Type)
	f := status.RecordFacts{
		Zone: e.Zone, Generation: d.Ref.Generation,
		Owner: strings.TrimSuffix(d.Key.Name, "."), Hash: source.Hash(*d),
		Accepted: status.Yes(status.Accepted, "part of zone "+e.Zone.Spec.ZoneName), ReadyReason: status.ReconcileFailed,
	}
	if kind.Type == "A" || kind.Type == "AAAA" {
		f.Addresses = strings.Join(d.Rdata, ",")
	}
	pending, stuck := e.Unprogrammed[d.Key]
	switch {
	case !d.Accepted:
		f.Accepted = status.No(d.Reason, d.Message)
		f.Programmed = status.No(d.Reason, d.Message)
	case !e.Problem.Holds():
		f.Programmed = e.Problem
		f.ReadyReason = recordReason(e.Problem.Reason)
	case stuck:
		f.Programmed = pending
	default:
		f.Programmed = status.Yes(status.Programmed, fmt.Sprintf("every primary of zone %s answers with %s %s",
			e.Zone.Spec.ZoneName, d.Key.Name, kind.Type))
	}
	if d.Accepted && d.Note != "" {
		f.Accepted.Message += "; " + d.Note
	}
	return f
}

// recordReason is the reason that a record gives for a problem of its zone.
func recordReason(zoneReason string) string {
	if zoneReason == status.NoPrimaryInstances {
		return zoneReason
	}
	return status.ZoneNotConfigured
}

// Release takes our marks off a record whose data is in no zone: a deleted one may go now, any other says that no zone
// selects it. The status is last, for as long as it names the zone the record is released again.
func (l *Records) Release(ctx context.Context, record v1beta1.Record, now time.Time) error {
	l.mu.Lock()
	delete(l.told, record.GetUID())
	l.mu.Unlock()
	err := UpdateMetadata(ctx, l.client, record, func(o client.Object) {
		controllerutil.RemoveFinalizer(o, v1beta1.Finalizer)
		annotations := o.GetAnnotations()
		delete(annotations, v1beta1.ZoneAnnotation)
		o.SetAnnotations(annotations)
	})
	if err != nil || !record.GetDeletionTimestamp().IsZero() {
		return err
	}
	next := status.Unselected(*record.GetRecordStatus(), record.GetGeneration(),
		"no DNSZone of namespace "+record.GetNamespace()+" selects this record's labels", now)
	if equality.Semantic.DeepEqual(next, *record.GetRecordStatus()) {
		return nil
	}
	return ApplyStatus(ctx, l.client, v1beta1.KindOf(record).GroupVersionKind(), record, &next)
}

// UpdateMetadata changes an object's metadata, if change makes a difference, on condition that nobody changed the
// object since it was read. An object that is gone is left alone.
func UpdateMetadata(ctx context.Context, c client.Client, obj client.Object, change func(client.Object)) error {
	next := obj.DeepCopyObject().(client.Object)
	change(next)
	if equality.Semantic.DeepEqual(obj.GetFinalizers(), next.GetFinalizers()) &&
		equality.Semantic.DeepEqual(obj.GetAnnotations(), next.GetAnnotations()) {
		return nil
	}
	err := c.Patch(ctx, next, client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{}))
	if gone(err) {
		return nil
	}
	return err
}

// gone tells whether an object could not be written because it is not there any more, or is another one by now.
func gone(err error) bool {
	return apierrors.IsNotFound(err) || (apierrors.IsConflict(err) && strings.Contains(err.Error(), "UID"))
}

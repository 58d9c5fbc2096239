package statuswriter

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// hasSettled reports whether a pass has dealt with an object as it is now, its former names included: admission notes those in the same
// write that makes another generation.
func (e SyncCompleted) hasSettled(generation int64, o source.Object) bool {
	return e.Programmed.Holds() && e.Pending == 0 && generation == o.GetGeneration()
}

// isAnyStuck reports whether one of some RRsets is not on every primary as desired, or not gone from it.
func (e SyncCompleted) isAnyStuck(keys []rrset.Key) bool {
	return slices.ContainsFunc(keys, func(k rrset.Key) bool { _, stuck := e.Unprogrammed[k]; return stuck })
}

// watchOutcomes has an object looked at again when the outcome of one of the zones changes, if data of it is to be deleted:
// that this is done is no change of the object. It is called before the outcomes are read, so that none is missed.
func (w *Writer) watchOutcomes(key source.ObjectKey, o source.Object, zones ...types.NamespacedName) {
	_, noted := o.GetAnnotations()[v1beta1.FormerNamesAnnotation]
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, zone := range zones {
		z := w.zones[zone]
		if z == nil {
			continue // All of its objects are looked at after its first pass.
		}
		if !noted && !z.latest.isPublished(key, o) {
			continue
		}
		if z.waiting == nil {
			z.waiting = map[source.ObjectKey]struct{}{}
		}
		z.waiting[key] = struct{}{}
	}
}

// isPublished reports whether an object that is not accepted has a status that says that it is served.
func (e SyncCompleted) isPublished(key source.ObjectKey, o source.Object) bool {
	record, ok := o.(v1beta1.Record)
	if !ok || e.Desired == nil || record.GetRecordStatus().PublishedName == "" {
		return false
	}
	for _, d := range e.Desired.Of(key) {
		if !d.Accepted {
			return true
		}
	}
	return false
}

// silenceLimit is for how long a secondary that does not answer is expected to be back with the version of the zone that it had.
const silenceLimit = 10 * time.Minute

// isFollowed reports whether no secondary answers with another version of the zone than the primaries have, or may do so when it answers
// again.
func (e SyncCompleted) isFollowed() bool {
	return !slices.ContainsFunc(e.Servers, func(s ServerOutcome) bool {
		return s.Role == observe.Secondary && !s.Current && (s.HasZone || !s.SilentSince.IsZero() && e.At.Sub(s.SilentSince) < silenceLimit)
	})
}

// removeFormerNames removes the annotation of an object's former names once none of its former keys waits for anything, and no secondary may
// still answer with one of them.
func (w *Writer) removeFormerNames(ctx context.Context, o source.Object, keys []rrset.Key, passes ...SyncCompleted) error {
	if _, noted := o.GetAnnotations()[v1beta1.FormerNamesAnnotation]; !noted {
		return nil
	}
	for _, e := range passes {
		declared := map[rrset.Key]bool{}
		for _, d := range e.Desired.Of(source.KeyOf(o)) {
			declared[d.Key] = d.Accepted
		}
		former := slices.DeleteFunc(slices.Clone(keys), func(k rrset.Key) bool { return declared[k] })
		if e.isAnyStuck(former) || !e.isFollowed() {
			return nil
		}
	}
	_, err := apply.Metadata(ctx, w.Client, o, apply.Marks{RemoveAnnotations: []string{v1beta1.FormerNamesAnnotation}})
	return err
}

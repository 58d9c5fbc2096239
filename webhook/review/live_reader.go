package review

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// liveReader reads what is stored at this moment. It is used only where a user is about to be warned or refused by what the
// caches hold or lack: what is missing may have been applied a moment before, and what is in the way deleted, by the same
// command. Without an answer it returns nothing, and what the caches hold counts.
type liveReader interface {
	// hasLiveCluster reports whether a cluster is stored; see Objects.hasCluster.
	hasLiveCluster(ctx context.Context, namespace, name string) bool
	// liveZones are the zones of a namespace or, without one, of all.
	liveZones(ctx context.Context, namespace string) []*v1beta1.DNSZone
	// liveInstances are the instances of all namespaces that a selector matches.
	liveInstances(ctx context.Context, selector *metav1.LabelSelector) []*v1beta1.Bind9Instance
	// liveNSRecords are the NSRecords of a namespace.
	liveNSRecords(ctx context.Context, namespace string) []v1beta1.Record
	// hasLiveRecords reports whether a selector matches any record of a namespace.
	hasLiveRecords(ctx context.Context, namespace string, selector *metav1.LabelSelector) bool
	// countLive counts the objects of a namespace and one of our kinds; it is not known without an answer.
	countLive(ctx context.Context, namespace, kind string) (n int, known bool)
	// hasChanged reports whether an object that a cache holds is gone by now, is going, or says something else.
	hasChanged(ctx context.Context, o client.Object) bool
}

// noLiveReader is the latest of objects that never change.
type noLiveReader struct{}

func (noLiveReader) hasLiveCluster(context.Context, string, string) bool { return false }

func (noLiveReader) liveZones(context.Context, string) []*v1beta1.DNSZone { return nil }

func (noLiveReader) liveInstances(context.Context, *metav1.LabelSelector) []*v1beta1.Bind9Instance {
	return nil
}

func (noLiveReader) liveNSRecords(context.Context, string) []v1beta1.Record { return nil }

func (noLiveReader) hasLiveRecords(context.Context, string, *metav1.LabelSelector) bool { return false }

func (noLiveReader) countLive(context.Context, string, string) (int, bool) { return 0, false }

func (noLiveReader) hasChanged(context.Context, client.Object) bool { return false }

const (
	// reviewTimeout is how long a review waits for the API server's words and for caches: it has a few seconds in all, and
	// without an answer an object may be refused. pause is how long nobody asks again when there was no word.
	reviewTimeout, retryInterval = time.Second, 10 * time.Second
	// reads for reviews of one sender that a second may have in the long run, and at once; for all senders it is a multiple.
	// Thousands of records outside of all zones are no reason to read the zones thousands of times: the caches lag for a moment
	// only.
	readsPerSecond, readsAtOnce, allSenders = 5, 40, 4
	// maxSenders is how many senders are remembered, those of the latest reviews.
	maxSenders = 256
	// pageLimit is how many objects are worth reading for a better warning, maxRechecked how many are read one by one.
	pageLimit, maxRechecked = 500, 16
)

// liveClient reads from kube-apiserver, within a budget, and for as long as the context of a review allows.
type liveClient struct {
	reader client.Reader
	// budget is for the reads of all reviews, shares has that of each sender: who forges reviews uses up nobody else's.
	budget     flowcontrol.PassiveRateLimiter
	shares     *lru.Cache
	retryAfter time.Duration
	// retryAt is the time, in nanoseconds since 1970, before which nothing is asked.
	retryAt atomic.Int64
}

func newLiveClient(reader client.Reader) *liveClient {
	return &liveClient{reader: reader, budget: newReadBudget(allSenders), shares: lru.New(maxSenders), retryAfter: retryInterval}
}

func newReadBudget(senders int) flowcontrol.PassiveRateLimiter {
	return flowcontrol.NewTokenBucketPassiveRateLimiter(float32(senders*readsPerSecond), senders*readsAtOnce)
}

type senderKey struct{}

// WithSender returns a context for reviews that an address sends.
func WithSender(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, senderKey{}, address)
}

// SenderOf returns the address that sends the reviews of a context, "" if that is not known.
func SenderOf(ctx context.Context) string {
	address, _ := ctx.Value(senderKey{}).(string)
	return address
}

// accept reports whether the sender of a review may cause one more read.
func (s *liveClient) accept(ctx context.Context) bool {
	sender := SenderOf(ctx)
	share, known := s.shares.Get(sender)
	if !known {
		share = newReadBudget(1)
		s.shares.Add(sender, share)
	}
	own, ok := share.(flowcontrol.PassiveRateLimiter)
	return ok && own.TryAccept() && s.budget.TryAccept()
}

func (s *liveClient) hasLiveCluster(ctx context.Context, namespace, name string) (known bool) {
	s.read(ctx, func(ctx context.Context) (err error) {
		known, err = clusterExists(ctx, s, namespace, name)
		return err
	})
	return known
}

func (s *liveClient) liveZones(ctx context.Context, namespace string) []*v1beta1.DNSZone {
	var list v1beta1.DNSZoneList
	s.read(ctx, func(ctx context.Context) error {
		return s.List(ctx, &list, client.InNamespace(namespace), client.Limit(pageLimit))
	})
	if list.Continue != "" {
		return nil // The rest could say otherwise.
	}
	return pointersTo(list.Items)
}

func (s *liveClient) liveInstances(ctx context.Context, selector *metav1.LabelSelector) []*v1beta1.Bind9Instance {
	labels, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	var list v1beta1.Bind9InstanceList
	s.read(ctx, func(ctx context.Context) error {
		return s.List(ctx, &list, client.MatchingLabelsSelector{Selector: labels}, client.Limit(pageLimit))
	})
	return pointersTo(list.Items)
}

func (s *liveClient) liveNSRecords(ctx context.Context, namespace string) (records []v1beta1.Record) {
	s.read(ctx, func(ctx context.Context) (err error) {
		records, err = listRecords(ctx, s, v1beta1.KindOf(&v1beta1.NSRecord{}), client.InNamespace(namespace), client.Limit(pageLimit))
		return err
	})
	return records
}

func (s *liveClient) hasLiveRecords(ctx context.Context, namespace string, selector *metav1.LabelSelector) (found bool) {
	labels, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false
	}
	s.read(ctx, func(ctx context.Context) error {
		for _, kind := range v1beta1.RecordKinds {
			records, err := listRecords(ctx, s, kind, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: labels}, client.Limit(1))
			if found = len(records) > 0; found || err != nil {
				return err
			}
		}
		return nil
	})
	return found
}

func (s *liveClient) countLive(ctx context.Context, namespace, kind string) (n int, known bool) {
	s.read(ctx, func(ctx context.Context) error {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind + "List"))
		err := s.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
		n, known = len(list.Items)+int(ptr.Deref(list.RemainingItemCount, 0)), err == nil
		return err
	})
	return n, known
}

func (s *liveClient) hasChanged(ctx context.Context, o client.Object) (changed bool) {
	s.read(ctx, func(ctx context.Context) error {
		now, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			return nil
		}
		err := s.Get(ctx, client.ObjectKeyFromObject(o), now)
		changed = apierrors.IsNotFound(err) || err == nil && (now.GetUID() != o.GetUID() || now.GetGeneration() != o.GetGeneration() ||
			!maps.Equal(now.GetLabels(), o.GetLabels()) || now.GetDeletionTimestamp().IsZero() != o.GetDeletionTimestamp().IsZero())
		return client.IgnoreNotFound(err)
	})
	return changed
}

// recheckInterval is how soon the caches are looked at again of which it is known that they lag.
const recheckInterval = 10 * time.Millisecond

// awaitChange reports whether one of some objects of the caches has changed, and then waits a moment for the caches to learn of it. It is false
// when no time is left, and of more objects than are worth the reads.
func awaitChange(ctx context.Context, live liveReader, objects []client.Object) bool {
	if len(objects) > maxRechecked || !slices.ContainsFunc(objects, func(o client.Object) bool { return live.hasChanged(ctx, o) }) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(recheckInterval):
		return true
	}
}

// errTooMany is returned when the budget is used up.
var errTooMany = errors.New("too many reads at once")

// read reads, unless there was no answer a while ago.
func (s *liveClient) read(ctx context.Context, read func(context.Context) error) {
	// What is further off was noted before the clock was set back.
	if left := time.Duration(s.retryAt.Load() - time.Now().UnixNano()); left > 0 && left <= s.retryAfter {
		return
	}
	err := read(ctx)
	if err == nil || errors.Is(err, errTooMany) || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	s.retryAt.Store(time.Now().Add(s.retryAfter).UnixNano())
	klog.FromContext(ctx).Info("API server does not answer; reviews use the caches for a while", "reason", err, "while", s.retryAfter)
}

// Get implements client.Reader.
func (s *liveClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if !s.accept(ctx) {
		return errTooMany
	}
	err := s.reader.Get(ctx, key, o, options...)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("asking the API server: %w", err)
	}
	return err
}

// List implements client.Reader.
func (s *liveClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if !s.accept(ctx) {
		return errTooMany
	}
	if err := s.reader.List(ctx, list, options...); err != nil {
		return fmt.Errorf("asking the API server: %w", err)
	}
	return nil
}

func pointersTo[T any](items []T) []*T {
	all := make([]*T, 0, len(items))
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

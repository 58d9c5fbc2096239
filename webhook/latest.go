package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// latest looks at what is stored at this moment. It is asked only where a user is about to be warned or refused by what the
// caches hold or lack: what is missing may have been applied a moment before, and what is in the way deleted, by the same
// command. It answers with nothing when it cannot tell, and then the word of the caches stands.
type latest interface {
	// clusterNow tells of a cluster as objects.hasCluster does.
	clusterNow(ctx context.Context, namespace, name string) bool
	// zonesNow are the zones of a namespace or, without one, of all.
	zonesNow(ctx context.Context, namespace string) []*v1beta1.DNSZone
	// instancesNow are the instances of all namespaces that a selector matches.
	instancesNow(ctx context.Context, selector *metav1.LabelSelector) []*v1beta1.Bind9Instance
	// recordsNow tells whether a selector matches any record of a namespace.
	recordsNow(ctx context.Context, namespace string, selector *metav1.LabelSelector) bool
	// leavesNow tells whether an object that a cache holds is gone, or going.
	leavesNow(ctx context.Context, o client.Object) bool
}

// nothingLater is the latest of objects that never change.
type nothingLater struct{}

func (nothingLater) clusterNow(context.Context, string, string) bool { return false }

func (nothingLater) zonesNow(context.Context, string) []*v1beta1.DNSZone { return nil }

func (nothingLater) instancesNow(context.Context, *metav1.LabelSelector) []*v1beta1.Bind9Instance {
	return nil
}

func (nothingLater) recordsNow(context.Context, string, *metav1.LabelSelector) bool { return false }

func (nothingLater) leavesNow(context.Context, client.Object) bool { return false }

const (
	// patience is how long a review waits for the API server's words and for caches: it has a few seconds in all, and
	// without an answer an object may be refused. pause is how long nobody asks again when there was no word.
	patience, pause = time.Second, 10 * time.Second
	// reads that a second may have in the long run, and at once. Thousands of records outside of all zones are no reason to
	// read the zones thousands of times: the caches lag for a moment only.
	readsPerSecond, readsAtOnce = 5, 40
	// page is how many objects are worth reading for a better warning.
	page = 500
)

// stored asks kube-apiserver, so many times, and for as long as the context of a review allows.
type stored struct {
	reader client.Reader
	budget flowcontrol.PassiveRateLimiter
	pause  time.Duration
	// resume is the time, in nanoseconds since 1970, before which nothing is asked.
	resume atomic.Int64
}

func newStored(reader client.Reader) *stored {
	return &stored{reader: reader, budget: flowcontrol.NewTokenBucketPassiveRateLimiter(readsPerSecond, readsAtOnce), pause: pause}
}

func (s *stored) clusterNow(ctx context.Context, namespace, name string) (known bool) {
	s.ask(ctx, func(ctx context.Context) (err error) {
		known, err = hasCluster(ctx, s, namespace, name)
		return err
	})
	return known
}

func (s *stored) zonesNow(ctx context.Context, namespace string) []*v1beta1.DNSZone {
	var list v1beta1.DNSZoneList
	s.ask(ctx, func(ctx context.Context) error {
		return s.List(ctx, &list, client.InNamespace(namespace), client.Limit(page))
	})
	if list.Continue != "" {
		return nil // The rest could say otherwise.
	}
	return pointers(list.Items)
}

func (s *stored) instancesNow(ctx context.Context, selector *metav1.LabelSelector) []*v1beta1.Bind9Instance {
	labels, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	var list v1beta1.Bind9InstanceList
	s.ask(ctx, func(ctx context.Context) error {
		return s.List(ctx, &list, client.MatchingLabelsSelector{Selector: labels}, client.Limit(page))
	})
	return pointers(list.Items)
}

func (s *stored) recordsNow(ctx context.Context, namespace string, selector *metav1.LabelSelector) (any bool) {
	labels, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false
	}
	s.ask(ctx, func(ctx context.Context) error {
		for _, kind := range v1beta1.RecordKinds {
			records, err := listRecords(ctx, s, kind, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: labels}, client.Limit(1))
			if any = len(records) > 0; any || err != nil {
				return err
			}
		}
		return nil
	})
	return any
}

func (s *stored) leavesNow(ctx context.Context, o client.Object) (leaves bool) {
	s.ask(ctx, func(ctx context.Context) error {
		now, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			return nil
		}
		err := s.Get(ctx, client.ObjectKeyFromObject(o), now)
		leaves = apierrors.IsNotFound(err) || err == nil && now.GetDeletionTimestamp() != nil
		return client.IgnoreNotFound(err)
	})
	return leaves
}

// errTooMany says that the budget is used up.
var errTooMany = errors.New("too many reads at once")

// ask reads, unless there was no answer a while ago.
func (s *stored) ask(ctx context.Context, read func(context.Context) error) {
	if time.Now().UnixNano() < s.resume.Load() {
		return
	}
	err := read(ctx)
	if err == nil || errors.Is(err, errTooMany) || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	s.resume.Store(time.Now().Add(s.pause).UnixNano())
	klog.FromContext(ctx).Info("The API server does not answer: reviews go by the caches for a while", "reason", err, "while", s.pause)
}

// Get implements client.Reader.
func (s *stored) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if !s.budget.TryAccept() {
		return errTooMany
	}
	err := s.reader.Get(ctx, key, o, options...)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("asking the API server: %w", err)
	}
	return err
}

// List implements client.Reader.
func (s *stored) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if !s.budget.TryAccept() {
		return errTooMany
	}
	if err := s.reader.List(ctx, list, options...); err != nil {
		return fmt.Errorf("asking the API server: %w", err)
	}
	return nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, 0, len(items))
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

package externaldns

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

const (
	// recordRefused is the reason of Events on source objects, and publishAction their action.
	recordRefused = "RecordNotServed"
	publishAction = "Publish"
	// repeatNotice is when the same is said again, maxNotices how much is remembered.
	repeatNotice = time.Hour
	maxNotices   = 10_000
)

// notices makes Warning Events on source objects of which a record is not served, each once in an hour: external-dns asks again every
// minute.
type notices struct {
	store    *store
	recorder events.EventRecorder
	limit    *apply.EventLimit
	mu       sync.Mutex
	given    *cache.LRUExpireCache
}

func newNotices(s *store, recorder events.EventRecorder) *notices {
	return &notices{store: s, recorder: recorder, limit: apply.NewEventLimit(20, 200), given: cache.NewLRUExpireCache(maxNotices)}
}

// reportRefusals makes the Events that are due.
func (n *notices) reportRefusals(ctx context.Context, refused []refusal) {
	present := newPresentObjects(n.store.client)
	for _, r := range refused {
		if !n.takeNew(r) {
			continue
		}
		klog.FromContext(ctx).Info("record is not served", "source", r.resource.String(), "reason", r.note)
		if o, err := n.store.readSource(ctx, present, r.resource); err == nil && o != nil {
			note := status.TruncateMessage(r.note)
			regarding := apply.RegardingNote(n.store.client.Scheme(), o, note)
			n.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, recordRefused, publishAction, "%s", note)
		}
	}
}

// takeNew reports whether something is to be said now. What is too much at once is said at a later interval.
func (n *notices) takeNew(r refusal) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, given := n.given.Get(r); given || !n.limit.Take(r.resource.namespace) {
		return false
	}
	n.given.Add(r, nil, repeatNotice)
	return true
}

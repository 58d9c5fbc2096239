// Package failures counts the objects that have failed, by kind and reason, from the informers that the process has anyway. It reads what
// statuses say and decides nothing; the controller and the fleet manager set it up for the kinds whose statuses they write.
package failures

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// maxReasons bounds the series of a kind: whoever may write statuses chooses reasons. All beyond it are one.
const (
	maxReasons   = 64
	otherReasons = "Other"
)

// counter counts the objects of one kind.
type counter struct {
	kind   string
	failed *metrics.GaugeVec

	mu      sync.Mutex
	objects map[types.NamespacedName]string
	counts  map[string]int
	seen    map[string]bool
}

func newCounter(kind string, failed *metrics.GaugeVec) *counter {
	return &counter{kind: kind, failed: failed, objects: map[types.NamespacedName]string{}, counts: map[string]int{}, seen: map[string]bool{}}
}

func newGauge() *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "lockstep_objects_failed", Help: "Objects that a person has to help, by kind and reason.", StabilityLevel: metrics.ALPHA,
	}, []string{"kind", "reason"})
}

// Setup counts objects of some kinds, in the leader.
func Setup(mgr ctrl.Manager, kinds ...client.Object) error {
	failed := newGauge()
	if err := component.Register(failed); err != nil {
		return fmt.Errorf("registering the metric of failed objects: %w", err)
	}
	return mgr.Add(&follower{manager: mgr, failed: failed, kinds: kinds})
}

// follower is a runnable of the manager.
type follower struct {
	manager ctrl.Manager
	failed  *metrics.GaugeVec
	kinds   []client.Object
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: each object is to be counted once.
func (f *follower) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (f *follower) Start(ctx context.Context) error {
	for _, kind := range f.kinds {
		gvk, err := apiutil.GVKForObject(kind, f.manager.GetScheme())
		if err != nil {
			return fmt.Errorf("counting %T: %w", kind, err)
		}
		informer, err := f.manager.GetCache().GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("counting %s objects: %w", gvk.Kind, err)
		}
		c := newCounter(gvk.Kind, f.failed)
		if _, err := informer.AddEventHandler(c.handler()); err != nil {
			return fmt.Errorf("counting %s objects: %w", gvk.Kind, err)
		}
	}
	return nil
}

func (c *counter) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { c.set(o.(metav1.Object), status.FailureOf(o.(metav1.Object))) },
		UpdateFunc: func(_, o any) { c.set(o.(metav1.Object), status.FailureOf(o.(metav1.Object))) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			c.set(o.(metav1.Object), "")
		},
	}
}

// set counts an object by the reason for which it has failed; empty if it has not.
func (c *counter) set(o metav1.Object, reason string) {
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if reason != "" && !c.seen[reason] {
		if len(c.seen) >= maxReasons {
			reason = otherReasons
		} else {
			c.seen[reason] = true
		}
	}
	before := c.objects[key]
	if before == reason {
		return
	}
	if delete(c.objects, key); reason != "" {
		c.objects[key] = reason
	}
	c.add(before, -1)
	c.add(reason, 1)
}

// add changes a count. That of a reason stays, at 0, once there was one: an alert that looks at changes sees it end.
func (c *counter) add(reason string, n int) {
	if reason == "" {
		return
	}
	c.counts[reason] += n
	c.failed.WithLabelValues(c.kind, reason).Set(float64(c.counts[reason]))
}

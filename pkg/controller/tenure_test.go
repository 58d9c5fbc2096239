package controller

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// requestTimeout is that of the requests about a lease (newLock, resourcelock.NewFromKubeconfig).
const requestTimeout = renewDeadline / 4

// cutLock is a lease that a process cannot reach any more once it is cut off.
type cutLock struct {
	resourcelock.Interface
	isCut atomic.Bool
}

func (l *cutLock) wait(ctx context.Context) error {
	if !l.isCut.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

func (l *cutLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.wait(ctx); err != nil {
		return nil, nil, err
	}
	return l.Interface.Get(ctx)
}

func (l *cutLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.Interface.Update(ctx, record)
}

// candidate is a process that runs passes while it leads, each of them for as long as its context lets it.
type candidate struct {
	*podLock
	cut *cutLock
	// led is when it began to lead, wrote when it changed something last.
	led, wrote atomic.Pointer[time.Time]
	ended      atomic.Bool
}

func newCandidate(t *testing.T, client kubernetes.Interface, name string) *candidate {
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "home", "lease", client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
	if err != nil {
		t.Fatal(err)
	}
	cut := &cutLock{Interface: lock}
	return &candidate{podLock: &podLock{Interface: cut, pods: client.CoreV1().Pods("home"), tenure: &tenure{}}, cut: cut}
}

func (c *candidate) run(ctx context.Context, t *testing.T) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c.podLock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				c.led.Store(new(time.Now()))
				c.work(context.WithoutCancel(ctx))
			},
			OnStoppedLeading: func() { c.ended.Store(true) },
		},
	})
	if err != nil {
		t.Error(err)
		return
	}
	elector.Run(ctx)
}

// work runs passes until the process ends: that is when the elector has returned.
func (c *candidate) work(ctx context.Context) {
	passes := c.tenure.guard(reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
		for ctx.Err() == nil && !c.ended.Load() {
			c.wrote.Store(new(time.Now()))
			time.Sleep(100 * time.Millisecond)
		}
		return ctrl.Result{}, context.Cause(ctx)
	}))
	for !c.ended.Load() {
		_, _ = passes.Reconcile(ctx, ctrl.Request{})
		time.Sleep(100 * time.Millisecond)
	}
}

// A leader has changed servers for the last time before the next one leads, also what its kernel still repeats then, whatever happens to it;
// and somebody leads soon.
func TestFormerLeaderStopsBeforeTheNextBegins(t *testing.T) {
	for name, test := range map[string]struct {
		// happens to the leader.
		happens func(former *candidate, deletePod func())
		// within is how long it takes until the other one leads; 0 if it does not.
		within time.Duration
	}{
		"cut off, pod deleted": {func(former *candidate, deletePod func()) {
			former.cut.isCut.Store(true)
			deletePod()
		}, takeoverDelay + 5*retryPeriod},
		"cut off, pod deleted later": {func(former *candidate, deletePod func()) {
			former.cut.isCut.Store(true)
			time.Sleep(takeoverDelay)
			deletePod()
		}, 5 * retryPeriod},
		"cut off":                      {func(former *candidate, _ func()) { former.cut.isCut.Store(true) }, leaseDuration + 5*retryPeriod},
		"pod deleted, and it lives on": {func(_ *candidate, deletePod func()) { deletePod() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				client := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "former"}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "next"}})
				former, next := newCandidate(t, client, "former"), newCandidate(t, client, "next")
				go former.run(ctx, t)
				time.Sleep(time.Second)
				go next.run(ctx, t)
				time.Sleep(time.Minute)
				test.happens(former, func() {
					if err := client.CoreV1().Pods("home").Delete(ctx, "former", metav1.DeleteOptions{}); err != nil {
						t.Error(err)
					}
				})
				happened := time.Now()
				time.Sleep(2 * leaseDuration)
				led, wrote := next.led.Load(), *former.wrote.Load()
				switch {
				case test.within == 0 && (led != nil || time.Since(wrote) > time.Second):
					t.Errorf("the former leader renews its lease, and changed servers last %s ago; the next one led: %t", time.Since(wrote), led != nil)
				case test.within != 0 && led == nil:
					t.Error("nobody leads")
				case test.within != 0 && led.Sub(happened) > test.within:
					t.Errorf("the next one led after %s, want %s", led.Sub(happened), test.within)
				case test.within != 0 && led.Sub(wrote) < 4*time.Second:
					t.Errorf("the next one led %s after the former one's last change", led.Sub(wrote))
				}
				stop()
				time.Sleep(leaseDuration)
			})
		})
	}
}

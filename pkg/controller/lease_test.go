package controller

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A lease is free when its holder is a pod that is not there any more, once it has not been renewed for a while, and not otherwise.
func TestLeaseOfAPodThatIsGoneIsFree(t *testing.T) {
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name}, Status: corev1.PodStatus{Phase: phase}}
	}
	for holder, want := range map[string]string{
		"running": "running", "evicted": "", "gone": "", "me": "me", "host_0b5c": "host_0b5c", "": "",
	} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(pod("running", corev1.PodRunning), pod("evicted", corev1.PodFailed))
			lock := newCandidate(t, client, "me").podLock
			expect := func(want string) {
				t.Helper()
				if record, _, err := lock.Get(t.Context()); err != nil || record.HolderIdentity != want {
					t.Errorf("the lease of %q is held by %q (%v), want %q", holder, record.HolderIdentity, err, want)
				}
			}
			if err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder}); err != nil {
				t.Fatal(err)
			}
			expect(holder)
			time.Sleep(takeoverDelay - time.Millisecond)
			expect(holder)
			time.Sleep(time.Millisecond)
			expect(want)
		})
	}
}

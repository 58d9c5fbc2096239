package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A lease is free when its holder is a pod that is not there any more, and not otherwise.
func TestLeaseOfAPodThatIsGoneIsFree(t *testing.T) {
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name}, Status: corev1.PodStatus{Phase: phase}}
	}
	client := fake.NewClientset(pod("running", corev1.PodRunning), pod("evicted", corev1.PodFailed))
	for holder, want := range map[string]string{
		"running": "running", "evicted": "", "gone": "", "me": "me", "host_0b5c": "host_0b5c", "": "",
	} {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "home", "lease-of-"+holder, client.CoreV1(), client.CoordinationV1(),
			resourcelock.ResourceLockConfig{Identity: "me"})
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder}); err != nil {
			t.Fatal(err)
		}
		record, _, err := (&podLock{Interface: lock, pods: client.CoreV1().Pods("home")}).Get(t.Context())
		if err != nil || record.HolderIdentity != want {
			t.Errorf("the lease of %q is held by %q (%v), want %q", holder, record.HolderIdentity, err, want)
		}
	}
}

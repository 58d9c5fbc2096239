package integration

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
)

func (w *randomWorld) podsReady(ctx context.Context) error {
	var pods corev1.PodList
	if err := w.client.List(ctx, &pods, client.InNamespace(w.namespace), client.MatchingLabels{named.LabelName: named.AppName}); err != nil {
		return err
	}
	ready := 0
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil && status.PodReady(p) {
			ready++
		}
	}
	if ready != 4 {
		return fmt.Errorf("%d pods are ready, want 4", ready)
	}
	return nil
}

func (w *randomWorld) pod() string {
	return pick(w, "dns-primary-0-0", "dns-primary-1-0", "dns-secondary-0-0", "dns-secondary-1-0")
}

// stepKillPod deletes a pod, which comes back with nothing. The others have to remember.
func (w *randomWorld) stepKillPod() bool {
	if w.anyPaused() {
		return false
	}
	w.foreignEverywhere()
	pod, grace := w.pod(), pick[int64](w, 0, 30)
	if err := w.client.Delete(w.Context(), &corev1.Pod{ObjectMeta: w.meta(pod, nil)}, client.GracePeriodSeconds(grace)); err != nil {
		w.Fatal(err)
	}
	w.logStep("delete pod %s, grace period %d", pod, grace)
	return true
}

// stepKillNamed stops named inside a pod, with or without a chance to write its files.
func (w *randomWorld) stepKillNamed() bool {
	if w.anyPaused() {
		return false
	}
	w.foreignEverywhere()
	pod, how := w.pod(), pick(w, "stop", "halt")
	out, err := kube.TryKubectl(w, "", "-n", w.namespace, "exec", pod, "-c", "bindcar", "--", "/lockstep", "rndc", how)
	w.logStep("rndc %s on %s: %v %s", how, pod, err, out)
	return true
}

func (w *randomWorld) stepKillController() bool {
	grace := pick[int64](w, 0, 30)
	if err := kube.KillControllers(w.Context(), w.client, grace); err != nil {
		w.Fatal(err)
	}
	w.logStep("delete the pods of the controller and the fleet manager, grace period %d", grace)
	return true
}

package integration

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

const budgets = "manifests/components/high-availability/disruption-budgets.yaml"

// Replicas come and go, by upgrades and by evictions, while clients ask and watch: no request fails, and a watch goes on
// where it was. A single replica that is replaced is no exception.
func TestServeRestart(t *testing.T) {
	var f *fixture
	kube.Disruptive(t, func() { f = newServedRecord(t, "restart.example") })
	record := f.aRecord("www", "www", "192.0.2.1")
	defer f.oneReplica()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l, w, seen := f.startClients(ctx)
	defer func() {
		stop()
		l.requireNoFailure()
	}()
	for _, step := range []func(){f.restartComponents, f.twoReplicas, f.restartComponents, f.evictComponents} {
		step()
		change(f, record, func(r *v1beta1.ARecord) { r.Spec.TTL = new(int64(300 + record.Generation)) })
		kube.Eventually(t, kube.Settle, func(context.Context) error {
			if got := seen.Load(); got < record.Generation {
				return fmt.Errorf("the watch has shown generation %d, not yet of %d", got, record.Generation)
			}
			return nil
		})
	}
	if n := w.started.Load(); n < 2 {
		t.Errorf("the watch was begun %d times: the replica that it was on cannot have gone", n)
	}
}

// startClients starts clients of every kind. seen is the latest generation of the record www that the watch has reported in sync.
func (f *fixture) startClients(ctx context.Context) (l *requestClients, w *resumingWatcher, seen *atomic.Int64) {
	f.Helper()
	l, seen = newClients(f.T), &atomic.Int64{}
	group := "/apis/" + syncv1.SchemeGroupVersion.String()
	objects := group + "/namespaces/" + f.namespace + "/syncstatuses"
	l.repeat(ctx, "get", 20*time.Millisecond, l.get(objects+"/arecord.www"))
	l.repeat(ctx, "list", 20*time.Millisecond, l.get(objects))
	l.repeat(ctx, "discovery", 50*time.Millisecond, l.get(group))
	probe := f.aRecord("probe", "probe", "192.0.2.9")
	probe.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "ARecord"}
	l.repeat(ctx, "admission", 50*time.Millisecond,
		l.create("/apis/"+v1beta1.SchemeGroupVersion.String()+"/namespaces/"+f.namespace+"/arecords?dryRun=All", probe))

	var list syncv1.SyncStatusList
	if err := f.client.List(ctx, &list, client.InNamespace(f.namespace)); err != nil {
		f.Fatal(err)
	}
	w = &resumingWatcher{requestClients: l, path: objects, revision: list.ResourceVersion, seen: func(name string, generation int64) {
		if name == "arecord.www" {
			seen.Store(generation)
		}
	}}
	w.start(ctx)
	return l, w, seen
}

// servedComponents are those that kube-apiserver calls.
var servedComponents = []string{"apiserver", "webhook"}

// twoReplicas makes the two components highly available, as the component does.
func (f *fixture) twoReplicas() {
	f.Helper()
	kube.Kubectl(f, "", "apply", "-k", "manifests/overlays/ha", "--dry-run=server")
	kube.Kubectl(f, "", "apply", "-f", budgets)
	f.scale(2)
	f.waitRollout()
}

// oneReplica leaves the installation as the other tests expect it.
func (f *fixture) oneReplica() {
	f.Helper()
	kube.Kubectl(f, "", "delete", "-f", budgets)
	f.scale(1)
}

func (f *fixture) scale(replicas int) {
	f.Helper()
	for _, face := range servedComponents {
		kube.Kubectl(f, "", "-n", system, "scale", "deployment/lockstep-"+face, fmt.Sprint("--replicas=", replicas))
	}
}

func (f *fixture) restartComponents() {
	f.Helper()
	for _, face := range servedComponents {
		kube.Kubectl(f, "", "-n", system, "rollout", "restart", "deployment/lockstep-"+face)
	}
	f.waitRollout()
}

// evictComponents evicts a pod of each component, as a drain of its node does, and waits for its end: the budgets, of which each knows
// the pods of its component, allow one eviction.
func (f *fixture) evictComponents() {
	f.Helper()
	for _, face := range servedComponents {
		kube.Kubectl(f, "", "-n", system, "wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "poddisruptionbudget/lockstep-"+face, "--timeout=120s")
		pods := slices.DeleteFunc(f.componentPods(f.Context(), face), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		kube.Eventually(f, kube.Start, func(ctx context.Context) error { // refused while the budget is not known to be met
			return client.IgnoreNotFound(f.client.SubResource("eviction").Create(ctx, &pods[0], &policyv1.Eviction{}))
		})
	}
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
		for _, face := range servedComponents {
			if pods := f.componentPods(ctx, face); len(pods) != 2 {
				return fmt.Errorf("%d pods of %s, want 2", len(pods), face)
			}
		}
		return nil
	})
	f.waitRollout()
}

// waitRollout waits until all replicas are ready that there should be. Those that they replace may still be ending.
func (f *fixture) waitRollout() {
	f.Helper()
	for _, face := range servedComponents {
		kube.Kubectl(f, "", "-n", system, "rollout", "status", "deployment/lockstep-"+face, "--timeout=120s")
	}
}

// componentPods returns a component's pods, terminating ones included.
func (f *fixture) componentPods(ctx context.Context, face string) []corev1.Pod {
	f.Helper()
	var pods corev1.PodList
	if err := f.client.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": face}); err != nil {
		f.Fatal(err)
	}
	return pods.Items
}

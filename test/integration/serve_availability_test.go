package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// The overlay ha runs wherever the default one does, and with it every component may lose a replica, all of them at the same time, as
// when their node fails: admission and SyncStatus answer before it is replaced, and what users change reaches the servers.
// It is uninstalled like the default one, which takes its place.
func TestHighAvailability(t *testing.T) {
	kube.Disruptive(t, nil)
	f := newServedRecord(t, "available.example")
	f.requireAlone()
	defer reinstall(f)
	overlay := writeOverlay(t, map[string]string{"kustomization.yaml": "resources: [../ha]\ncomponents: [../../components/cluster-api]\n"})
	defer kube.Uninstall(t, overlay, system)
	kube.InstallOverlay(t, overlay, system)
	record := f.aRecord("www", "www", "192.0.2.1")
	for killed := range 2 {
		f.killReplicas("apiserver", "webhook", "controller", "fleet")
		change(f, record, func(r *v1beta1.ARecord) { r.Spec.IPv4Addresses = []string{fmt.Sprintf("192.0.2.%d", killed+2)} })
		f.waitServed("www.available.example.", "A", record.Spec.IPv4Addresses...)
		f.waitInSync("arecord.www", 1)
		extra := f.instance(fmt.Sprint("after-", killed), v1beta1.RolePrimary, 1)
		f.create(extra)
		kube.WaitReady(f, f.client, f.namespace, kube.Settle, "bind9instance/"+extra.Name)
		f.deleteAnyway(extra) // It does not serve the zone, and all servers of the namespace are asked.
	}
	kube.Uninstall(t, overlay, system)
	f.waitNothingLeft()
}

// killReplicas kills one of two replicas of each component without a warning: of those with a leader the leader. The other one goes on:
// most requests are answered before the killed replica is replaced. Without another one, none would be.
func (f *fixture) killReplicas(components ...string) {
	f.Helper()
	var victims []corev1.Pod
	for _, component := range components {
		victims = append(victims, f.victim(component))
	}
	ctx, stop := context.WithCancel(f.Context())
	defer stop()
	l := newClients(f.T)
	l.repeat(ctx, "get", 20*time.Millisecond, l.get("/apis/"+syncv1.SchemeGroupVersion.String()+"/namespaces/"+f.namespace+"/syncstatuses/arecord.www"))
	probe := f.aRecord("probe", "probe", "192.0.2.9")
	probe.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("ARecord"))
	l.repeat(ctx, "admission", 50*time.Millisecond, l.create("/apis/"+v1beta1.SchemeGroupVersion.String()+"/namespaces/"+f.namespace+"/arecords?dryRun=All", probe))
	for _, victim := range victims {
		if err := f.client.Delete(ctx, &victim, client.GracePeriodSeconds(0)); err != nil {
			f.Fatal(err)
		}
	}
	for _, component := range components {
		f.waitTwoReplicas(component)
	}
	stop()
	l.running.Wait()
	f.Logf("of requests %v %d failed: %q", l.requests, len(l.failures), l.failures[:min(len(l.failures), 20)])
	if all := l.requests["get"] + l.requests["admission"]; 2*len(l.failures) > all {
		f.Errorf("%d of %d requests failed until the killed replicas were replaced: the others did not serve", len(l.failures), all)
	}
}

// victim returns a component's leader, or one of its replicas if none leads.
func (f *fixture) victim(component string) corev1.Pod {
	f.Helper()
	pods := f.waitTwoReplicas(component)
	leader := kube.Kubectl(f, "", "-n", system, "get", "leases", "-o=jsonpath={.items[?(@.metadata.name==\"lockstep-"+component+"\")].spec.holderIdentity}")
	if leader == pods[1].Name {
		return pods[1]
	}
	return pods[0]
}

// waitTwoReplicas waits until a component has two ready pods and returns them.
func (f *fixture) waitTwoReplicas(component string) (ready []corev1.Pod) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		ready = slices.DeleteFunc(f.componentPods(ctx, component), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || !status.PodReady(&p) })
		if len(ready) != 2 {
			return fmt.Errorf("%d pods of %s are ready, want 2", len(ready), component)
		}
		return nil
	})
	return ready
}

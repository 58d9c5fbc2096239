package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// waitEvidence waits until every row of a SyncStatus has what its pod and its server report.
func (f *fixture) waitEvidence(name string, servers int, zones int32) {
	f.Helper()
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
		s, err := f.status(ctx, name)
		if err != nil {
			return err
		}
		if !s.Status.InSync || len(s.Servers) != servers {
			return fmt.Errorf("%s is %s on %d servers: %+v", name, s.Status.Phase, len(s.Servers), s.Servers)
		}
		for _, r := range s.Servers {
			if r.PodPhase != "Running" || !strings.HasPrefix(r.Version, "9.") || r.Sidecar != "Ready" || r.ObservedAt == nil {
				return fmt.Errorf("%s: %+v", name, r)
			}
			if zones > 0 && (r.Zones == nil || r.Zones.InSync != zones || r.Zones.Worst[0].Serial == nil) {
				return fmt.Errorf("%s: pod %s has zones %+v", name, r.Pod, r.Zones)
			}
		}
		return nil
	})
}

// Instances and clusters of every kind report each pod, its zones and their serials, its version and its sidecar.
func TestFleetSyncStatus(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "fleet.example", 1, 1)
	f.waitEvidence("bind9cluster.dns", 2, 1)
	f.waitEvidence("bind9instance.dns-secondary-0", 1, 1)

	global := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	global.Spec.Namespace, global.Spec.Primary = f.namespace, &v1beta1.RoleConfig{Replicas: new(int32(1))}
	f.create(global)
	t.Cleanup(func() {
		kube.Kubectl(t, "", "delete", "bind9globalcluster", global.Name, "--ignore-not-found", "--wait=true", "--timeout=120s")
	})
	name := "bind9globalcluster." + global.Name
	f.waitEvidence(name, 1, 0)
	if out := f.kubectl("get", "syncstatus", name); !strings.Contains(out, "InSync") || !strings.Contains(out, "1/1") {
		t.Errorf("columns: %s", out)
	}
	out := f.kubectl("get", "bind9globalclusters.sync.bindy.firestoned.io", global.Name, "--subresource=syncstatus", "-o", "jsonpath={.objectRef.kind} {.status.phase}")
	if out != "Bind9GlobalCluster InSync" {
		t.Errorf("subresource: %s", out)
	}
	// It is in the namespace of its servers, and only there.
	elsewhere := kube.Namespace(t, "it")
	if out, err := kube.TryKubectl(t, "", "-n", elsewhere, "get", "syncstatus", name); err == nil {
		t.Errorf("namespace %s has it, too: %s", elsewhere, out)
	}
	if out := kube.Kubectl(t, "", "-n", elsewhere, "get", "syncstatus"); strings.Contains(out, "bind9") {
		t.Errorf("namespace %s: %s", elsewhere, out)
	}
}

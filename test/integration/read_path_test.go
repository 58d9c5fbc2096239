package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// TestLoadBalancerPath: the address of a load balancer has rows of its own, and what comes back there is shown, also by the plugin. One that cannot be reached
// from inside makes no record out of sync, and no promise.
func TestLoadBalancerPath(t *testing.T) {
	kube.Isolated(t)
	f := &pluginTest{&fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it"), zone: "path.example", object: "main", size: 2}, pluginFolder(t)}
	cluster := f.cluster("dns", 1, 1)
	cluster.Spec.Secondary.Service = &v1beta1.ServiceConfig{Spec: &corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	zone, www := f.dnsZone("main", f.zone), f.aRecord("www", "www", "192.0.2.10")
	zone.Spec.NameServers = []v1beta1.NameServer{{Hostname: "ns1." + f.zone + ".", IPv4Address: "198.51.100.7"}}
	f.create(cluster, zone, www)
	kube.WaitReady(f, f.client, f.namespace, kube.Start, "bind9cluster/dns", "dnszone/main")

	// kube-proxy brings what is sent to a load balancer of mode VIP to the pods itself.
	f.balanceBy("dns-secondary-0", corev1.LoadBalancerIngress{IP: "198.51.100.7", IPMode: new(corev1.LoadBalancerIPModeVIP)})
	f.waitPaths("198.51.100.7:53", syncv1.PathExternal, syncv1.StateInSync)
	stdout, stderr, code := f.runPlugin("path", "main")
	t.Logf("exit code %d\n%s%s", code, stdout, stderr)
	for _, want := range []string{"ns1." + f.zone + ".", "External dns-secondary-0", "NodePort dns-secondary-0", "Pod dns-primary-0", "Service dns-primary-0", "Answered: "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the plugin does not show %s", want)
		}
	}

	// One of mode Proxy is somewhere else, and nobody answers there.
	f.balanceBy("dns-secondary-0", corev1.LoadBalancerIngress{IP: "198.51.100.7", IPMode: new(corev1.LoadBalancerIPModeProxy)})
	f.waitPaths("198.51.100.7:53", syncv1.PathExternal, syncv1.StateUnreachable)
	s := &syncv1.SyncStatus{}
	if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: "dnszone.main"}, s); err != nil {
		t.Fatal(err)
	}
	if answered := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionAnswered); answered == nil || answered.Status != metav1.ConditionUnknown || !s.Status.InSync {
		t.Errorf("Answered is %+v, the zone %+v", answered, s.Status)
	}
	if _, _, code := f.runPlugin("path", "main"); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}

// balanceBy gives a Service a load balancer.
func (f *fixture) balanceBy(service string, ingress ...corev1.LoadBalancerIngress) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		s := &corev1.Service{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: service}, s); err != nil {
			return err
		}
		s.Status.LoadBalancer.Ingress = ingress
		return f.client.Status().Update(ctx, s)
	})
}

// waitPaths waits until the paths to an address have a type and a state, over UDP and TCP.
func (f *fixture) waitPaths(address string, of syncv1.PathType, state syncv1.ServerState) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		s := &syncv1.SyncStatus{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "dnszone." + f.object}, s); err != nil {
			return err
		}
		found := 0
		for _, p := range s.Paths {
			if p.Address == address && p.Type == of && p.State == state {
				found++
			}
		}
		if found != 2 {
			return fmt.Errorf("paths are %+v", s.Paths)
		}
		return nil
	})
}

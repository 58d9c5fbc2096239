package integration

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// TestFleetAllowQuery: servers that answer the network of somebody else alone are ready and in sync all the same, but what clients get
// is not known; and their Services
// lead to them.
func TestFleetAllowQuery(t *testing.T) {
	kube.Isolated(t)
	f := &fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it"), zone: "office.example", object: "main", size: 2}
	cluster := f.cluster("dns", 1, 1)
	cluster.Spec.Global = &v1beta1.Bind9Config{AllowQuery: v1beta1.AddressMatchList{"192.0.2.0/24"}}
	f.create(cluster, f.dnsZone("main", f.zone), f.aRecord("www", "www", "192.0.2.10"))
	kube.WaitReady(f, f.client, f.namespace, kube.Start, "bind9cluster/dns", "dnszone/main")
	kube.Kubectl(f, "", "-n", f.namespace, "wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout="+kube.Settle.String())
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error { return f.haveEndpoints(ctx, 2) })
	f.waitAnswered(metav1.ConditionUnknown, "Refused", "allowQuery")
	servers, err := f.servers(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for pod, server := range servers {
		reply, err := kube.Query(server, "www."+f.zone, dns.TypeA, kube.QueryTimeout)
		if err != nil || reply.Rcode != dns.RcodeRefused {
			f.Errorf("%s answers %v, %v to a stranger, want REFUSED", pod, reply, err)
		}
	}
	change(f, cluster, func(c *v1beta1.Bind9Cluster) {
		c.Spec.Global.AllowQuery = append(c.Spec.Global.AllowQuery, "any")
	})
	f.waitServed("www."+f.zone, "A", "192.0.2.10")
	f.waitAnswered(metav1.ConditionTrue, "Answered", "4 of 4 paths answer")
}

// TestFleetWithoutEndpoints: a pod that serves the zone and is not ready gets no client's query. Nothing is propagated meanwhile, for
// readers and for watchers, and the zone says which Service does not answer.
func TestFleetWithoutEndpoints(t *testing.T) {
	kube.Isolated(t)
	f := &fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it"), zone: "endpoints.example", object: "main", size: 2}
	f.create(f.cluster("dns", 1, 1), f.dnsZone("main", f.zone), f.aRecord("www", "www", "192.0.2.10"))
	kube.WaitReady(f, f.client, f.namespace, kube.Start, "bind9cluster/dns", "dnszone/main")
	f.waitAnswered(metav1.ConditionTrue, "Answered", "4 of 4 paths answer")
	kube.Kubectl(f, "", "-n", f.namespace, "wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout="+kube.Settle.String())

	var pod corev1.Pod
	if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: "dns-secondary-0-0"}, &pod); err != nil {
		f.Fatal(err)
	}
	id, err := kube.ContainerID(&pod, "bindcar")
	if err != nil {
		f.Fatal(err)
	}
	sidecar, err := kube.ProcessesOf(id)
	if err != nil {
		f.Fatal(err)
	}
	resume := func() { _ = kube.Signal(sidecar, syscall.SIGCONT) }
	defer resume()
	if err := kube.Signal(sidecar, syscall.SIGSTOP); err != nil {
		f.Fatal(err)
	}
	kube.Kubectl(f, "", "-n", f.namespace, "wait", "--for=condition=Propagated=False", "syncstatus/arecord.www", "--timeout="+kube.Start.String())
	f.waitAnswered(metav1.ConditionFalse, "NotAnswered", "instance dns-secondary-0 at")
	s := &syncv1.SyncStatus{}
	if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: "arecord.www"}, s); err != nil {
		f.Fatal(err)
	}
	if s.Status.InSync || s.Summary.InSync != 2 {
		f.Errorf("the record is in sync: %v, on %d servers; want 2, and no client of one of them gets it", s.Status.InSync, s.Summary.InSync)
	}
	resume()
	kube.Kubectl(f, "", "-n", f.namespace, "wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout="+kube.Start.String())
	f.waitAnswered(metav1.ConditionTrue, "Answered", "4 of 4 paths answer")
}

// waitAnswered waits until the SyncStatus of the zone says what clients get.
func (f *fixture) waitAnswered(want metav1.ConditionStatus, reason, says string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		s := &syncv1.SyncStatus{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "dnszone." + f.object}, s); err != nil {
			return err
		}
		c := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionAnswered)
		if c == nil || c.Status != want || c.Reason != reason || !strings.Contains(c.Message, says) {
			return fmt.Errorf("Answered is %+v, paths are %+v", c, s.Paths)
		}
		return nil
	})
}

// haveEndpoints returns an error unless Services of the namespace's servers lead to so many addresses that are ready.
func (f *fixture) haveEndpoints(ctx context.Context, want int) error {
	var slices discoveryv1.EndpointSliceList
	if err := f.client.List(ctx, &slices, client.InNamespace(f.namespace)); err != nil {
		return err
	}
	ready := map[string]bool{}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				ready[endpoint.Addresses[0]] = true
			}
		}
	}
	if len(ready) != want {
		return fmt.Errorf("Services lead to %v, want %d addresses", ready, want)
	}
	return nil
}

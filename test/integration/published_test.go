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
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Names of servers behind load balancers get the addresses of these, each server its own, and none of the cluster. The test does what a cloud's
// controller does to Services.
func TestPublishedAddresses(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	f.zone, f.object, f.size = "published.example", "main", 2
	cluster := f.cluster("dns", 1, 1)
	for _, role := range []*v1beta1.RoleConfig{cluster.Spec.Primary, cluster.Spec.Secondary} {
		role.Service = &v1beta1.ServiceConfig{Spec: &corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(false)}}
	}
	zone := f.dnsZone("main", f.zone)
	zone.Spec.NameServers = []v1beta1.NameServer{{Hostname: "ns2.published.example."}}
	f.create(cluster, zone, f.aRecord("www", "www", "192.0.2.1"))
	kube.WaitReady(f, f.client, f.namespace, kube.Start, "bind9cluster/dns")
	waitCondition(f, zone, zoneConditions, "Ready", metav1.ConditionFalse, "AddressPending", f.namespace+"/dns-primary-0", "kubectl get service")

	f.balance("dns-primary-0", "203.0.113.10")
	f.balance("dns-secondary-0", "203.0.113.11")
	f.waitSameContent(kube.Settle, contains("published.example. 3600 NS ns1.published.example. | ns2.published.example.",
		"ns1.published.example. 3600 A 203.0.113.10", "ns2.published.example. 3600 A 203.0.113.11", "www.published.example. 3600 A 192.0.2.1"))
	// Kubernetes counts an Event about the same version of an object in the one before, without its text.
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(zone), zone); err != nil {
			return err
		}
		c := meta.FindStatusCondition(zone.Status.Conditions, "Ready")
		if c == nil || !strings.HasPrefix(c.Message, "2 of 2 servers") || strings.Contains(c.Message, "is not published") {
			return fmt.Errorf("Ready is %+v", c)
		}
		return nil
	})

	f.balance("dns-secondary-0", "203.0.113.21", "2001:db8::21")
	f.waitSameContent(kube.Settle, passesBoth(containsNo("ns2.published.example. 3600 A 203.0.113.11"), contains("ns1.published.example. 3600 A 203.0.113.10",
		"ns2.published.example. 3600 A 203.0.113.21", "ns2.published.example. 3600 AAAA 2001:db8::21")))
	f.waitEvent(zone, "Normal NameServersChanged", "ns2.published.example. A 203.0.113.21 instead of 203.0.113.11")
}

// balance writes into the status of an instance's Service what a load balancer has.
func (f *fixture) balance(service string, addresses ...string) {
	f.Helper()
	var ingress []corev1.LoadBalancerIngress
	for _, a := range addresses {
		ingress = append(ingress, corev1.LoadBalancerIngress{IP: a})
	}
	f.balanceBy(service, ingress...)
}

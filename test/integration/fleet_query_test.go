package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// TestFleetAllowQuery: servers that answer the network of somebody else alone are ready and in sync all the same, and their Services
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

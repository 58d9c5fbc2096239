package integration

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// A global cluster has its servers in one namespace and serves the zones of all.
func TestFleetGlobalCluster(t *testing.T) {
	f := newFleet(t)
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	cluster.Spec.Namespace = f.namespace
	cluster.Spec.Primary = &v1beta1.RoleConfig{Replicas: ptr.To[int32](1)}
	cluster.Spec.Secondary = &v1beta1.RoleConfig{Replicas: ptr.To[int32](1)}
	cluster.Spec.Secondary.AllowTransfer = v1beta1.AddressMatchList{"none"}
	f.create(cluster)
	t.Cleanup(func() { kube.Kubectl(t, "", "delete", "bind9globalcluster", cluster.Name, "--timeout=120s") })
	for i, zone := range []string{"one.global.example", "two.global.example"} {
		user := &fixture{T: t, client: f.client, namespace: kube.Namespace(t, "it")}
		z := user.dnsZone("main", zone)
		z.Spec.ClusterRef = cluster.Name
		address := fmt.Sprintf("192.0.2.%d", i+1)
		user.create(z, user.a("www", "www", address))
		kube.Kubectl(t, "", "-n", user.namespace, "wait", "--for=condition=Ready", "dnszone/main", "arecord/www", "--timeout=120s")
		f.served("www."+zone+".", "A", address)
	}
	told(f, bringUp, cluster, func(c *v1beta1.Bind9GlobalCluster) []metav1.Condition { return c.Status.Conditions },
		"Ready True ClustersReady: All 2 instances are ready")
	if s := cluster.Status; s.InstanceCount != 2 || s.ReadyInstances != 2 {
		t.Errorf("status %+v", s)
	}
}

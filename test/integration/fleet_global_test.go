package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// A global cluster has its servers in one namespace and serves the zones of all.
func TestFleetGlobalCluster(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	cluster.Spec.Namespace = f.namespace
	cluster.Spec.Primary = &v1beta1.RoleConfig{Replicas: new(int32(1))}
	cluster.Spec.Secondary = &v1beta1.RoleConfig{Replicas: new(int32(1))}
	cluster.Spec.Secondary.AllowTransfer = v1beta1.AddressMatchList{"none"}
	f.create(cluster)
	t.Cleanup(func() { kube.Kubectl(t, "", "delete", "bind9globalcluster", cluster.Name, "--timeout=120s") })
	var users []*fixture
	for i, zone := range []string{"one.global.example", "two.global.example"} {
		user := &fixture{T: t, client: f.client, namespace: kube.Namespace(t, "it")}
		z := user.dnsZone("main", zone)
		z.Spec.ClusterRef = cluster.Name
		address := fmt.Sprintf("192.0.2.%d", i+1)
		user.create(z, user.aRecord("www", "www", address))
		kube.Kubectl(t, "", "-n", user.namespace, "wait", "--for=condition=Ready", "dnszone/main", "arecord/www", "--timeout=120s")
		f.waitServed("www."+zone+".", "A", address)
		users = append(users, user)
	}
	waitConditions(f, kube.Start, cluster, func(c *v1beta1.Bind9GlobalCluster) []metav1.Condition { return c.Status.Conditions },
		"Ready True ClustersReady: All 2 instances are ready")
	if s := cluster.Status; s.InstanceCount != 2 || s.ReadyInstances != 2 {
		t.Errorf("status %+v", s)
	}
	f.checkColumns("bind9globalcluster/"+cluster.Name, "NAME VERSION PRIMARY SECONDARY READY AGE", cluster.Name+" 9.20 1 1 True")
	t.Run("each user sees only its own", func(t *testing.T) { testSeesOnlyItsOwn(t, f, users[0], cluster.Name) })
}

// testSeesOnlyItsOwn checks that who may view a namespace with a zone on a global cluster learns nothing of the cluster's other
// zones, and who may view that of the cluster sees all.
func testSeesOnlyItsOwn(t *testing.T, f, user *fixture, cluster string) {
	for space, name := range map[string]string{user.namespace: "user", f.namespace: "operator"} {
		f.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "viewer"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name + "-of-" + f.namespace}},
		})
	}
	as := func(name, space string, args ...string) (string, error) {
		return kube.TryKubectl(t, "", append([]string{"--as", name + "-of-" + f.namespace, "-n", space}, args...)...)
	}
	kube.Eventually(t, kube.Settle, func(context.Context) error { // The bindings take effect a moment after they were written.
		_, user := as("user", user.namespace, "get", "syncstatus")
		_, operator := as("operator", f.namespace, "get", "syncstatus")
		return errors.Join(user, operator)
	})
	for _, args := range [][]string{
		{"get", "syncstatus", "-o", "yaml"},
		{"get", "syncstatus", "-o", "wide"},
		{"get", "syncstatus", "--watch", "--request-timeout=10s"},
		{"get", "syncstatus", "bind9globalcluster." + cluster},
		{"get", "syncstatus", "--field-selector", "kind=Bind9GlobalCluster", "-o", "yaml"},
		{"get", "syncstatus", "--field-selector", "zone=two.global.example", "-o", "yaml"},
		{"get", "syncstatus", "--field-selector", "metadata.namespace=" + f.namespace, "-o", "yaml"},
		{"get", "bind9globalclusters.sync.bindy.firestoned.io", cluster, "--subresource=syncstatus", "-o", "yaml"},
	} {
		out, _ := as("user", user.namespace, args...) // some end with an error, and its text counts
		if strings.Contains(out, "two.global") || strings.Contains(out, "kind: Bind9GlobalCluster") {
			t.Errorf("who views one namespace sees by %v:\n%s", args, out)
		}
		for _, space := range []string{user.namespace, f.namespace} {
			if out, err := as("nobody", space, args...); err == nil || !strings.Contains(out, "orbidden") {
				t.Errorf("nobody sees by %v: %v %s", args, err, out)
			}
		}
		if out, err := as("user", f.namespace, args...); err == nil || !strings.Contains(out, "orbidden") {
			t.Errorf("who views one namespace asks in another by %v: %v %s", args, err, out)
		}
	}
	if out, err := as("operator", f.namespace, "get", "syncstatus", "bind9globalcluster."+cluster, "-o", "yaml"); err != nil ||
		!strings.Contains(out, "one.global.example") || !strings.Contains(out, "two.global.example") || strings.Contains(out, user.namespace) {
		t.Errorf("who runs the servers sees (%v):\n%s", err, out)
	}
}

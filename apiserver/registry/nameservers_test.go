package registry

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// Where the zone's name servers lead follows from what the servers hold and from the addresses of Services.
func TestNameServersFollowServices(t *testing.T) {
	w := newWorld(t)
	w.Lagging(bind.Zone{Name: "example.test."})
	w.Apply(fakekube.Zone("example.test", "primary", "secondary"))
	w.Eventually("it is in sync", func() bool { return w.get("dnszone.example.test").Status.InSync })
	if got := w.get("dnszone.example.test").NameServers; len(got) != 1 || got[0].Name != "ns1.example.test." ||
		got[0].LeadsTo != syncv1.TargetUnknown || len(got[0].Addresses) != 1 || got[0].Message == "" {
		t.Errorf("an address that nobody is known to have: %+v", got)
	}
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	events.until("dnszone.example.test", allInStep)
	w.Apply(&v1beta1.Bind9Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "secondary"},
		Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: "c", Role: v1beta1.RoleSecondary, Replicas: new(int32(1))},
		Status:     v1beta1.Bind9InstanceStatus{ServiceAddress: "192.0.2.1"},
	})
	for {
		_, s := events.next()
		if n := s.NameServers; len(n) == 1 && n[0].LeadsTo == syncv1.TargetServer && n[0].Instances[0] == "secondary" && n[0].Message == "" {
			break
		}
	}
}

package status

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Who has no instance learns which side has not consented, as far as that is his to know.
func TestNoHosts(t *testing.T) {
	selects := []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
	for name, c := range map[string]struct {
		spec   v1beta1.DNSZoneSpec
		listed string
		says   string
	}{
		"nothing":       {v1beta1.DNSZoneSpec{}, "", "neither clusterRef"},
		"a cluster":     {v1beta1.DNSZoneSpec{ClusterRef: "dns"}, "", `cluster "dns" has no instances`},
		"both clusters": {v1beta1.DNSZoneSpec{ClusterRef: "dns", ClusterProviderRef: "all"}, "", `cluster "dns" has no instances; cluster "all" has no instances`},
		"no consent":    {v1beta1.DNSZoneSpec{Bind9InstancesFrom: selects}, "", "needs the annotation bindy.firestoned.io/allow-instance-namespaces here, with its namespace, and bindy.firestoned.io/allow-zone-namespaces itself, with team"},
		"one side":      {v1beta1.DNSZoneSpec{Bind9InstancesFrom: selects}, "dns-system", "lists (dns-system) matches and lists this namespace in its annotation bindy.firestoned.io/allow-zone-namespaces"},
	} {
		zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: c.spec}
		if c.listed != "" {
			zone.Annotations = map[string]string{v1beta1.AllowInstanceNamespacesAnnotation: c.listed}
		}
		if got := NoHosts(zone).Message; !strings.Contains(got, c.says) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

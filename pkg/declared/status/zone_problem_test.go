package status

import (
	"slices"
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

// Of many values, the message about a contested RRset names first what nobody declares, and says how many it does not name.
func TestContestNamesUndeclaredValues(t *testing.T) {
	declared := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}
	for name, c := range map[string]struct {
		seen []string
		says string
	}{
		"one more":      {append(slices.Clone(declared), "203.0.113.66"), "with 203.0.113.66, 192.0.2.1, 192.0.2.2 and 2 more ("},
		"three others":  {[]string{"192.0.2.1", "203.0.113.1", "203.0.113.2", "203.0.113.3"}, "with 203.0.113.1, 203.0.113.2, 203.0.113.3 and 1 more ("},
		"few":           {[]string{"192.0.2.1", "203.0.113.1"}, "with 203.0.113.1, 192.0.2.1 ("},
		"values gone":   {declared[1:], "with 192.0.2.2, 192.0.2.3, 192.0.2.4 ("},
		"no data there": {nil, "with no data ("},
	} {
		if got := (Contest{Server: "dns-primary-0-0", Seen: c.seen, Declared: declared}).Message(); !strings.Contains(got, c.says) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

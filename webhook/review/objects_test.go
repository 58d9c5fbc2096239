package review

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/webhook/internal/requests"
)

// example is a namespace with one zone, its server, two records, more objects, and endpoints of another namespace.
func example(t testing.TB, more ...client.Object) *staticObjects {
	t.Helper()
	all := []client.Object{
		zoneOf(t, `
metadata:
  name: example-com
  namespace: dns
  uid: z1
  creationTimestamp: "2026-01-01T00:00:00Z"
  annotations: {bindy.firestoned.io/allow-endpoint-namespaces: "guests, friends"}
spec:
  zoneName: example.com
  clusterRef: c
  soaRecord: {primaryNs: ns1.example.com., adminEmail: a@example.com}
  recordsFrom: [{selector: {matchLabels: {zone: example}}}]
`),
		&v1beta1.Bind9Instance{
			ObjectMeta: metav1.ObjectMeta{Name: "c-primary-0", Namespace: "dns", UID: "i1"},
			Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: "c", Role: "primary"},
		},
	}
	for _, text := range []string{`
kind: ARecord
metadata: {name: www, namespace: dns, uid: r1, labels: {zone: example}, creationTimestamp: "2026-01-02T00:00:00Z"}
spec: {name: www, ipv4Addresses: [192.0.2.1]}
`, `
kind: CNAMERecord
metadata: {name: blog, namespace: dns, uid: r2, labels: {zone: example}, creationTimestamp: "2026-01-02T00:00:00Z"}
spec: {name: blog, target: www}
`, `
kind: NSRecord
metadata: {name: sub, namespace: dns, uid: r3, labels: {zone: example}, creationTimestamp: "2026-01-02T00:00:00Z"}
spec: {name: sub, nameserver: ns1.sub}
`, `
kind: NSRecord
metadata: {name: sub-too, namespace: dns, uid: r4, labels: {zone: example}, creationTimestamp: "2026-01-02T00:00:00Z"}
spec: {name: sub, nameserver: ns1.else}
`, `
kind: ARecord
metadata: {name: deep, namespace: dns, uid: r5, labels: {zone: example}, creationTimestamp: "2026-01-02T00:00:00Z"}
spec: {name: deep.down, ipv4Addresses: [192.0.2.5]}
`, `
kind: ARecord
metadata: {name: ns1-else, namespace: dns, uid: r6, labels: {zone: example}, creationTimestamp: "2026-01-02T00:00:00Z"}
spec: {name: ns1.else, ipv4Addresses: [192.0.2.6]}
`} {
		all = append(all, recordOf(t, text))
	}
	all = append(all, more...)
	return newStaticObjects(append(all, &v1alpha1.DNSEndpoint{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "guests", UID: "e1", Annotations: map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "dns"}, CreationTimestamp: metav1.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)},
		Spec: v1alpha1.DNSEndpointSpec{Endpoints: []*v1alpha1.Endpoint{
			nil,
			{DNSName: "other.example.com", RecordType: "A", Targets: []string{"192.0.2.80"}},
			{DNSName: "Shop.example.com", RecordType: "A", Targets: []string{"192.0.2.80"}},
			{DNSName: "shop.example.com", RecordType: "TXT", Targets: []string{"open"}},
			{DNSName: "leased.example.com", RecordType: "NS", Targets: []string{"ns1.leased.example.com"}},
			{DNSName: "stand.market.example.com", RecordType: "A", Targets: []string{"192.0.2.81"}},
		}},
	})...)
}

func zoneOf(t testing.TB, text string) *v1beta1.DNSZone {
	t.Helper()
	zone := &v1beta1.DNSZone{}
	if err := yaml.Unmarshal([]byte(text), zone); err != nil {
		t.Fatal(err)
	}
	return zone
}

func recordOf(t testing.TB, text string) v1beta1.Record {
	t.Helper()
	var head metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		t.Fatal(err)
	}
	kind, ok := v1beta1.RecordKindOf(head.Kind)
	if !ok {
		t.Fatalf("%s is no record kind", head.Kind)
	}
	record := kind.New()
	if err := yaml.Unmarshal([]byte(text), record); err != nil {
		t.Fatal(err)
	}
	return record
}

func request(t testing.TB, object, old string) admission.Request {
	t.Helper()
	return requests.FromYAML(t, object, old)
}

// quick is a context for a call that has no business taking long.
func quick(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func exampleEndpoint(name string) *v1alpha1.DNSEndpoint {
	return &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "e"},
		Spec: v1alpha1.DNSEndpointSpec{Endpoints: []*v1alpha1.Endpoint{{DNSName: name, RecordType: "A", Targets: []string{"192.0.2.1"}}}}}
}

package review

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// What CoreDNS cannot hold is stored with a warning that says which provider, and what to do: it may be alone, or beside others.
func TestUnsupportedRecord(t *testing.T) {
	zone := zoneOf(t, `
metadata: {name: example-com, namespace: dns, uid: z1, creationTimestamp: "2026-01-01T00:00:00Z",
  annotations: {bindy.firestoned.io/allow-endpoint-namespaces: guests}}
spec:
  zoneName: example.com
  soaRecord: {primaryNs: ns1.example.com., adminEmail: a@example.com}
  providerRefs: [{name: etcd}]
  recordsFrom: [{selector: {matchLabels: {zone: example}}}]
`)
	provider := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "etcd", UID: "p1"}}
	provider.Spec.CoreDNS = &v1beta1.CoreDNSProvider{}
	present := recordOf(t, `
kind: ARecord
metadata: {name: www, namespace: dns, uid: r1, labels: {zone: example}, creationTimestamp: "2026-01-02T00:00:00Z"}
spec: {name: www, ipv4Addresses: [192.0.2.1]}
`)
	objects := newStaticObjects(zone, provider, present)
	for name, c := range map[string]struct{ record, warning string }{
		"can be held": {`
kind: ARecord
metadata: {name: a, namespace: dns, uid: r2, labels: {zone: example}}
spec: {name: a, ipv4Addresses: [192.0.2.2]}
`, ""},
		"type": {`
kind: CAARecord
metadata: {name: a, namespace: dns, uid: r2, labels: {zone: example}}
spec: {name: a, flags: 0, tag: issue, value: ca.example}
`, "DNSProvider etcd cannot hold this: CoreDNS with etcd cannot hold CAA records"},
		"neighbor": {`
kind: MXRecord
metadata: {name: a, namespace: dns, uid: r2, labels: {zone: example}}
spec: {name: www, priority: 10, mailServer: mail.example.net.}
`, "beside A records of the same name"},
	} {
		result, err := recordReviewer{objects: objects}.review(t.Context(), recordOf(t, c.record), nil)
		got := strings.Join(result.Warnings, "\n")
		if err != nil || len(result.Problems) > 0 || !strings.Contains(got, c.warning) || c.warning == "" && got != "" {
			t.Errorf("%s: warnings %q, problems %v, %v", name, got, result.Problems, err)
		}
	}
	for namespace, warns := range map[string]bool{"dns": true, "guests": false} {
		endpoint := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "e", Annotations: map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "dns"}}}
		endpoint.Spec.Endpoints = []*v1alpha1.Endpoint{{DNSName: "*.example.com", RecordType: "A", Targets: []string{"192.0.2.3"}}}
		result, err := endpointReviewer{objects}.review(t.Context(), endpoint, nil)
		if got := strings.Join(result.Warnings, "\n"); err != nil || strings.Contains(got, "DNSProvider etcd") != warns {
			t.Errorf("an endpoint of namespace %s: warnings %q, %v", namespace, got, err)
		}
	}
}

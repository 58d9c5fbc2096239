package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// appliedTogether is what people apply at once. Whatever refers to something comes after it.
const appliedTogether = `
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Cluster
metadata: {name: NEW}
spec: {primary: {replicas: 0}, secondary: {replicas: 0}}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Instance
metadata: {name: NEW, labels: {server: NEW}}
spec: {clusterRef: NEW, role: primary, replicas: 0}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: TXTRecord
metadata: {name: NEW-early, labels: {zone: NEW}}
spec: {name: early, text: [x]}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSZone
metadata: {name: NEW}
spec:
  zoneName: NEW.example
  clusterRef: NEW
  bind9InstancesFrom: [{selector: {matchLabels: {server: NEW}}}]
  soaRecord: {primaryNs: ns1.NEW.example., adminEmail: a@example.com}
  recordsFrom: [{selector: {matchLabels: {zone: NEW}}}]
---
apiVersion: bindy.firestoned.io/v1beta1
kind: ARecord
metadata: {name: NEW, labels: {zone: NEW}}
spec: {name: www, ipv4Addresses: [192.0.2.1]}
---
apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: {name: NEW}
spec: {endpoints: [{dnsName: shop.NEW.example, recordType: A, targets: [192.0.2.1]}]}
`

// What one command applies is not said to be missing, however little the caches have seen of it. The webhook does not wait
// long for the API server's word, so on a busy machine a warning may come all the same, but not again and again.
func TestAdmissionSeesWhatIsAppliedTogether(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	round := 0
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		for range 5 {
			round++
			out := kube.Kubectl(t, strings.ReplaceAll(appliedTogether, "NEW", fmt.Sprint("n", round)), "-n", f.namespace, "apply", "-f", "-")
			// At its time no zone selected it: that is the one warning.
			if n := strings.Count(out, "Warning"); n > 1 || strings.Count(out, "selects this TXTRecord") != n {
				return fmt.Errorf("round %d:\n%s", round, out)
			}
		}
		return nil
	})
}

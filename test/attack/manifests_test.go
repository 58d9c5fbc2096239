package attack

import "fmt"

// bind9Cluster is the manifest of a cluster with one primary.
func bind9Cluster(name string) string {
	return fmt.Sprintf(`---
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Cluster
metadata: {name: %s}
spec: {primary: {replicas: 1}}
`, name)
}

// dnsZone is the manifest of a zone that selects records by the label zone=<name>. servers is the part of its specification
// that chooses servers, such as "clusterRef: dns".
func dnsZone(name, zone, servers string) string {
	return fmt.Sprintf(`---
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSZone
metadata: {name: %s}
spec:
  zoneName: %s
  %s
  soaRecord: {primaryNs: ns1.%[2]s., adminEmail: hostmaster.%[2]s., refresh: 3600, retry: 600, expire: 604800}
  recordsFrom: [{selector: {matchLabels: {zone: %[1]s}}}]
`, name, zone, servers)
}

// aRecord is the manifest of an A record of the zone that selects zone=<label>.
func aRecord(object, label, name, address string) string {
	return fmt.Sprintf(`---
apiVersion: bindy.firestoned.io/v1beta1
kind: ARecord
metadata: {name: %s, labels: {zone: %s}}
spec: {name: %s, ipv4Addresses: [%s]}
`, object, label, name, address)
}

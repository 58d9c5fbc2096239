package offline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
	"github.com/lockstep-dns/lockstep/test/named"
)

const ofBindy = `
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Cluster
metadata: {name: dns, namespace: team}
spec:
  version: "9.18"
  primary:
    replicas: 2
    placement:
      spread:
      - {topologyKey: topology.kubernetes.io/zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSZone
metadata: {name: reverse, namespace: team}
spec:
  zoneName: 2.0.192.in-addr.arpa
  clusterRef: dns
  soaRecord: {primaryNs: ns1.example.com., adminEmail: hostmaster.example.com.}
  recordsFrom: [{selector: {matchLabels: {zone: reverse}}}]
---
apiVersion: bindy.firestoned.io/v1beta1
kind: PTRRecord
metadata: {name: host-10, namespace: team, labels: {zone: reverse}}
spec: {name: "10", target: host10.example.com., ttl: 300}
`

// Manifests for Bindy 0.8, with a placement and a PTRRecord, are taken as they are: nothing is found, dropped or changed, and a real named
// serves the record.
func TestManifestsOfBindy(t *testing.T) {
	objects, faults := manifest.Parse("bindy.yaml", []byte(ofBindy))
	checker, err := NewChecker()
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	findings, checked, err := checker.Check(t.Context(), objects, nil, "default")
	if err != nil || checked != 3 || len(findings) > 0 {
		t.Fatalf("%d checked, %v, %v", checked, findings, err)
	}
	var cluster v1beta1.Bind9Cluster
	var zone v1beta1.DNSZone
	var ptr v1beta1.PTRRecord
	for i, into := range []any{&cluster, &zone, &ptr} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[i].Object, into, true); err != nil {
			t.Fatal(err)
		}
	}
	want := []v1beta1.SpreadRule{{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway}}
	if d := cmp.Diff(want, cluster.Spec.Primary.Placement.Spread); d != "" {
		t.Errorf("placement: want (-), got (+):\n%s", d)
	}
	built, err := source.Build(&zone, []source.Object{&ptr}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := &strings.Builder{}
	fmt.Fprintln(file, rrset.ToSOA(built.Name, built.SOA))
	for set := range built.All() {
		for _, rdata := range set.Rdata {
			fmt.Fprintf(file, "%s %d %s %s\n", set.Name, set.TTL, rrset.TypeName(set.Type), rdata)
		}
	}
	server := named.Start(t, named.Options{Zones: []named.Zone{{Name: built.Name, File: file.String()}}})
	reply, err := wire.Query(t.Context(), server.Addr, "10.2.0.192.in-addr.arpa.", dns.TypePTR)
	if err != nil || fmt.Sprint(reply.Msg.Answer) != "[10.2.0.192.in-addr.arpa.\t300\tIN\tPTR\thost10.example.com.]" {
		t.Errorf("%v, %v", reply.Msg, err)
	}
}

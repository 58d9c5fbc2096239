package guides

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/test/docs"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// quickZone is a signed zone whose keys need seconds for what otherwise takes days, on the servers that the page names.
const quickZone = `
apiVersion: v1
kind: ConfigMap
metadata: {name: policies}
data:
  named.conf.zones: |
    dnssec-policy quick {
      keys { ksk lifetime unlimited algorithm ecdsap256sha256; zsk lifetime unlimited algorithm ecdsap256sha256; };
      dnskey-ttl 5; max-zone-ttl 10; publish-safety 1; retire-safety 1; zone-propagation-delay 1; parent-ds-ttl 5; parent-propagation-delay 1;
    };
---
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Cluster
metadata: {name: dns}
spec:
  primary: {replicas: 1}
  configMapRefs: {namedConfZones: policies}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSZone
metadata: {name: example-com}
spec:
  zoneName: example.com
  clusterRef: dns
  dnssecPolicy: quick
  ttl: 10
  soaRecord: {primaryNs: ns1.example.com., adminEmail: hostmaster@example.com, negativeTtl: 5}
`

// TestKeyRollOver runs the commands of the section of docs/reference/dnssec.md as they are printed. Afterwards the zone has the new key
// alone.
func TestKeyRollOver(t *testing.T) {
	kube.Isolated(t)
	namespace := kube.Namespace(t, "guide")
	kube.Kubectl(t, quickZone, "apply", "-n", namespace, "-f", "-")
	kube.Kubectl(t, "", "wait", "-n", namespace, "--for=jsonpath={.status.dnssec.signed}=true", "dnszone/example-com", "--timeout=120s")
	former := dsRecords(t, namespace)

	s := newShell(t, kube.Root(t), "KUBECONFIG="+kubeconfigIn(t, namespace))
	runPage(t, append(section(t, "# Signed zones"), section(t, "## Rolling the key-signing key")...), s)

	kube.Kubectl(t, "", "wait", "-n", namespace, "--for=jsonpath={.status.dnssec.keyTag}="+variable(t, s, "NEW"), "dnszone/example-com", "--timeout=120s")
	kube.Kubectl(t, "", "wait", "-n", namespace, "--for=condition=Propagated", "syncstatus/dnszone.example-com", "--timeout=60s")
	if now := dsRecords(t, namespace); len(now) != 1 || slices.Equal(now, former) {
		t.Errorf("the DS records were %q and are %q", former, now)
	}
}

func dsRecords(t *testing.T, namespace string) []string {
	t.Helper()
	out := kube.Kubectl(t, "", "get", "dnszone", "example-com", "-n", namespace, "-o", `jsonpath={range .status.dnssec.dsRecords[*]}{@}{"\n"}{end}`)
	return strings.Split(strings.TrimSpace(out), "\n")
}

func variable(t *testing.T, s *shell, name string) string {
	t.Helper()
	out, _, err := s.run("echo $"+name, stepLimit)
	if err != nil || len(out) != 1 {
		t.Fatalf("%s is %q: %v", name, out, err)
	}
	return out[0]
}

// section returns the blocks of shell commands of docs/reference/dnssec.md between a heading and the next one.
func section(t *testing.T, heading string) []docs.Block {
	t.Helper()
	const path = "docs/reference/dnssec.md"
	text, err := os.ReadFile(filepath.Join(kube.Root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut("\n"+string(text), "\n"+heading+"\n")
	body, _, _ := strings.Cut(after, "\n## ")
	blocks := slices.DeleteFunc(docs.Parse(path, body).Blocks, func(b docs.Block) bool { return b.Language != "sh" })
	if !found || len(blocks) == 0 {
		t.Fatalf("%s has no section %q with commands", path, heading)
	}
	return blocks
}

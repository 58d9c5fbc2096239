// Package e2e runs what a user runs: the demo, the walk-through of a first zone, the removal.
package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// The demo is the main job. It fails by itself when a step fails; here its output is held against what it promises.
func TestMainJobDemo(t *testing.T) {
	kube.Isolated(t, "quickstart")
	kube.Config(t)
	t.Cleanup(func() {
		kube.Kubectl(t, "", "delete", "namespace", "quickstart", "--ignore-not-found", "--timeout=120s")
	})
	text := runDemo(t, "run", kube.Overlay)
	requireShown(t, text, map[string]string{
		"a row for each of the eight records, served by all three servers": `(?s)(arecord\.www|aaaarecord\.www|cnamerecord\.blog|mxrecord\.mail|txtrecord\.spf|nsrecord\.lab|srvrecord\.sip|caarecord\.issuer)\s.*InSync\s+3/3`,
		"the zone's row":      `dnszone\.example-com\s.*InSync`,
		"the answer of a pod": `(?s)dns-secondary-1-0 www\.example\.com A.*192\.0\.2\.10\n192\.0\.2\.11\n`,
		"the missing server":  `dns-secondary-1-0\s+Secondary\s+Unreachable`,
		"the row's return":    `(?s)regains InSync.*arecord\.www\s+\S+\s+InSync\s+3/3`,
	})
	for _, row := range []string{"arecord.www", "aaaarecord.www", "cnamerecord.blog", "mxrecord.mail", "txtrecord.spf", "nsrecord.lab", "srvrecord.sip", "caarecord.issuer"} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(row) + `\s+example\.com\s+InSync\s+3/3`).MatchString(text) {
			t.Errorf("the demo's table has no row of %s in sync on 3/3 servers", row)
		}
	}
	requireChangeWatched(t, text)
	if n := strings.Count(text, "condition met"); n < 4 {
		t.Errorf("only %d of the demo's waits succeeded", n)
	}
}

// requireChangeWatched checks what the demo's watch of one row has shown: in sync before a change and in sync after it, with serials that only
// grow. That the row leaves InSync in between may pass between two looks at the servers.
func requireChangeWatched(t *testing.T, text string) {
	t.Helper()
	_, shown, _ := strings.Cut(text, "arecord.www -w\n")
	shown, _, _ = strings.Cut(shown, "\n== ")
	var serials []int
	for _, m := range regexp.MustCompile(`(?m)^arecord\.www\s+example\.com\s+InSync\s+3/3\s+(\d+)`).FindAllStringSubmatch(shown, -1) {
		serial, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		serials = append(serials, serial)
	}
	if !slices.IsSorted(serials) || len(slices.Compact(slices.Clone(serials))) < 2 {
		t.Errorf("the watch shows the row in sync with the serials %v, not one after the other", serials)
	}
}

// The second demo: a zone on servers outside of the cluster.
func TestProvidersDemo(t *testing.T) {
	kube.Isolated(t, "existing-servers")
	kube.Config(t)
	t.Cleanup(func() {
		kube.Kubectl(t, "", "delete", "namespace", "existing-servers", "--ignore-not-found", "--timeout=120s")
	})
	requireShown(t, runDemo(t, "providers", kube.Overlay), map[string]string{
		"an import that compares equal":      `differences: 0`,
		"a zone that stays as it was":        `nothing has changed on BIND: .* 2026112201 `,
		"providers that are ready":           `(?s)dnsprovider\S*/bind condition met\n.*dnsprovider\S*/etcd condition met\n.*dnsprovider\S*/knot condition met`,
		"a change on all three":              `(?s)all servers get it.*(dig \+short @\S+ -p \d+ www\.corp\.example A\n192\.0\.2\.20\n.*){3}`,
		"who is missing, and that others go": `(?m)^bind\s+InSync.*\nknot\s+Unreachable`,
		"what was put right":                 `(?s)it is seen, and put right.*www\.corp\.example A\n192\.0\.2\.30\n`,
		"a zone that outlives its namespace": `(?s)the namespace ends here.*namespace "existing-servers" deleted.*www\.corp\.example A\n192\.0\.2\.30\n`,
	})
}

// The third demo: names of a Service, an Ingress and a Cluster. It installs another overlay, with external-dns.
func TestSourcesDemo(t *testing.T) {
	kube.Disruptive(t, nil)
	const overlay = "manifests/overlays/sources"
	t.Cleanup(func() {
		kube.Kubectl(t, "", "delete", "namespace", "sources", "--ignore-not-found", "--timeout=120s")
		kube.Uninstall(t, overlay, "lockstep-system")
		kube.Reinstall(t)
	})
	requireShown(t, runDemo(t, "sources", overlay), map[string]string{
		"the answers": `(?m)^192\.0\.2\.80
lb\.example\.net\.$`,
		"rows of both in sync":                `(?s)dnsendpoint\.external-dns\.ingress\.shop\s+sources\.example\s+InSync\s+3/3.*dnsendpoint\.external-dns\.service\.web\s+sources\.example\s+InSync\s+3/3`,
		"why a name is not served":            `(?m)^RecordNotServed\s.*www\.elsewhere\.example`,
		"a gate that waits":                   `(?m)^EndpointPropagated\s+(False|Unknown)\s+WaitingForEndpoint\s`,
		"a gate that opens":                   `(?m)^EndpointPropagated\s+True\s`,
		"the address of Cluster's API server": `(?m)^192\.0\.2\.10$`,
		"names that go with their objects":    `none of the three names is served any more`,
	})
}

// runDemo runs one of test/demo, which fails by itself when a step fails, and returns what it printed.
func runDemo(t *testing.T, name, overlay string) string {
	t.Helper()
	began := time.Now()
	cmd := exec.Command(filepath.Join(kube.Root(t), "test/demo", name))
	cmd.Env = append(os.Environ(), "OVERLAY="+overlay)
	out, err := cmd.CombinedOutput()
	t.Logf("the demo took %s and printed:\n%s", time.Since(began).Round(time.Second), out)
	if err != nil {
		t.Fatalf("the demo failed: %v", err)
	}
	return string(out)
}

// requireShown holds the output of a demo against what it promises.
func requireShown(t *testing.T, text string, promises map[string]string) {
	t.Helper()
	for what, pattern := range promises {
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("the demo did not show %s (%s)", what, pattern)
		}
	}
}

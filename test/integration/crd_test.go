package integration

import (
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// NSRecord has no short name: `kubectl get ns` means namespaces, and says so without a warning.
func TestAdmissionSchemaShortNames(t *testing.T) {
	kube.Isolated(t)
	tests := map[string]struct {
		args []string
		want string
	}{
		"ns is a namespace":          {[]string{"get", "ns", "kube-system", "-o", "name"}, "namespace/kube-system"},
		"NS records by their plural": {[]string{"get", "nsrecords", "-A", "-o", "name"}, ""},
		"zones":                      {[]string{"get", "zones", "-n", "default", "-o", "name"}, ""},
		"dz":                         {[]string{"get", "dz", "-n", "default", "-o", "name"}, ""},
		"a":                          {[]string{"get", "a", "-n", "default", "-o", "name"}, ""},
		"b9c":                        {[]string{"get", "b9c", "-n", "default", "-o", "name"}, ""},
		"b9gc":                       {[]string{"get", "b9gc", "-o", "name"}, ""},
		"cb9p":                       {[]string{"get", "cb9p", "-o", "name"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := kube.Kubectl(t, "", test.args...)
			if !strings.Contains(got, test.want) {
				t.Errorf("kubectl %s gives\n%s\nwant %q in it", strings.Join(test.args, " "), got, test.want)
			}
			if strings.Contains(got, "Warning") {
				t.Errorf("kubectl %s warns:\n%s", strings.Join(test.args, " "), got)
			}
		})
	}
}

// kubectl explain shows meaning and units of a field, also of those inside types that are shared.
func TestAdmissionSchemaExplain(t *testing.T) {
	kube.Isolated(t)
	tests := map[string]string{
		"dnszone.spec.soaRecord.negativeTtl":                          "in seconds",
		"dnszone.spec.recordsFrom.selector.matchExpressions.operator": "DoesNotExist",
		"arecord.spec.ttl":                                                   "the zone's ttl applies",
		"arecord.status.publishedName":                                       "owner name",
		"caarecord.spec.flags":                                               "critical",
		"bind9instance.spec.rndcKey.rotateAfter":                             "hours, days or weeks",
		"bind9globalcluster.spec.namespace":                                  "controller's own",
		"clusterbind9provider.spec.primary.replicas":                         "number of instances",
		"dnsendpoint.spec.endpoints.recordTTL":                               "in seconds",
		"bind9instance.spec.bindcarConfig.serviceSpec.externalTrafficPolicy": "externalTrafficPolicy",
	}
	for path, want := range tests {
		t.Run(path, func(t *testing.T) {
			got := strings.Join(strings.Fields(kube.Kubectl(t, "", "explain", path)), " ")
			if !strings.Contains(got, want) {
				t.Errorf("kubectl explain %s says\n%s\nwant %q in it", path, got, want)
			}
		})
	}
}

// A record with the older single address is patched and shown like one with a list.
func TestAdmissionSchemaOlderAddress(t *testing.T) {
	kube.Isolated(t)
	ns := kube.Namespace(t, "schema")
	kube.Kubectl(t, `
apiVersion: bindy.firestoned.io/v1beta1
kind: ARecord
metadata:
  name: www-test
spec:
  name: www
  ipv4Address: 192.0.2.1
  ttl: 300
`, "apply", "-n", ns, "-f", "-")
	kube.Kubectl(t, "", "patch", "arecord", "www-test", "-n", ns, "--type=merge", "-p", `{"spec":{"ipv4Address":"192.0.2.2"}}`)
	kube.Kubectl(t, "", "patch", "arecord", "www-test", "-n", ns, "--subresource=status", "--type=merge", "-p",
		`{"status":{"addresses":"192.0.2.2","zone":"test.example.com","conditions":[{"type":"Ready","status":"True","reason":"ReconcileSucceeded","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	if out, err := kube.TryKubectl(t, "", "patch", "arecord", "www-test", "-n", ns, "--type=merge", "-p", `{"spec":{"ipv4Address":"2001:db8::1"}}`); err == nil ||
		!strings.Contains(out, "use an AAAARecord") {
		t.Errorf("an IPv6 address is not refused as it should be: %v\n%s", err, out)
	}
	got := kube.Kubectl(t, "", "get", "a", "www-test", "-n", ns)
	lines := strings.Split(got, "\n")
	if heads := strings.Fields(lines[0]); strings.Join(heads, " ") != "NAME NAME ZONE ADDRESSES TTL READY AGE" {
		t.Errorf("columns %q", heads)
	}
	if cells := strings.Fields(lines[1]); len(cells) < 2 || cells[1] != "www" {
		t.Errorf("row %q", lines[1])
	}
}

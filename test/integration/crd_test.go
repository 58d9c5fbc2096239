package integration

import (
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/schematest"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Admission webhooks leave kube-system alone, so what a dry run answers there comes from the schemas and nothing else.
const schemaNamespace = "kube-system"

var schemas sync.Once

// applySchemas puts the definitions into the cluster, once for all tests.
func applySchemas(t *testing.T) {
	t.Helper()
	schemas.Do(func() {
		kube.Kubectl(t, "", "apply", "-k", "manifests/crds")
		kube.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=30s", "crd", "-l", "app.kubernetes.io/part-of=lockstep")
	})
}

// Every case that the schemas are tested with offline comes out the same on a real kube-apiserver.
func TestAdmissionSchemaCases(t *testing.T) {
	applySchemas(t)
	cases, err := schematest.Load(kube.Root(t) + "/pkg/apis/bindy/v1beta1/testdata/schema")
	if err != nil {
		t.Fatal(err)
	}
	c := kube.Client(t)
	for _, test := range cases {
		t.Run(test.Name, func(t *testing.T) { checkSchemaCase(t, c, test) })
	}
}

func checkSchemaCase(t *testing.T, c client.Client, test schematest.Case) {
	t.Helper()
	apiVersion := "bindy.firestoned.io/v1beta1"
	if test.Kind == "DNSEndpoint" {
		apiVersion = "externaldns.k8s.io/v1alpha1"
	}
	obj := test.Object(apiVersion, schemaNamespace, test.Spec)
	if mapping, err := c.RESTMapper().RESTMapping(obj.GroupVersionKind().GroupKind(), obj.GroupVersionKind().Version); err != nil {
		t.Fatal(err)
	} else if mapping.Scope.Name() == "root" {
		obj.SetNamespace("")
	}
	err := dryRun(t, c, obj, test)
	switch {
	case len(test.Refused) == 0 && err != nil:
		t.Fatalf("refused: %v", err)
	case len(test.Refused) > 0 && err == nil:
		t.Fatalf("accepted, want it refused with %q", test.Refused)
	case err != nil:
		if missing := schematest.Missing(err.Error(), test.Refused); len(missing) > 0 {
			t.Errorf("the refusal does not say %q:\n%v", missing, err)
		}
		return
	}
	if diffs := schematest.Differences("spec", test.Stored, obj.Object["spec"].(map[string]any)); len(diffs) > 0 {
		t.Errorf("stored: %s", strings.Join(diffs, "; "))
	}
}

// dryRun asks for the object to be created, or to be updated when the case has an older form of it.
func dryRun(t *testing.T, c client.Client, obj *unstructured.Unstructured, test schematest.Case) error {
	t.Helper()
	strict := client.WithFieldValidation(c, "Strict")
	if test.OldSpec == nil {
		return strict.Create(t.Context(), obj, client.DryRunAll)
	}
	// A name of its own for each case: a controller that runs in the cluster may hold a deleted object for a moment.
	old := test.Object(obj.GetAPIVersion(), schemaNamespace, runtime.DeepCopyJSON(test.OldSpec))
	old.SetName("")
	old.SetGenerateName("case-")
	if err := c.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Delete(t.Context(), old); err != nil {
			t.Error(err)
		}
	}()
	obj.SetName(old.GetName())
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
			return err
		}
		update := obj.DeepCopy()
		update.SetResourceVersion(old.GetResourceVersion())
		update.SetUID(old.GetUID())
		if err := strict.Update(t.Context(), update, client.DryRunAll); err != nil {
			return err
		}
		*obj = *update
		return nil
	})
}

// NSRecord has the short name ns, which goes on meaning namespaces.
func TestAdmissionSchemaShortNames(t *testing.T) {
	applySchemas(t)
	tests := map[string]struct {
		args []string
		want string
	}{
		"ns is a namespace":           {[]string{"get", "ns", "kube-system", "-o", "name"}, "namespace/kube-system"},
		"ns with a group is a record": {[]string{"get", "nsrecords.bindy.firestoned.io", "-A", "-o", "name"}, ""},
		"zones":                       {[]string{"get", "zones", "-n", "default", "-o", "name"}, ""},
		"dz":                          {[]string{"get", "dz", "-n", "default", "-o", "name"}, ""},
		"a":                           {[]string{"get", "a", "-n", "default", "-o", "name"}, ""},
		"b9c":                         {[]string{"get", "b9c", "-n", "default", "-o", "name"}, ""},
		"b9gc":                        {[]string{"get", "b9gc", "-o", "name"}, ""},
		"cb9p":                        {[]string{"get", "cb9p", "-o", "name"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := kube.Kubectl(t, "", test.args...); !strings.Contains(got, test.want) {
				t.Errorf("kubectl %s gives\n%s\nwant %q in it", strings.Join(test.args, " "), got, test.want)
			}
		})
	}
}

// kubectl explain tells meaning and units of a field, also of those inside types that are shared.
func TestAdmissionSchemaExplain(t *testing.T) {
	applySchemas(t)
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
	applySchemas(t)
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
		!strings.Contains(out, "belongs into an AAAARecord") {
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

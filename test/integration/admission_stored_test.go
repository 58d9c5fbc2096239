package integration

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Records are reviewed before kube-apiserver has completed and checked them. What is left out or made up changes nothing.
func TestAdmissionJudgesWhatIsStored(t *testing.T) {
	kube.Isolated(t)
	f := newAdmission(t)
	old := f.aRecord("old", "old", "192.0.2.1")
	f.create(old)
	alias := &v1beta1.CNAMERecord{ObjectMeta: f.meta("alias", map[string]string{"zone": "main"})}
	alias.Spec.Name, alias.Spec.Target = "alias", "www.example.net."
	f.waitYounger(alias, old)
	f.create(alias)
	f.waitWarned("ARecord", "{name: alias, ipv4Addresses: [192.0.2.1]}", "which is older")
	manifest := func(kind, metadata, spec string) string {
		return "{apiVersion: bindy.firestoned.io/v1beta1, kind: " + kind + ", metadata: {labels: {zone: main}, " + metadata + "}, spec: " + spec + "}"
	}
	const bad, deleted, age = "{name: bad, ipv4Addresses: [192.0.2.300]}", `deletionTimestamp: "2020-01-01T00:00:00Z"`, `creationTimestamp: "2020-01-01T00:00:00Z"`
	for name, c := range map[string]struct {
		manifest string
		args     []string
		want     string
	}{
		"creation with a time of deletion": {manifest("ARecord", "name: bad, "+deleted, bad), []string{"create"}, "192.0.2.300"},
		"apply with a time of deletion":    {manifest("ARecord", "name: bad, "+deleted, bad), []string{"apply", "--server-side"}, "192.0.2.300"},
		"update with a time of deletion":   {manifest("ARecord", "name: old, "+deleted, bad), []string{"apply", "--server-side", "--force-conflicts"}, "metadata.deletionTimestamp"},
		"creation that claims to be old":   {manifest("ARecord", "name: bad, "+age, "{name: alias, ipv4Addresses: [192.0.2.1]}"), []string{"apply", "--server-side"}, "which is older"},
		"replacement without its age":      {manifest("ARecord", "name: old", "{name: alias, ipv4Addresses: [192.0.2.1]}"), []string{"replace"}, "could not be published any more"},
		"replacement that claims to be old": {
			manifest("CNAMERecord", "name: alias, "+age, "{name: old, target: www.example.net.}"), []string{"replace"}, "which is older",
		},
		"a generated name":   {manifest("ARecord", "generateName: bad-", bad), []string{"create"}, "192.0.2.300"},
		"a bad type":         {manifest("MXRecord", "name: bad", "{name: mx, priority: high, mailServer: mail}"), []string{"create"}, "spec.priority"},
		"without a name":     {manifest("ARecord", "name: bad", "{ipv4Addresses: [192.0.2.1]}"), []string{"create"}, "spec.name"},
		"without data":       {manifest("ARecord", "name: bad", "{name: bad}"), []string{"create"}, "spec.ipv4Addresses"},
		"a field of another": {manifest("ARecord", "name: bad", "{name: bad, text: [x], ipv4Addresses: [192.0.2.1]}"), []string{"create"}, "spec.text"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := kube.TryKubectl(t, c.manifest, append(c.args, "-n", f.namespace, "--dry-run=server", "-f", "-")...)
			waits := c.want == "which is older" // It is stored, with a warning.
			if (err == nil) != waits || !strings.Contains(out, c.want) {
				t.Errorf("answered %q, want %q in it, stored = %t", out, c.want, waits)
			}
		})
	}
	t.Run("a generated name that is good", func(t *testing.T) {
		record := f.aRecord("", "generated", "192.0.2.1")
		record.GenerateName = "good-"
		if err := f.client.Create(t.Context(), record, client.DryRunAll); err != nil || record.Annotations[v1beta1.ZoneAnnotation] != f.zone {
			t.Errorf("%v; annotations %v", err, record.Annotations)
		}
	})
}

// waitYounger waits until an object that is created gets a later time than another one: times have a resolution of one second.
func (f *fixture) waitYounger(object, than client.Object) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		probe, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return errors.New("no object")
		}
		if err := f.client.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if !probe.GetCreationTimestamp().After(than.GetCreationTimestamp().Time) {
			return errors.New("it is the same second")
		}
		return nil
	})
}

// The creation of a record or a DNSEndpoint calls a webhook of ours once. Nobody else creates objects at the same time, or only now and then.
func TestAdmissionCostsOneCall(t *testing.T) {
	var f *fixture
	kube.Disruptive(t, func() { f = newAdmission(t) })
	for name, object := range map[string]func() client.Object{
		"record":      func() client.Object { return f.aRecord("probe", "probe", "192.0.2.1") },
		"DNSEndpoint": func() client.Object { return f.singleEndpoint("probe", "probe."+f.zone, "A", "192.0.2.1") },
	} {
		t.Run(name, func(t *testing.T) {
			kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
				before := webhookCalls(t)
				if err := f.client.Create(ctx, object(), client.DryRunAll); err != nil {
					return err
				}
				if calls := webhookCalls(t) - before; calls != 1 {
					return fmt.Errorf("%d calls", calls)
				}
				return nil
			})
		})
	}
}

// webhookCall is a counter of kube-apiserver's: how often a webhook of ours was called for creations.
var webhookCall = regexp.MustCompile(`(?m)^apiserver_admission_webhook_request_total\{[^}]*name="[^"]*bindy\.firestoned\.io",operation="CREATE"[^}]*\} ([0-9]+)$`)

// webhookCalls returns how many calls of our webhooks kube-apiserver has counted.
func webhookCalls(t *testing.T) (calls int) {
	t.Helper()
	for _, found := range webhookCall.FindAllStringSubmatch(kube.Kubectl(t, "", "get", "--raw", "/metrics"), -1) {
		n, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		calls += n
	}
	return calls
}

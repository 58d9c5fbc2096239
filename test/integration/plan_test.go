package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// A plan says what an apply then does, by server-side apply and without it, and changes nothing.
func TestPlan(t *testing.T) {
	kube.Isolated(t)
	f := &pluginTest{newFixture(t, "plan.example", 1, 0), pluginFolder(t)}
	folder := t.TempDir()
	write := func(records ...string) {
		text := ""
		for _, r := range records {
			text += r + "\n---\n"
		}
		if err := os.WriteFile(filepath.Join(folder, "records.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	record := func(name, spec string) string {
		return fmt.Sprintf("apiVersion: bindy.firestoned.io/v1beta1\nkind: ARecord\nmetadata: {name: %s, labels: {zone: %s}}\nspec: {name: %s, %s}", name, f.labels()["zone"], name, spec)
	}
	write(record("www", "ttl: 300, ipv4Addresses: [192.0.2.1]"), record("old", "ipv4Addresses: [192.0.2.8]"))
	f.expectOutput(1, `(?s)appears +old\.plan\.example\. .*appears +www\.plan\.example\. +A +300 +192\.0\.2\.1 .*2 RRsets in 1 zone: 2 appear, 0 change, 0 vanish`, "plan", "-f", folder)
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(f.aRecord("www", "www")), &v1beta1.ARecord{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the plan has stored something: %v", err)
	}
	for _, flags := range [][]string{{"apply", "-f", folder}, {"apply", "--server-side", "--force-conflicts", "-f", folder}} {
		write(record("www", "ttl: 300, ipv4Addresses: [192.0.2.1]"), record("old", "ipv4Addresses: [192.0.2.8]"))
		f.kubectl(flags...)
		f.waitServed("www.plan.example", "A", "192.0.2.1")
		f.waitServed("old.plan.example", "A", "192.0.2.8")
		f.expectOutput(0, `^no answer changes\n$`, "plan", "-f", folder)
		// The TTL is not declared any more: an apply takes it away.
		write(record("www", "ipv4Addresses: [192.0.2.2]"))
		f.expectOutput(1, `changes +www\.plan\.example\. +A +300 → 3600 +192\.0\.2\.1 → 192\.0\.2\.2 +ARecord `+f.namespace+`/www\n1 RRset in 1 zone`, "plan", "-f", folder)
		f.expectOutput(1, `(?s)vanishes +old\.plan\.example\. .*2 RRsets in 1 zone: 0 appear, 1 change, 1 vanish`, "plan", "-f", folder, "--prune=zone="+f.labels()["zone"])
		f.expectOutput(1, `"action": "vanishes"`, "plan", "-f", folder, "--prune=zone="+f.labels()["zone"], "-o", "json")
		f.waitServed("www.plan.example", "A", "192.0.2.1")
	}
	write(record("www", "ipv4Addresses: [192.0.2.300]"))
	f.expectOutput(2, `records\.yaml:1: error: ARecord `+f.namespace+`/www: .*192\.0\.2\.300`, "plan", "-f", folder)
	if err := errors.Join(f.client.Delete(f.Context(), f.aRecord("www", "www")), f.client.Delete(f.Context(), f.aRecord("old", "old"))); err != nil {
		t.Fatal(err)
	}
}

package attack

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// A namespace gets no more zones, providers and records than it may have, in whatever way they are written: they would take the memory of
// processes that all share. What it has goes on, and what it deletes makes room.
func TestAttack27Limits(t *testing.T) {
	kube.Isolated(t)
	attacker := newTenant(t, "attacker")
	grant := &v1beta1.ZoneGrant{}
	grant.Name = attacker.namespace
	grant.Spec.Namespaces, grant.Spec.Suffixes = []string{attacker.namespace}, []string{attacker.namespace + ".example"}
	grant.Spec.Limits = &v1beta1.NamespaceLimits{Zones: new(int32(2)), Providers: new(int32(1)), Records: new(int32(4))}
	if err := attacker.client.Create(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = attacker.client.Delete(context.WithoutCancel(t.Context()), grant) })

	zone := func(n int) string {
		return dnsZone(fmt.Sprint("z", n), fmt.Sprintf("z%d.%s.example", n, attacker.namespace), "clusterRef: none")
	}
	record := func(n int) string { return aRecord(fmt.Sprint("r", n), "z1", fmt.Sprint("r", n), "192.0.2.1") }
	provider := func(name string) string {
		return fmt.Sprintf("---\napiVersion: bindy.firestoned.io/v1beta1\nkind: DNSProvider\nmetadata: {name: %s}\n"+
			"spec: {rfc2136: {primaries: [{address: 198.51.100.1}], updateKey: {secretRef: {name: k}}, transferKey: {secretRef: {name: k}}}}\n", name)
	}
	endpoints := func(n int) string {
		manifest := "---\napiVersion: externaldns.k8s.io/v1alpha1\nkind: DNSEndpoint\nmetadata: {name: many, labels: {zone: z1}}\nspec:\n  endpoints:\n"
		for i := range n {
			manifest += fmt.Sprintf("  - {dnsName: e%d.z1.%s.example, recordType: A, targets: [192.0.2.2]}\n", i, attacker.namespace)
		}
		return manifest
	}
	attacker.apply(zone(1) + zone(2) + provider("first") + record(1) + record(2) + endpoints(2))
	kube.Eventually(t, kube.Settle, func(context.Context) error { // until the webhook has the grant
		return attacker.refusedWith("of ZoneGrant "+grant.Name, provider("dry"), "create", "--dry-run=server", "-f", "-")
	})
	for name, attempt := range map[string]struct {
		manifest, limit string
		how             []string
	}{
		"zone":                   {zone(3), "may have 2 objects of kind DNSZone", []string{"create", "-f", "-"}},
		"zone by apply":          {zone(3), "may have 2 objects of kind DNSZone", []string{"apply", "--server-side", "-f", "-"}},
		"zone with another name": {strings.Replace(zone(3), "name: z3", "generateName: z3-", 1), "may have 2 objects of kind DNSZone", []string{"create", "-f", "-"}},
		"provider":               {provider("second"), "may have 1 objects of kind DNSProvider", []string{"create", "-f", "-"}},
		"record":                 {record(3), "may have 4 records", []string{"create", "-f", "-"}},
		"record of another kind": {strings.NewReplacer("ARecord", "TXTRecord", "ipv4Addresses: [192.0.2.1]", "text: [a]").Replace(record(3)), "may have 4 records", []string{"create", "-f", "-"}},
		"endpoints that grow":    {endpoints(3), "may have 4 records", []string{"replace", "-f", "-"}},
		"endpoints by apply":     {endpoints(3), "may have 4 records", []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}},
	} {
		if err := attacker.refusedWith(attempt.limit, attempt.manifest, attempt.how...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	attacker.kubectl("label", "dnszones,dnsproviders,arecords,dnsendpoints", "--all", "still=changeable")
	attacker.kubectl("delete", "arecord", "r1")
	attacker.apply(record(3))
}

// refusedWith returns an error unless kubectl is refused in words that contain want.
func (n *tenant) refusedWith(want, manifest string, how ...string) error {
	out, err := n.try(manifest, how...)
	if err == nil || !strings.Contains(out, want) {
		return fmt.Errorf("kubectl %s is not refused with %q: %w\n%s", strings.Join(how, " "), want, err, out)
	}
	return nil
}

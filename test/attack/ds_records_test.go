package attack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// A signed zone of a name that is delegated to somebody else puts no DS record into the zone above, neither by being there nor by a status
// that says that it was asked to.
func TestAttack29ForgedDS(t *testing.T) {
	kube.Isolated(t)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	zone := "ds-" + victim.namespace + ".example"
	victim.apply(dnsZone("main", zone, "clusterRef: "+p.name) + aRecord("www", "main", "www", "192.0.2.1") + `---
apiVersion: bindy.firestoned.io/v1beta1
kind: NSRecord
metadata: {name: shop, labels: {zone: main}}
spec: {name: shop, nameserver: ns1.bank.example.}
`)
	victim.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
	attacker.apply(`---
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Cluster
metadata: {name: own}
spec: {primary: {replicas: 1}}
` + dnsZone("shop", "shop."+zone, "clusterRef: own\n  dnssecPolicy: default"))
	attacker.kubectl("wait", "--for=jsonpath={.status.dnssec.signed}=true", "dnszone/shop", "--timeout=180s")
	noDS := func() {
		t.Helper()
		waitAnswers(t, p, p.name, "shop."+zone, dns.TypeDS, func(reply *dns.Msg) error {
			if len(answersOf(reply, dns.TypeDS)) > 0 {
				t.Fatalf("the zone above has DS records of the attacker: %v", reply.Answer)
			}
			if reply.Rcode != dns.RcodeSuccess || !reply.Authoritative {
				return errors.New("the zone above does not answer")
			}
			return nil
		})
	}
	noDS()
	if out := attacker.kubectl("get", "dnszone", "shop", "-o=jsonpath={.status.dnssec.delegation.parents}"); strings.TrimSpace(out) != "" {
		t.Errorf("the attacker's zone asks %s for DS records", out)
	}

	parent := strings.TrimSpace(victim.kubectl("get", "dnszone", "main", "-o=jsonpath={.metadata.uid}"))
	forge := []string{"patch", "dnszone", "shop", "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
		`{"status":{"dnssec":{"delegation":{"parents":[%q],"keys":[{"ds":"1 13 2 %s","servedSince":"2026-01-01T00:00:00Z","published":true}]}}}}`, parent, strings.Repeat("AB", 32))}
	if out, err := attacker.try("", forge...); err == nil || !strings.Contains(out, "forbidden") {
		t.Errorf("a tenant may write the status of a zone: %s", out)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: attacker.namespace, Name: "statuses"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1beta1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}}, {APIGroups: []string{v1beta1.GroupName}, Resources: []string{"dnszones/status"}, Verbs: []string{"*"}},
	}}
	if err := p.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	attacker.bindRole("Role", role.Name, "dnszones.bindy.firestoned.io")
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		if out, err := attacker.try("", forge...); err == nil || !strings.Contains(out, "status.dnssec.delegation") {
			return fmt.Errorf("the forged status is answered with %q", out)
		}
		return nil
	})
	noDS()
}

package attack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// waitOlder waits until what is created from now on is younger than what was created before: times have a resolution of one second.
func waitOlder(t *testing.T) {
	t.Helper()
	began := time.Now()
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		if time.Since(began) <= time.Second {
			return errors.New("still the same second")
		}
		return nil
	})
}

// serveShop has the victim serve shop.<zone> on servers.
func serveShop(victim *tenant, zone, on string) {
	victim.Helper()
	victim.apply(dnsZone("shop", "shop."+zone, on) + aRecord("www", "shop", "www", "192.0.2.1"))
	victim.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
}

// expectShop requires that the victim's zone is served, that a change of it arrives, and that nothing of it is refused.
func expectShop(victim *tenant, p *platform, zone, change string) {
	victim.Helper()
	victim.kubectl("label", "dnszone", "shop", "touched="+change, "--overwrite")
	victim.apply(aRecord(change, "shop", change, "192.0.2.2"))
	victim.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord."+change, "--timeout=120s")
	waitServed(victim.T, p, p.name, "www.shop."+zone, dns.TypeA, "192.0.2.1")
	waitServed(victim.T, p, p.name, change+".shop."+zone, dns.TypeA, "192.0.2.2")
	if out := victim.kubectl("get", "dnszone", "shop", `-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}`); strings.TrimSpace(out) != "True" {
		victim.Errorf("the victim's zone is Ready %s", out)
	}
}

// An old zone that was kept elsewhere is led to shared servers, above a younger zone that is served there: nothing below changes hands,
// neither when it comes nor later.
func TestAttack05LateClaim(t *testing.T) {
	kube.Isolated(t)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	zone, on := "late-"+victim.namespace+".example", "clusterRef: "+p.name
	records := aRecord("www", "late", "www.shop", "192.0.2.66") + aRecord("own", "late", "own", "192.0.2.66")
	attacker.apply(dnsZone("late", zone, "clusterRef: none") + records)
	waitOlder(t)
	serveShop(victim, zone, on)
	attacker.apply(dnsZone("late", zone, on))
	waitServed(t, p, p.name, "own."+zone, dns.TypeA, "192.0.2.66") // It is served where nobody else is.
	expectShop(victim, p, zone, "once")
	attacker.kubectl("label", "dnszone", "late", "touched=yes")
	attacker.apply(aRecord("later", "late", "later", "192.0.2.66"))
	waitServed(t, p, p.name, "later."+zone, dns.TypeA, "192.0.2.66")
	expectShop(victim, p, zone, "twice")
}

// The same before there are servers at all: who named them first has come first.
func TestAttack05LateClaimBeforeServersExist(t *testing.T) {
	kube.Isolated(t)
	p := &platform{Client: kube.Client(t), name: kube.Namespace(t, "platform")}
	victim, attacker := newTenant(t, "victim"), newTenant(t, "attacker")
	zone, on := "early-"+victim.namespace+".example", "clusterRef: "+p.name
	attacker.apply(dnsZone("late", zone, "clusterRef: none") + aRecord("www", "late", "www.shop", "192.0.2.66"))
	waitOlder(t)
	victim.apply(dnsZone("shop", "shop."+zone, on) + aRecord("www", "shop", "www", "192.0.2.1"))
	attacker.apply(dnsZone("late", zone, on))
	p.start(t)
	victim.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
	expectShop(victim, p, zone, "later")
}

// Old zones that are being deleted, and stay because of a finalizer, are led to shared servers: nothing there is taken away, refused
// or deleted.
func TestAttack05SquatInDeletion(t *testing.T) {
	kube.Isolated(t)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	zone, on := "squat-"+victim.namespace+".example", "clusterRef: "+p.name
	names := map[string]string{"parent": zone, "same": "shop." + zone}
	for name, zoneName := range names {
		attacker.apply(strings.Replace(dnsZone(name, zoneName, "clusterRef: none"), "name: "+name+"}", "name: "+name+", finalizers: [mallory.example/hold]}", 1))
		t.Cleanup(func() {
			kube.Kubectl(t, "", "-n", attacker.namespace, "patch", "dnszone", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		})
	}
	waitOlder(t)
	serveShop(victim, zone, on)
	for name := range names {
		attacker.kubectl("delete", "dnszone", name, "--wait=false")
	}
	toShared := fmt.Sprintf(`{"spec":{"clusterRef":%q}}`, p.name)
	if out, err := attacker.try("", "patch", "dnszone", "same", "--type=merge", "-p", toShared); err == nil || !strings.Contains(out, "a DNSZone of another namespace has this name") {
		t.Errorf("a zone in deletion comes to the servers of the victim's: %v, %s", err, out)
	}
	if out, err := attacker.try("", "patch", "dnszone", "parent", "--type=merge", "-p", toShared); err != nil {
		t.Logf("refused: %s", out) // It would be the younger one above: either answer is right.
	}
	expectShop(victim, p, zone, "once")
}

// Every other way to come to the servers of a name that is taken is refused as the plain one is, and nobody forges since when a zone is there.
func TestAttack05OtherWaysToServers(t *testing.T) {
	kube.Isolated(t)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	zone := "ways-" + victim.namespace + ".example"
	attacker.apply(dnsZone("old", "shop."+zone, "clusterRef: none"))
	waitOlder(t)
	serveShop(victim, zone, "clusterRef: "+p.name)
	const taken = "a DNSZone of another namespace has this name"
	for _, servers := range []string{"clusterRef: " + p.name, "clusterProviderRef: " + p.name, "clusterRef: none\n  clusterProviderRef: " + p.name} {
		attacker.expectRefused(dnsZone("old", "shop."+zone, servers), "spec.zoneName", taken)
	}
	forged := fmt.Sprintf(`{"status":{"arrivals":{"hosts":[{"host":"cluster/%s","since":"2020-01-01T00:00:00.000000Z"}]}}}`, p.name)
	forge := []string{"patch", "dnszone", "old", "--subresource=status", "--type=merge", "-p", forged}
	if out, err := attacker.try("", forge...); err == nil || !strings.Contains(out, "forbidden") {
		t.Errorf("a tenant may write the status of a zone: %s", out)
	}
	// Not even with the right to statuses.
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: attacker.namespace, Name: "statuses"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1beta1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}}, {APIGroups: []string{v1beta1.GroupName}, Resources: []string{"dnszones/status"}, Verbs: []string{"*"}},
	}}
	if err := p.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	attacker.bindRole("Role", role.Name, "dnszones.bindy.firestoned.io")
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		if out, err := attacker.try("", forge...); err == nil || !strings.Contains(out, "status.arrivals of DNSZone") {
			return fmt.Errorf("the forged status is answered with %q", out)
		}
		return nil
	})
	attacker.expectRefused(dnsZone("old", "shop."+zone, "clusterRef: "+p.name), taken)
	expectShop(victim, p, zone, "later")
}

package attack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// platform is a namespace with the servers of a cluster-scoped cluster that has its name.
type platform struct {
	client.Client
	name string
	uid  types.UID
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{Client: kube.Client(t), name: kube.Namespace(t, "platform")}
	p.start(t)
	return p
}

// start creates the cluster.
func (p *platform) start(t *testing.T) {
	t.Helper()
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	cluster.Spec.Namespace = p.name
	cluster.Spec.Primary = &v1beta1.RoleConfig{Replicas: new(int32(1))}
	if err := p.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	p.uid = cluster.UID
	t.Cleanup(func() {
		kube.Kubectl(t, "", "annotate", "bind9globalcluster", p.name, v1beta1.AllowDeletionAnnotation+"=true")
		kube.Kubectl(t, "", "delete", "bind9globalcluster", p.name, "--timeout=120s")
	})
}

// waitRefused waits until a zone of a tenant is served nowhere for a reason, in its own status and in its SyncStatus.
func waitRefused(n *tenant, zone, reason string) {
	n.Helper()
	kube.Eventually(n, kube.Settle, func(context.Context) error {
		for _, args := range [][]string{
			{"get", "dnszone", zone, `-o=jsonpath={.status.conditions[?(@.type=="Ready")].reason}`},
			{"get", "syncstatus", "dnszone." + zone, `-o=jsonpath={.status.conditions[?(@.type=="Accepted")].reason}`},
		} {
			if out, err := n.try("", args...); err != nil || strings.TrimSpace(out) != reason {
				return fmt.Errorf("%v: %q, want %s: %w", args, out, reason, err)
			}
		}
		return nil
	})
}

// An instance that names a cluster-scoped cluster as its owner is refused, and where admission does not ask it is no member:
// it gets none of the cluster's zones.
func TestAttack01ForgedOwner(t *testing.T) {
	kube.Isolated(t)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	zone := "forged-" + victim.namespace + ".example"
	victim.apply(dnsZone("main", zone, "clusterRef: "+p.name) + aRecord("www", "main", "www", "192.0.2.1"))
	victim.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
	for _, uid := range []string{"00000000-0000-0000-0000-000000000000", string(p.uid)} {
		attacker.expectRefused(fmt.Sprintf(`
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Instance
metadata:
  name: member
  ownerReferences: [{apiVersion: bindy.firestoned.io/v1beta1, kind: Bind9GlobalCluster, name: %s, uid: %s, controller: true}]
spec: {clusterRef: %s, role: primary}
`, p.name, uid, p.name), "metadata.ownerReferences[0]", "does not own this instance")
	}
	// Past admission: with the UID of the cluster, so that the garbage collector lets it be.
	forged := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: attacker.namespace, Name: "member"}}
	forged.Spec.Role = v1beta1.RolePrimary
	forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9GlobalCluster", Name: p.name, UID: p.uid}}
	config := rest.CopyConfig(kube.Config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:lockstep-system:lockstep-fleet", Groups: []string{"system:masters"}}
	if err := kube.ClientAs(t, config).Create(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	attacker.kubectl("wait", "--for=condition=Ready", "bind9instance/member", "--timeout=120s")
	waitServed(t, p, p.name, "www."+zone, dns.TypeA, "192.0.2.1")
	victim.kubectl("label", "dnszone/main", "touched=yes")
	victim.apply(aRecord("later", "main", "later", "192.0.2.2"))
	victim.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.later", "--timeout=120s")
	if out := victim.kubectl("get", "syncstatus", "dnszone.main", "-o=jsonpath={.servers[*].pod} {.nameServers}"); strings.Contains(out, "member") {
		t.Errorf("the forged member is among the zone's servers: %s", out)
	}
	waitNotAuthoritative(t, p, attacker.namespace, zone)
}

// waitNotAuthoritative waits until no server of a namespace has a zone.
func waitNotAuthoritative(t *testing.T, c client.Client, namespace, zone string) {
	t.Helper()
	waitAnswers(t, c, namespace, zone, dns.TypeSOA, func(reply *dns.Msg) error {
		if reply.Authoritative {
			return fmt.Errorf("answers with authority: %v", reply)
		}
		return nil
	})
}

// An instance with the labels that a stranger's zone selects, open to all zones, does not get the zone.
func TestAttack02Lure(t *testing.T) {
	kube.Isolated(t)
	victim, attacker := newTenant(t, "victim"), newTenant(t, "attacker")
	zone := "lure-" + victim.namespace + ".example"
	instance := func(annotations string) string {
		return fmt.Sprintf("---\napiVersion: bindy.firestoned.io/v1beta1\nkind: Bind9Instance\nmetadata: {name: edge, labels: {pool: %s}%s}\nspec: {role: primary}\n",
			victim.namespace, annotations)
	}
	attacker.apply(instance(`, annotations: {bindy.firestoned.io/allow-zone-namespaces: "*"}`))
	attacker.kubectl("wait", "--for=condition=Ready", "bind9instance/edge", "--timeout=120s")
	victim.apply(instance("") + dnsZone("main", zone, "bind9InstancesFrom: [{selector: {matchLabels: {pool: "+victim.namespace+"}}}]") +
		aRecord("www", "main", "www", "192.0.2.1"))
	victim.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
	waitServed(t, victim.client, victim.namespace, "www."+zone, dns.TypeA, "192.0.2.1")
	if out := victim.kubectl("get", "dnszone", "main", "-o=jsonpath={.status.bind9Instances[*].namespace}"); strings.Contains(out, attacker.namespace) {
		t.Errorf("the zone is on instances of %s", out)
	}
	waitNotAuthoritative(t, victim.client, attacker.namespace, zone)
}

// A longer zone that admits everybody takes no endpoint: neither from the zone of its own namespace, nor from one elsewhere that it
// names.
func TestAttack04EndpointTheft(t *testing.T) {
	kube.Isolated(t)
	owner, guest, attacker := newTenant(t, "owner"), newTenant(t, "guest"), newTenant(t, "attacker")
	zone := "theft-" + owner.namespace + ".example"
	endpoint := func(name, annotations string) string {
		return fmt.Sprintf("---\napiVersion: externaldns.k8s.io/v1alpha1\nkind: DNSEndpoint\nmetadata: {name: %s%s}\n"+
			"spec: {endpoints: [{dnsName: www.%[1]s.%[3]s, recordType: A, targets: [192.0.2.1]}]}\n", name, annotations, zone)
	}
	for _, name := range []string{"own", "guest"} {
		attacker.apply(dnsZone(name, name+"."+zone, "clusterRef: dns"))
		attacker.kubectl("annotate", "dnszone", name, "bindy.firestoned.io/allow-endpoint-namespaces=*")
	}
	attacker.apply(bind9Cluster("dns"))
	owner.apply(bind9Cluster("dns") + dnsZone("main", zone, "clusterRef: dns"))
	owner.kubectl("annotate", "dnszone", "main", "bindy.firestoned.io/allow-endpoint-namespaces="+guest.namespace)
	owner.apply(endpoint("own", ""))
	guest.apply(endpoint("guest", ", annotations: {bindy.firestoned.io/allow-zone-namespaces: "+owner.namespace+"}"))
	for n, name := range map[*tenant]string{owner: "own", guest: "guest"} {
		n.kubectl("wait", "--for=condition=Propagated", "syncstatus/dnsendpoint."+name, "--timeout=120s")
		kube.Eventually(t, kube.Settle, func(context.Context) error {
			out, err := n.try("", "get", "dnsendpoints.externaldns.k8s.io", name, "-o=jsonpath={.status.zones[*].namespace}")
			if err != nil || strings.TrimSpace(out) != owner.namespace {
				return fmt.Errorf("endpoint %s is published by a zone of %q, want %s: %w", name, out, owner.namespace, err)
			}
			return nil
		})
		waitServed(t, owner.client, owner.namespace, "www."+name+"."+zone, dns.TypeA, "192.0.2.1")
		waitServed(t, owner.client, attacker.namespace, "www."+name+"."+zone, dns.TypeA)
	}
}

// On shared servers nobody declares a zone below another namespace's, or a public suffix. A delegation and a grant permit it, and
// who takes them back takes the zone out of DNS.
func TestAttack05Shadow(t *testing.T) {
	kube.Isolated(t)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	zone := "shadow-" + victim.namespace + ".example"
	on := "clusterRef: " + p.name
	attacker.apply(dnsZone("moved", "www."+zone, "clusterRef: none"))
	victim.apply(dnsZone("main", zone, on) + aRecord("www", "main", "www", "192.0.2.1"))
	victim.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
	for _, suffix := range []string{"com", "co.uk", "shadow"} {
		attacker.expectRefused(dnsZone("suffix", suffix, on), "spec.zoneName", "is a public suffix")
	}
	for _, name := range []string{"www." + zone, "a.b." + zone} {
		attacker.expectRefused(dnsZone("below", name, on), "spec.zoneName", "another namespace has a zone above", "NSRecord", "ZoneGrant")
	}
	attacker.expectRefused(dnsZone("same", zone, on), "spec.zoneName", "a DNSZone of another namespace has this name")
	// A zone that gained its age elsewhere cannot be moved in.
	attacker.expectRefused(dnsZone("moved", "www."+zone, on), "another namespace has a zone above")
	waitServed(t, p, p.name, "www."+zone, dns.TypeA, "192.0.2.1")

	// Who is permitted is served.
	delegation := "---\napiVersion: bindy.firestoned.io/v1beta1\nkind: NSRecord\nmetadata: {name: sub, labels: {zone: main}}\nspec: {name: sub, nameserver: ns1.sub}\n"
	victim.apply(delegation)
	victim.kubectl("wait", "--for=condition=Ready", "nsrecord/sub", "--timeout=120s")
	attacker.apply(dnsZone("sub", "sub."+zone, on) + aRecord("host", "sub", "host", "192.0.2.7"))
	grant := &v1beta1.ZoneGrant{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	grant.Spec = v1beta1.ZoneGrantSpec{Suffixes: []string{"team." + zone}, Namespaces: []string{attacker.namespace}, Servers: &v1beta1.GrantedServers{Clusters: []string{p.name}}}
	if err := p.Create(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kube.Kubectl(t, "", "delete", "zonegrant", p.name, "--ignore-not-found") })
	attacker.apply(dnsZone("team", "team."+zone, on) + aRecord("team-host", "team", "host", "192.0.2.8"))
	waitServed(t, p, p.name, "host.sub."+zone, dns.TypeA, "192.0.2.7")
	waitServed(t, p, p.name, "host.team."+zone, dns.TypeA, "192.0.2.8")

	victim.kubectl("delete", "nsrecord", "sub", "--timeout=60s")
	if err := p.Delete(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sub", "team"} {
		waitRefused(attacker, name, status.NotPermitted)
		waitServed(t, p, p.name, "host."+name+"."+zone, dns.TypeA)
	}
	if out, err := attacker.try("apiVersion: bindy.firestoned.io/v1beta1\nkind: ZoneGrant\nmetadata: {name: mine}\nspec: {suffixes: [.], namespaces: ['*']}\n", "apply", "-f", "-"); err == nil || !strings.Contains(out, "forbidden") {
		t.Errorf("a tenant may write grants: %s", out)
		kube.Kubectl(t, "", "delete", "zonegrant", "mine")
	}
}

// Forty zones on a server that answers nobody cost other tenants nothing: a new zone of theirs is served while those wait.
func TestAttack09Tarpit(t *testing.T) {
	kube.Disruptive(t, nil)
	victim, attacker := newTenant(t, "victim"), newTenant(t, "attacker")
	victim.apply(bind9Cluster("dns"))
	victim.kubectl("wait", "--for=condition=Ready", "bind9cluster/dns", "--timeout=120s")
	// named of her own configuration: it drops what comes from outside its pod.
	attacker.apply(`---
apiVersion: v1
kind: ConfigMap
metadata: {name: tarpit}
data:
  named.conf.options: |
    options {
      directory "/var/cache/bind";
      allow-new-zones yes;
      listen-on port 5353 { any; };
      blackhole { !127.0.0.1; any; };
      session-keyfile none;
    };
`)
	attacker.apply(strings.Replace(bind9Instance("tarpit", ", configMapRefs: {namedConfOptions: tarpit}"), "name: tarpit", "name: tarpit, labels: {pool: tarpit}", 1))
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		if out, err := attacker.try("", "get", "pod", "tarpit-0", "-o=jsonpath={.status.phase}"); err != nil || strings.TrimSpace(out) != "Running" {
			return fmt.Errorf("the tarpit is %q: %w", out, err)
		}
		return nil
	})
	var zones strings.Builder
	for i := range 40 {
		zones.WriteString(dnsZone(fmt.Sprintf("z%d", i), fmt.Sprintf("z%d.tarpit.example", i), "bind9InstancesFrom: [{selector: {matchLabels: {pool: tarpit}}}]"))
	}
	attacker.apply(zones.String())
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		out, err := attacker.try("", "get", "dnszones", `-o=jsonpath={.items[*].status.conditions[?(@.type=="Ready")].reason}`)
		if err != nil || !strings.Contains(out, status.PrimaryFailed) {
			return fmt.Errorf("no zone waits for the tarpit: %q, %w", out, err)
		}
		return nil
	})
	// Each of the attacker's zones comes back every few seconds, for as long as its server is silent.
	for i := range 5 {
		zone, began := fmt.Sprintf("new%d.example", i), time.Now()
		victim.apply(dnsZone(fmt.Sprintf("new%d", i), zone, "clusterRef: dns"))
		waitAnswers(t, victim.client, victim.namespace, zone, dns.TypeSOA, func(reply *dns.Msg) error {
			if !reply.Authoritative {
				return errors.New("the zone is not there yet")
			}
			return nil
		})
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the zone %s was served after %s", zone, took)
		}
	}
}

// Whoever creates a deleted zone's name next, on the same servers, does not sign with its keys.
func TestAttack14KeysOfDeletedZone(t *testing.T) {
	kube.Isolated(t)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	zone := "keys-" + victim.namespace + ".example"
	signed := dnsZone("main", zone, "clusterRef: "+p.name+"\n  dnssecPolicy: default")
	victim.apply(signed)
	before := waitKeys(t, p, zone, nil)
	victim.kubectl("delete", "dnszone", "main", "--timeout=120s")
	waitNotAuthoritative(t, p, p.name, zone)
	attacker.apply(signed)
	waitKeys(t, p, zone, before)
	// The rightful owner gets its keys again: its DS record is at the parent.
	attacker.kubectl("delete", "dnszone", "main", "--timeout=120s")
	waitNotAuthoritative(t, p, p.name, zone)
	victim.apply(signed)
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		if after := waitKeys(t, p, zone, nil); !slices.Equal(before, after) {
			return fmt.Errorf("the zone's keys are %q, want %q", after, before)
		}
		return nil
	})
}

// waitKeys waits until the servers of a namespace have DNSKEY records of a zone, none of which is in others, and returns them.
func waitKeys(t *testing.T, p *platform, zone string, others []string) (keys []string) {
	t.Helper()
	waitAnswers(t, p, p.name, zone, dns.TypeDNSKEY, func(reply *dns.Msg) error {
		if keys = answersOf(reply, dns.TypeDNSKEY); len(keys) == 0 {
			return errors.New("no key")
		}
		for _, key := range keys {
			if slices.Contains(others, key) {
				t.Fatalf("the zone is signed with the key %s of another namespace", key)
			}
		}
		return nil
	})
	return keys
}

// What the former holder of a name wrote is gone from shared servers when they serve another's zone of that name. She pauses her
// zone and moves it away, so that nothing deletes it.
func TestAttack17Legacy(t *testing.T) {
	kube.Isolated(t)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	zone := "legacy-" + victim.namespace + ".example"
	on := "clusterRef: " + p.name
	victim.apply(dnsZone("main", zone, "clusterRef: none") + aRecord("www", "main", "www", "192.0.2.1"))
	attacker.apply(dnsZone("main", zone, on) + aRecord("login", "main", "login", "192.0.2.66"))
	waitServed(t, p, p.name, "login."+zone, dns.TypeA, "192.0.2.66")
	victim.expectRefused(dnsZone("main", zone, on), "a DNSZone of another namespace has this name")
	// Pausing its zone keeps nothing there: it is released all the same, and what were left the next zone would evict.
	attacker.kubectl("annotate", "dnszone", "main", "bindy.firestoned.io/paused=true")
	attacker.apply(dnsZone("main", zone, "clusterRef: none"))
	victim.apply(dnsZone("main", zone, on))
	waitServed(t, p, p.name, "www."+zone, dns.TypeA, "192.0.2.1")
	waitServed(t, p, p.name, "login."+zone, dns.TypeA)
	victim.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
	if out := victim.kubectl("get", "dnszone", "main", "-o=jsonpath={.status.foreignRRsetsCount}"); strings.TrimSpace(out) != "" {
		t.Errorf("the zone has %s RRsets that nobody declares", out)
	}
}

// A delegation to servers elsewhere is none to these: nobody may declare the zone here, and the servers go on referring to it.
func TestAttack18DelegationElsewhere(t *testing.T) {
	kube.Isolated(t)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	zone := "refer-" + victim.namespace + ".example"
	on := "clusterRef: " + p.name
	victim.apply(dnsZone("main", zone, on) +
		"---\napiVersion: bindy.firestoned.io/v1beta1\nkind: NSRecord\nmetadata: {name: shop, labels: {zone: main}}\nspec: {name: shop, nameserver: ns1.provider.example.}\n")
	victim.kubectl("wait", "--for=condition=Ready", "nsrecord/shop", "--timeout=120s")
	for _, name := range []string{"shop." + zone, "www.shop." + zone} {
		attacker.expectRefused(dnsZone("shop", name, on), "spec.zoneName", "another namespace has a zone above")
	}
	waitAnswers(t, p, p.name, "www.shop."+zone, dns.TypeA, func(reply *dns.Msg) error {
		if reply.Authoritative || len(reply.Ns) != 1 || !strings.Contains(reply.Ns[0].String(), "ns1.provider.example.") {
			return fmt.Errorf("no referral to the provider: %v", reply)
		}
		return nil
	})
}

package gitops

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// commit is a state of a folder.
type commit struct {
	message string
	// objects are what the folder has beside a cluster and a zone, and live those whose data every server then has.
	objects, live []string
	// gone is a name that the commit takes away.
	gone string
}

const (
	alias     = "{kind: CNAMERecord, metadata: {name: www-alias}, spec: {name: www, target: cdn.example.net.}}"
	addresses = "{kind: ARecord, metadata: {name: www}, spec: {name: www, ipv4Addresses: [192.0.2.10, 192.0.2.11]}}"
	apiAlias  = "{kind: DNSRecord, metadata: {name: api}, spec: {name: api, type: CNAME, data: [cdn.example.net.]}}"
	apiItself = "{kind: DNSRecord, metadata: {name: api}, spec: {name: api, type: A, data: [192.0.2.40]}}"
	shop      = "{kind: ARecord, metadata: {name: shop}, spec: {name: shop, ipv4Addresses: [192.0.2.20]}}"
	renamed   = "{kind: ARecord, metadata: {name: store}, spec: {name: shop, ipv4Addresses: [192.0.2.20]}}"
	mail      = "{kind: ARecord, metadata: {name: mail}, spec: {name: mail, ipv4Addresses: [192.0.2.30]}}"
	moved     = "{kind: ARecord, metadata: {name: mail}, spec: {name: mail, ipv4Addresses: [192.0.2.31]}}"
	text      = "{kind: TXTRecord, metadata: {name: info}, spec: {name: info, text: [hello]}}"
)

var commits = []commit{
	{message: "A folder with a cluster, a zone and five names", objects: []string{alias, apiAlias, shop, mail, text},
		live: []string{"cnamerecord.www-alias", "dnsrecord.api", "arecord.shop", "arecord.mail", "txtrecord.info"}},
	{message: "The alias www becomes two addresses: one object goes, another comes", objects: []string{addresses, apiAlias, shop, mail, text}, live: []string{"arecord.www"}},
	{message: "The alias api becomes an address: its object changes", objects: []string{addresses, apiItself, shop, mail, text}, live: []string{"dnsrecord.api"}},
	{message: "Both become an alias again", objects: []string{alias, apiAlias, shop, mail, text}, live: []string{"cnamerecord.www-alias", "dnsrecord.api"}},
	{message: "An object gets another name, its DNS name stays", objects: []string{alias, apiAlias, renamed, mail, text}, live: []string{"arecord.store"}},
	{message: "An address changes", objects: []string{alias, apiAlias, renamed, moved, text}, live: []string{"arecord.mail"}},
	{message: "A name goes; it is asked for until now", objects: []string{alias, apiAlias, renamed, moved}, gone: "info"},
}

// The demo: a folder is applied, changed, renamed and pruned by the engines of Argo CD and of Flux, in the way that docs/guides/gitops.md
// describes, while every server is asked for every name all the time. No name is ever empty.
func TestDemo(t *testing.T) {
	kube.Isolated(t)
	t.Run("ArgoCD", func(t *testing.T) {
		a := newArgo(t)
		var before []*unstructured.Unstructured
		demonstrate(t, a.namespace, func(objects ...*unstructured.Unstructured) {
			a.syncInTwo(before, objects)
			before = objects
		})
	})
	t.Run("Flux", func(t *testing.T) {
		f := newFlux(t, kube.Client(t))
		demonstrate(t, kube.Namespace(t, "flux"), f.reconcile)
	})
}

// demonstrate has a tool bring a namespace to each commit, one after the other, and then to nothing.
func demonstrate(t *testing.T, namespace string, bring func(...*unstructured.Unstructured)) {
	t.Helper()
	out, began, c := t.Output(), time.Now(), kube.Client(t)
	say := func(message string) { fmt.Fprintf(out, "\n== %s (+%d s)\n", message, int(time.Since(began).Seconds())) }
	zone := namespace + ".example."
	common := []string{
		"{kind: Bind9Cluster, metadata: {name: dns}, spec: {primary: {replicas: 1}, secondary: {replicas: 1}}}",
		"{kind: DNSZone, metadata: {name: main}, spec: {zoneName: " + namespace + ".example, clusterRef: dns, soaRecord: {primaryNs: ns1.example., " +
			"adminEmail: hostmaster.example.}, recordsFrom: [{selector: {}}]}}",
	}
	var asked *recorder
	for _, commit := range commits {
		say(commit.message)
		if commit.gone != "" {
			asked.forget(commit.gone + "." + zone)
		}
		objects := parse(t, namespace, slices.Concat(common, commit.objects)...)
		for _, o := range objects[len(common):] {
			spec, _, _ := unstructured.NestedMap(o.Object, "spec")
			fmt.Fprintf(out, "%s %s: %v\n", o.GetKind(), o.GetName(), spec)
		}
		bring(objects...)
		for _, status := range commit.live {
			kube.Kubectl(t, "", "-n", namespace, "wait", "--for=condition=Propagated", "syncstatus/"+status, "--timeout=120s")
		}
		if asked == nil {
			asked = record(t, c, namespace, map[string]uint16{"www." + zone: dns.TypeA, "api." + zone: dns.TypeA, "shop." + zone: dns.TypeA, "mail." + zone: dns.TypeA, "info." + zone: dns.TypeTXT})
		}
	}
	asked.stop()
	say("What every server answered, all the time")
	asked.print(out)
	asked.requireNeverEmpty()
	asked.requireBoth("www."+zone, "api."+zone)

	say("The folder is emptied, in one attempt")
	bring()
	waitGone(t, c, namespace, "Bind9Cluster", "DNSZone", "ARecord", "CNAMERecord", "DNSRecord", "TXTRecord")
	fmt.Fprintln(out, "nothing is left")
}

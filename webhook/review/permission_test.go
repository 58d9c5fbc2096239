package review

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
)

// sharedZone is a zone of a namespace on the cluster-scoped cluster shared, or elsewhere.
func sharedZone(t *testing.T, namespace, zoneName, cluster, created string) *v1beta1.DNSZone {
	t.Helper()
	z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: zoneName, UID: types.UID(namespace + zoneName)}}
	if created != "" {
		if err := z.CreationTimestamp.UnmarshalQueryParameter(created); err != nil {
			t.Fatal(err)
		}
	}
	z.Spec.ZoneName, z.Spec.ClusterRef = zoneName, cluster
	z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": "main"}}}}
	return z
}

func TestReviewPermission(t *testing.T) {
	bank := sharedZone(t, "bank", "bank.example", "shared", "2026-01-02T00:00:00Z")
	ns := recordOf(t, `{kind: NSRecord, metadata: {name: sub, namespace: bank, uid: r1, labels: {zone: main}}, spec: {name: sub, nameserver: ns1.sub}}`)
	away := recordOf(t, `{kind: NSRecord, metadata: {name: away, namespace: bank, uid: r2, labels: {zone: main}}, spec: {name: away, nameserver: ns.provider.example.}}`)
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "c1"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "platform"}}
	server := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "shared-primary-0", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9GlobalCluster", Name: "shared", UID: "c1"},
	}}}
	granted := &v1beta1.ZoneGrant{ObjectMeta: metav1.ObjectMeta{Name: "g"}, Spec: v1beta1.ZoneGrantSpec{Suffixes: []string{"team.bank.example"}, Namespaces: []string{"team"}}}
	objects := newStaticObjects([]client.Object{bank, ns, away, cluster, server, granted}...)
	old := func(zoneName, cluster string) *v1beta1.DNSZone {
		return sharedZone(t, "team", zoneName, cluster, "2026-01-01T00:00:00Z")
	}
	for name, tc := range map[string]struct {
		zone, old *v1beta1.DNSZone
		want      string
	}{
		"below":               {sharedZone(t, "team", "www.bank.example", "shared", ""), nil, "another namespace has a zone above www.bank.example."},
		"delegated":           {sharedZone(t, "team", "a.sub.bank.example", "shared", ""), nil, ""},
		"delegated to others": {sharedZone(t, "team", "a.away.bank.example", "shared", ""), nil, "another namespace has a zone above"},
		"granted":             {sharedZone(t, "team", "a.team.bank.example", "shared", ""), nil, ""},
		"granted to others":   {sharedZone(t, "evil", "a.team.bank.example", "shared", ""), nil, "no ZoneGrant lets namespace evil have a.team.bank.example."},
		"public suffix":       {sharedZone(t, "team", "com", "shared", ""), nil, "com. is a public suffix"},
		"the same name":       {sharedZone(t, "team", "bank.example", "shared", ""), nil, "a DNSZone of another namespace has this name"},
		"older, and stays":    {old("www.bank.example", "shared"), old("www.bank.example", "shared"), ""},
		"older, moved in":     {old("www.bank.example", "shared"), old("www.bank.example", "own"), "another namespace has a zone above"},
		"displaces":           {old("bank.example", "shared"), old("bank.example", "own"), "a DNSZone of another namespace has this name"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := zoneReviewer{objects}.reviewPermission(quick(t), tc.zone, tc.old)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(v.Problems) > 0 {
				got = v.Problems[0].Error()
			}
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") || strings.Contains(got, "bank/") {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A zone that is being deleted is reviewed when it is led to other servers, and goes in peace otherwise. What it says about its own
// status counts as little as what an update says.
func TestReviewZoneInDeletion(t *testing.T) {
	const head = `{kind: DNSZone, metadata: {name: z, namespace: evil, uid: e, generation: 3, creationTimestamp: "2026-01-01T00:00:00Z", deletionTimestamp: "2026-01-03T00:00:00Z", finalizers: [a/b]}, `
	zone := func(cluster, more string) string {
		return head + `spec: {zoneName: bank.example, clusterRef: ` + cluster + `, ` + more + `soaRecord: {primaryNs: ns1.bank.example., adminEmail: a@bank.example}}, ` +
			`status: {observedGeneration: 1, arrivals: {hosts: [{host: cluster/none, since: "2026-01-01T00:00:00.000000Z"}]}}}`
	}
	forged := strings.Replace(zone("shared", ""), "cluster/none", "cluster/shared", 1)
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "c1"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "platform"}}
	handler := NewHandler(newStaticObjects(sharedZone(t, "bank", "bank.example", "shared", "2026-01-02T00:00:00Z"), cluster))
	for name, c := range map[string]struct {
		object, old string
		allowed     bool
	}{
		"led to the servers":                 {zone("shared", ""), zone("none", ""), false},
		"with a status of its own":           {forged, zone("none", ""), false},
		"by a PUT without its deletion":      {strings.Replace(zone("shared", ""), `deletionTimestamp: "2026-01-03T00:00:00Z", `, "", 1), zone("none", ""), false},
		"to servers of nobody else's":        {zone("other", ""), zone("none", ""), true},
		"stays, refused":                     {zone("shared", "ttl: 5, "), zone("shared", ""), true},
		"changes what would not be reviewed": {zone("none", "recordsFrom: [{selector: {matchLabels: {'no label': x}}}], "), zone("none", ""), true},
	} {
		if answer := handler.Handle(quick(t), request(t, c.object, c.old)); answer.Allowed != c.allowed {
			t.Errorf("%s: allowed: %t, %v", name, answer.Allowed, answer.Result)
		}
	}
}

// Whatever leads a zone to servers has it come there last: a cluster, one that has no servers yet, a provider, or selected instances.
func TestReviewOfWhatLeadsElsewhere(t *testing.T) {
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "c1"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "platform"}}
	guests := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "host", Name: "guests", Labels: map[string]string{"app": "guests"},
		Annotations: map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "*"}}}
	on := func(namespace, created string, change func(*v1beta1.DNSZone)) *v1beta1.DNSZone {
		z := sharedZone(t, namespace, "bank.example", "none", created)
		z.Name, z.UID = "z"+created, types.UID(namespace+created)
		z.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "guests"}}}}
		change(z)
		return z
	}
	stays := func(*v1beta1.DNSZone) {}
	consents := func(z *v1beta1.DNSZone) {
		z.Annotations = map[string]string{v1beta1.AllowInstanceNamespacesAnnotation: "host"}
	}
	for name, c := range map[string]struct {
		namespace string
		change    func(*v1beta1.DNSZone)
		before    func(*v1beta1.DNSZone) // what the zone was
	}{
		"clusterRef":         {"evil", func(z *v1beta1.DNSZone) { z.Spec.ClusterRef = "shared" }, stays},
		"clusterProviderRef": {"evil", func(z *v1beta1.DNSZone) { z.Spec.ClusterProviderRef = "shared" }, stays},
		"an annotation":      {"evil", consents, stays},
		"bind9InstancesFrom": {"evil", consents, func(z *v1beta1.DNSZone) {
			consents(z)
			z.Spec.Bind9InstancesFrom[0].Selector.MatchLabels = map[string]string{"app": "others"}
		}},
		"another DNSProvider": {"bank", func(z *v1beta1.DNSZone) { z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "p"}} }, func(z *v1beta1.DNSZone) {
			z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "former"}}
		}},
		"providerRefs": {"bank", func(z *v1beta1.DNSZone) { z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "p"}} }, stays},
	} {
		t.Run(name, func(t *testing.T) {
			victim := on("bank", "2026-01-02T00:00:00Z", c.change)
			before := on(c.namespace, "2026-01-01T00:00:00Z", c.before)
			after := on(c.namespace, "2026-01-01T00:00:00Z", c.change)
			v, err := zoneReviewer{newStaticObjects(victim, cluster, guests)}.reviewPermission(quick(t), after, before)
			if err != nil || len(v.Problems) != 1 {
				t.Errorf("%v, %v", v.Problems, err)
			}
		})
	}
}

// Of two zones of one name that were created in the same second, each in its namespace, admission refuses changes of the one that the
// controller does not serve. Who comes later has neither, whatever its UID.
func TestReviewAgreesOnZonesOfOneSecond(t *testing.T) {
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "c1"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "platform"}}
	fleet := membership.NewFleet(membership.FleetObjects{Clusters: []*v1beta1.Bind9GlobalCluster{cluster}}, "home")
	for _, uids := range [][]types.UID{{"1", "2"}, {"2", "1"}} {
		var zones []*v1beta1.DNSZone
		for i, namespace := range []string{"a", "b"} {
			z := sharedZone(t, namespace, "bank.example", "shared", "2026-01-02T00:00:00Z")
			z.UID = uids[i]
			zones = append(zones, z)
		}
		reviewer, refused := zoneReviewer{newStaticObjects(zones[0], zones[1], cluster)}, 0
		for _, z := range zones {
			v, err := reviewer.reviewPermission(quick(t), z, z)
			if err != nil {
				t.Fatal(err)
			}
			refused += len(v.Problems)
			if served := fleet.RefusalOf(z, membership.NewCache(zones...)) == (membership.Refusal{}); served == (len(v.Problems) > 0) {
				t.Errorf("UIDs %q: the zone of %s is served: %t, and a change of it is answered with %v", uids, z.Namespace, served, v.Problems)
			}
		}
		// kube-apiserver has given it its time and UID already.
		const later = `{kind: DNSZone, metadata: {name: z, namespace: c, uid: "0", creationTimestamp: "2026-01-02T00:00:00Z"}, ` +
			`spec: {zoneName: bank.example, clusterRef: shared, soaRecord: {primaryNs: ns1.bank.example., adminEmail: a@bank.example}}}`
		answer := NewHandler(reviewer.objects).Handle(quick(t), request(t, later, ""))
		if refused != 1 || answer.Allowed || !strings.Contains(answer.Result.Message, "a DNSZone of another namespace has this name") {
			t.Errorf("UIDs %q: %d of two are refused, and a third one is answered with %v", uids, refused, answer.Result)
		}
	}
}

func TestReviewForgedOwner(t *testing.T) {
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "c1"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "platform"}}
	for name, tc := range map[string]struct {
		namespace, kind string
		uid             types.UID
		refused         bool
	}{
		"a member":          {"platform", "Bind9GlobalCluster", "c1", false},
		"another namespace": {"evil", "Bind9GlobalCluster", "c1", true},
		"another UID":       {"platform", "Bind9GlobalCluster", "c2", true},
		"another kind":      {"platform", "ClusterBind9Provider", "c1", true},
		"a cluster's own":   {"evil", "Bind9Cluster", "c3", false},
	} {
		i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "i", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: v1beta1.GroupVersion.String(), Kind: tc.kind, Name: "shared", UID: tc.uid},
		}}}
		v, err := instanceReviewer{newStaticObjects(cluster)}.review(quick(t), i, nil)
		if err != nil || (len(v.Problems) > 0) != tc.refused {
			t.Errorf("%s: %v, %v", name, v.Problems, err)
		}
	}
}

package membership

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// chained is a zone of a namespace on the servers of a cluster-scoped cluster, with one name server.
func chained(namespace, name, cluster, server string, age int) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: strings.ReplaceAll(name, ".", "-") + "-" + cluster, UID: types.UID(namespace + "/" + name + "/" + cluster),
		CreationTimestamp: metav1.Unix(int64(1000-age), 0), Generation: 1,
	}}
	z.Spec.ZoneName, z.Spec.ClusterRef, z.Spec.SOARecord.PrimaryNS = name, cluster, server
	z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": z.Name}}}}
	return z
}

// delegatingRecord is an NSRecord of a zone.
func delegatingRecord(zone *v1beta1.DNSZone, name, server string) *v1beta1.NSRecord {
	ns := &v1beta1.NSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: zone.Namespace, Name: name + strings.ReplaceAll(server, ".", "-"), Labels: map[string]string{"zone": zone.Name}}}
	ns.Spec.Name, ns.Spec.Nameserver = name, server
	return ns
}

// sharedFleet has two cluster-scoped clusters, "shared" and "other", that everybody may use.
func sharedFleet() *Fleet {
	objects := FleetObjects{}
	for _, name := range []string{"shared", "other"} {
		cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		cluster.Spec.Namespace = "platform"
		objects.Clusters = append(objects.Clusters, cluster)
		instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{
			Namespace: "platform", Name: name + "-primary-0",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9GlobalCluster", Name: name, UID: cluster.UID}},
		}}
		instance.Spec.Role = v1beta1.RolePrimary
		objects.Instances = append(objects.Instances, instance)
	}
	grant := &v1beta1.ZoneGrant{}
	grant.Spec.Suffixes, grant.Spec.Namespaces = []string{"."}, []string{"*"}
	objects.Grants = []*v1beta1.ZoneGrant{grant}
	return NewFleet(objects, "lockstep")
}

// TestSigningParents: DS records go where both sides consent, and where the delegation can be meant for no other zone.
func TestSigningParents(t *testing.T) {
	const inside, elsewhere = "ns1.shop.example.test.", "ns1.example.net."
	parent := chained("dns", "example.test", "shared", "ns1.example.test.", 10)
	for name, c := range map[string]struct {
		child   *v1beta1.DNSZone
		others  []*v1beta1.DNSZone
		servers []string
		want    bool
	}{
		"one namespace":                         {chained("dns", "shop.example.test", "shared", inside, 1), nil, []string{inside}, true},
		"no delegation":                         {chained("dns", "shop.example.test", "shared", inside, 1), nil, nil, false},
		"a delegation to others":                {chained("dns", "shop.example.test", "shared", inside, 1), nil, []string{elsewhere}, false},
		"a delegation to others as well":        {chained("dns", "shop.example.test", "shared", inside, 1), nil, []string{inside, elsewhere}, false},
		"other servers of the namespace":        {chained("dns", "shop.example.test", "other", inside, 1), nil, []string{inside}, true},
		"a team on the same servers":            {chained("shop", "shop.example.test", "shared", inside, 1), nil, []string{inside}, true},
		"a team that claims others' servers":    {chained("shop", "shop.example.test", "shared", elsewhere, 1), nil, []string{elsewhere}, false},
		"a team on servers of its own":          {chained("shop", "shop.example.test", "other", inside, 1), nil, []string{inside}, false},
		"a copy elsewhere in the namespace":     {chained("dns", "shop.example.test", "other", inside, 1), []*v1beta1.DNSZone{chained("dns", "shop.example.test", "shared", inside, 0)}, []string{inside}, false},
		"the original beside its copy":          {chained("dns", "shop.example.test", "shared", inside, 1), []*v1beta1.DNSZone{chained("dns", "shop.example.test", "other", inside, 0)}, []string{inside}, true},
		"a zone between that delegates nothing": {chained("dns", "a.shop.example.test", "shared", inside, 1), []*v1beta1.DNSZone{chained("dns", "shop.example.test", "shared", inside, 2)}, []string{inside}, false},
		"the younger of two on the servers":     {chained("evil", "shop.example.test", "shared", inside, 0), []*v1beta1.DNSZone{chained("shop", "shop.example.test", "shared", inside, 1)}, []string{inside}, false},
	} {
		cache := NewCache(append(c.others, parent, c.child)...)
		label := strings.TrimSuffix(c.child.Spec.ZoneName, ".example.test")
		for _, server := range c.servers {
			cache.SetObject(delegatingRecord(parent, label, server))
		}
		got := sharedFleet().SigningParents(c.child, cache)
		if len(got) > 0 != c.want || c.want && got[0] != parent {
			t.Errorf("%s: %d parents, want %t", name, len(got), c.want)
		}
	}
}

// asking has a zone ask a parent for DS records.
func asking(zone *v1beta1.DNSZone, of *v1beta1.DNSZone, tag string) *v1beta1.DNSZone {
	z := zone.DeepCopy()
	z.Status.DNSSEC = &v1beta1.DNSSECStatus{Delegation: &v1beta1.SecureDelegation{Parents: []types.UID{of.UID}, Keys: []v1beta1.DelegatedKey{
		{DS: tag + " 13 2 9F2A000000000000000000000000000000000000000000000000000000000001", Published: true},
		{DS: "9 13 2 9F2A000000000000000000000000000000000000000000000000000000000009"},
	}}}
	return z
}

// TestSignersOf: a zone has what the statuses of the zones below ask of it, and hears of each change.
func TestSignersOf(t *testing.T) {
	parent := chained("dns", "example.test", "shared", "ns1.example.test.", 10)
	other := chained("dns", "other.test", "shared", "ns1.other.test.", 10)
	child := chained("dns", "shop.example.test", "shared", "ns1.shop.example.test.", 1)
	cache := NewCache(parent, other, child)
	cache.SetObject(delegatingRecord(parent, "shop", "ns1.shop.example.test."))
	tags := func() (tags []string) {
		for _, s := range cache.SignersOf(parent) {
			for _, rdata := range s.Rdata {
				tag, _, _ := strings.Cut(rdata, " ")
				tags = append(tags, s.Name+tag)
			}
		}
		return tags
	}
	set := func(what string, zone *v1beta1.DNSZone, want ...string) {
		t.Helper()
		affected := cache.SetZone(zone)
		if got := tags(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		if !slices.Contains(affected, Affected{Zone: KeyOfZone(parent)}) {
			t.Errorf("%s: the parent is not among %v", what, affected)
		}
	}
	set("signed", asking(child, parent, "1"), "shop.example.test.1")
	set("rolled", asking(child, parent, "2"), "shop.example.test.2")
	if affected := cache.SetZone(asking(child, parent, "2")); len(affected) > 0 {
		t.Errorf("an equal status concerns %v", affected)
	}
	set("of another parent", asking(child, other, "2"))
	set("again", asking(child, parent, "2"), "shop.example.test.2")
	refused := asking(child, parent, "2")
	refused.Status.Conditions = []metav1.Condition{{Type: status.Ready, Status: metav1.ConditionFalse, Reason: status.DuplicateZone}}
	set("refused", refused)
	set("served", asking(child, parent, "2"), "shop.example.test.2")
	moved := asking(child, parent, "2")
	moved.Spec.RecordsFrom, moved.Generation = nil, 2
	set("changed and unsigned", func() *v1beta1.DNSZone { z := moved.DeepCopy(); z.Status.DNSSEC = nil; return z }())
	set("changed", moved, "shop.example.test.2")
	if affected := cache.RemoveZone(KeyOfZone(child)); len(tags()) > 0 || !slices.Contains(affected, Affected{Zone: KeyOfZone(parent)}) {
		t.Errorf("deleted: %v, concerned are %v", tags(), affected)
	}
	outside := asking(chained("evil", "victim.test", "shared", "ns1.victim.test.", 1), parent, "7")
	if cache.SetZone(outside); len(tags()) > 0 {
		t.Errorf("a zone outside of its parent: %v", tags())
	}
}

// TestAttacksByDS: no status has a zone publish DS records that its own delegation is not about. Here statuses say anything, as if their
// writer had been led astray.
func TestAttacksByDS(t *testing.T) {
	const inside, elsewhere = "ns1.shop.example.test.", "ns1.example.net."
	parent := chained("bank", "example.test", "shared", "ns1.example.test.", 10)
	flood := func(zone *v1beta1.DNSZone) *v1beta1.DNSZone {
		z := asking(zone, parent, "1")
		for i := range 1000 {
			z.Status.DNSSEC.Delegation.Keys = append(z.Status.DNSSEC.Delegation.Keys, v1beta1.DelegatedKey{DS: fmt.Sprintf("%d 13 2 9F2A000000000000000000000000000000000000000000000000000000000001", i+2), Published: true})
		}
		return z
	}
	copies := func(n int) (zones []*v1beta1.DNSZone) {
		for i := range n {
			z := asking(chained("evil", "shop.example.test", "shared", inside, i), parent, fmt.Sprint(i+1))
			z.Name += fmt.Sprint(i)
			zones = append(zones, z)
		}
		return zones
	}
	for name, c := range map[string]struct {
		zones   []*v1beta1.DNSZone
		label   string
		servers []string
		records int
	}{
		"as it is meant":                     {[]*v1beta1.DNSZone{asking(chained("evil", "shop.example.test", "shared", inside, 1), parent, "1")}, "shop", []string{inside}, 1},
		"a name without a delegation":        {[]*v1beta1.DNSZone{asking(chained("evil", "shop.example.test", "shared", inside, 1), parent, "1")}, "", nil, 0},
		"a name delegated to somebody else":  {[]*v1beta1.DNSZone{asking(chained("evil", "shop.example.test", "shared", inside, 1), parent, "1")}, "shop", []string{elsewhere}, 0},
		"that claims these servers as well":  {[]*v1beta1.DNSZone{asking(chained("evil", "shop.example.test", "shared", elsewhere, 1), parent, "1")}, "shop", []string{elsewhere}, 0},
		"a name delegated to others as well": {[]*v1beta1.DNSZone{asking(chained("evil", "shop.example.test", "shared", inside, 1), parent, "1")}, "shop", []string{inside, elsewhere}, 0},
		"another name of the parent":         {[]*v1beta1.DNSZone{asking(chained("evil", "evil.example.test", "shared", inside, 1), parent, "1")}, "shop", []string{inside}, 0},
		"the parent itself":                  {[]*v1beta1.DNSZone{asking(chained("evil", "example.test", "shared", inside, 1), parent, "1")}, "shop", []string{inside}, 0},
		"a flood of keys":                    {[]*v1beta1.DNSZone{flood(chained("evil", "shop.example.test", "shared", inside, 1))}, "shop", []string{inside}, source.MaxSigners},
		"a flood of zones":                   {copies(100), "shop", []string{inside}, 1},
	} {
		cache := NewCache(append(c.zones, parent)...)
		for _, server := range c.servers {
			cache.SetObject(delegatingRecord(parent, c.label, server))
		}
		records := 0
		for _, s := range cache.SignersOf(parent) {
			records += len(s.Rdata)
		}
		if records != c.records {
			t.Errorf("%s: %d DS records, want %d", name, records, c.records)
		}
	}
}

// TestNameDelegatedAnew: a paused zone keeps what it asks for. Its DS records leave the parent with the delegation.
func TestNameDelegatedAnew(t *testing.T) {
	parent := chained("dns", "example.test", "shared", "ns1.example.test.", 10)
	child := asking(chained("dns", "shop.example.test", "shared", "ns1.shop.example.test.", 1), parent, "1")
	cache := NewCache(parent, child)
	before, after := delegatingRecord(parent, "shop", "ns1.shop.example.test."), delegatingRecord(parent, "shop", "ns1.example.net.")
	cache.SetObject(before)
	if len(cache.SignersOf(parent)) != 1 {
		t.Fatal("the zone gets no DS record")
	}
	after.Name = before.Name
	if cache.SetObject(after); len(cache.SignersOf(parent)) > 0 {
		t.Error("DS records of the former zone stand beside the new delegation")
	}
}

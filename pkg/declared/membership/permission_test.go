package membership

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// zoneAt returns a zone of a namespace on a cluster; a greater age is older. It selects the NSRecords of its namespace.
func zoneAt(namespace, zoneName, cluster string, age int) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: object(strings.ReplaceAll(zoneName, ".", "-")+"-"+namespace, age)}
	z.Namespace = namespace
	z.Spec = v1beta1.DNSZoneSpec{ZoneName: zoneName, ClusterRef: cluster, SOARecord: v1beta1.SOARecord{PrimaryNS: "ns1.platform.example."}, RecordsFrom: []v1beta1.RecordSource{{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": zoneName}},
	}}}
	return z
}

// delegating returns an NSRecord of a zone.
func delegating(zone *v1beta1.DNSZone, name string) *v1beta1.NSRecord {
	ns := &v1beta1.NSRecord{ObjectMeta: object("ns-"+zone.Name+name, 1)}
	ns.Namespace, ns.Labels, ns.Spec.Name = zone.Namespace, map[string]string{"zone": zone.Spec.ZoneName}, name
	return ns
}

func delegatingTo(zone *v1beta1.DNSZone, name, server string) *v1beta1.NSRecord {
	ns := delegating(zone, name)
	ns.Name, ns.Spec.Nameserver = ns.Name+server, server
	return ns
}

func grant(suffixes, namespaces string, servers *v1beta1.GrantedServers) *v1beta1.ZoneGrant {
	return &v1beta1.ZoneGrant{Spec: v1beta1.ZoneGrantSpec{Suffixes: strings.Fields(suffixes), Namespaces: strings.Fields(namespaces), Servers: servers}}
}

func TestRefusalOf(t *testing.T) {
	member := func(cluster string) *v1beta1.Bind9Instance {
		return owned(instance("platform", cluster+"-primary-0", cluster), "Bind9GlobalCluster")
	}
	guests := allowing(instance("host", "guests", ""), "*")
	guests.Labels = map[string]string{"app": "guests"}
	servers := FleetObjects{
		Instances: []*v1beta1.Bind9Instance{member("shared"), member("edge"), instance("bank", "own-0", "own"), instance("evil", "own-0", "own"), guests},
		Clusters:  []*v1beta1.Bind9GlobalCluster{global("shared", "platform"), global("edge", "platform"), global("empty", "platform")},
	}
	guest := func(namespace, zoneName string) *v1beta1.DNSZone {
		z := zoneAt(namespace, zoneName, "", 1)
		z.Annotations = map[string]string{v1beta1.AllowInstanceNamespacesAnnotation: "host"}
		z.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "guests"}}}}
		return z
	}
	bank := zoneAt("bank", "bank.example", "shared", 9)
	child := zoneAt("evil", "www.bank.example", "shared", 1)
	const above, public, ungranted = "another namespace has a zone above", "is a public suffix", "no ZoneGrant lets"
	for name, test := range map[string]struct {
		zone    *v1beta1.DNSZone
		others  []*v1beta1.DNSZone
		records []*v1beta1.NSRecord
		grants  []*v1beta1.ZoneGrant
		want    string
	}{
		"alone":                           {zone: bank},
		"below a zone of another":         {zone: child, others: []*v1beta1.DNSZone{bank}, want: above},
		"far below":                       {zone: zoneAt("evil", "a.b.bank.example", "shared", 1), others: []*v1beta1.DNSZone{bank}, want: above},
		"below, on an empty cluster":      {zone: zoneAt("evil", "www.bank.example", "empty", 1), others: []*v1beta1.DNSZone{zoneAt("bank", "bank.example", "empty", 9)}, want: above},
		"below, its own":                  {zone: zoneAt("bank", "www.bank.example", "shared", 1), others: []*v1beta1.DNSZone{bank}},
		"below, on other servers":         {zone: zoneAt("evil", "www.bank.example", "edge", 1), others: []*v1beta1.DNSZone{bank}},
		"below a younger one":             {zone: zoneAt("team", "www.bank.example", "shared", 10), others: []*v1beta1.DNSZone{bank}},
		"above":                           {zone: zoneAt("team", "deep.bank.example", "shared", 1), others: []*v1beta1.DNSZone{zoneAt("bank", "a.deep.bank.example", "shared", 9)}},
		"delegated":                       {zone: child, others: []*v1beta1.DNSZone{bank}, records: []*v1beta1.NSRecord{delegating(bank, "www")}},
		"delegated to others":             {zone: child, others: []*v1beta1.DNSZone{bank}, records: []*v1beta1.NSRecord{delegatingTo(bank, "www", "ns.provider.example.")}, want: above},
		"delegated to the zone's own":     {zone: child, others: []*v1beta1.DNSZone{bank}, records: []*v1beta1.NSRecord{delegatingTo(bank, "www", "NS1.platform.example.")}},
		"delegated inside":                {zone: child, others: []*v1beta1.DNSZone{bank}, records: []*v1beta1.NSRecord{delegatingTo(bank, "www", "ns1.www")}},
		"delegated to all":                {zone: child, others: []*v1beta1.DNSZone{bank}, records: []*v1beta1.NSRecord{delegatingTo(bank, "www", "ns.provider.example."), delegating(bank, "www")}},
		"delegated between":               {zone: zoneAt("team", "a.www.bank.example", "shared", 1), others: []*v1beta1.DNSZone{bank}, records: []*v1beta1.NSRecord{delegating(bank, "www")}},
		"delegated below":                 {zone: child, others: []*v1beta1.DNSZone{bank}, records: []*v1beta1.NSRecord{delegating(bank, "a.www")}, want: above},
		"delegated beside":                {zone: child, others: []*v1beta1.DNSZone{bank}, records: []*v1beta1.NSRecord{delegating(bank, "w3")}, want: above},
		"name servers of the apex":        {zone: child, others: []*v1beta1.DNSZone{bank}, records: []*v1beta1.NSRecord{delegating(bank, "@")}, want: above},
		"delegated by itself":             {zone: child, others: []*v1beta1.DNSZone{bank}, records: []*v1beta1.NSRecord{delegating(child, "www.bank.example.")}, want: above},
		"top-level domain":                {zone: zoneAt("evil", "com", "shared", 1), want: public},
		"public suffix":                   {zone: zoneAt("evil", "co.uk", "shared", 1), want: public},
		"single label":                    {zone: zoneAt("evil", "corp", "shared", 1), want: public},
		"single label, own servers":       {zone: zoneAt("bank", "corp", "own", 1)},
		"single label, the host":          {zone: zoneAt("platform", "corp", "shared", 1)},
		"single label, selected":          {zone: guest("bank", "lan"), want: public},
		"single label, the host's own":    {zone: guest("host", "lan")},
		"top-level domain, granted":       {zone: zoneAt("bank", "bank", "shared", 1), grants: []*v1beta1.ZoneGrant{grant("bank", "bank", nil)}},
		"granted to others":               {zone: child, grants: []*v1beta1.ZoneGrant{grant("BANK.example.", "bank", nil)}, want: ungranted},
		"granted to all":                  {zone: child, grants: []*v1beta1.ZoneGrant{grant("bank.example", "*", nil)}},
		"one of two grants":               {zone: child, grants: []*v1beta1.ZoneGrant{grant("bank.example", "bank", nil), grant("bank.example", "evil", nil)}},
		"the longer suffix decides":       {zone: child, grants: []*v1beta1.ZoneGrant{grant("bank.example", "evil", nil), grant("www.bank.example", "bank", nil)}, want: ungranted},
		"the longer suffix permits":       {zone: child, others: []*v1beta1.DNSZone{bank}, grants: []*v1beta1.ZoneGrant{grant("bank.example", "bank", nil), grant("www.bank.example", "evil", nil)}},
		"granted, not below":              {zone: child, others: []*v1beta1.DNSZone{bank}, grants: []*v1beta1.ZoneGrant{grant("bank.example", "bank evil", nil)}, want: above},
		"all names granted, not below":    {zone: child, others: []*v1beta1.DNSZone{bank}, grants: []*v1beta1.ZoneGrant{grant(".", "*", nil)}, want: above},
		"all names granted to others":     {zone: child, grants: []*v1beta1.ZoneGrant{grant(".", "bank", nil)}, want: ungranted},
		"granted on this cluster":         {zone: child, grants: []*v1beta1.ZoneGrant{grant("example", "bank", &v1beta1.GrantedServers{Clusters: []string{"shared"}})}, want: ungranted},
		"granted on another cluster":      {zone: child, grants: []*v1beta1.ZoneGrant{grant("example", "bank", &v1beta1.GrantedServers{Clusters: []string{"edge"}})}},
		"granted in this namespace":       {zone: guest("evil", "a.example"), grants: []*v1beta1.ZoneGrant{grant("example", "bank", &v1beta1.GrantedServers{Namespaces: []string{"host"}})}, want: ungranted},
		"own servers need no grant":       {zone: zoneAt("evil", "bank.example", "own", 1), grants: []*v1beta1.ZoneGrant{grant(".", "bank", nil)}},
		"a refused zone keeps none away":  {zone: zoneAt("bank", "bank.example", "shared", 1), others: []*v1beta1.DNSZone{zoneAt("evil", "example", "shared", 10)}},
		"nor takes it a name":             {zone: bank, others: []*v1beta1.DNSZone{zoneAt("evil", "bank.example", "shared", 10)}, grants: []*v1beta1.ZoneGrant{grant("bank.example", "bank", nil)}},
		"the name of another":             {zone: zoneAt("evil", "bank.example", "shared", 1), others: []*v1beta1.DNSZone{bank}, want: "a DNSZone of another namespace has this name"},
		"without servers":                 {zone: zoneAt("evil", "com", "nowhere", 1)},
		"no consent, so none is shadowed": {zone: guest("bank", "bank.example"), others: []*v1beta1.DNSZone{bank}},
	} {
		t.Run(name, func(t *testing.T) {
			all := servers
			all.Grants = test.grants
			cache := NewCache(append(test.others, test.zone)...)
			for _, r := range test.records {
				cache.SetObject(r)
			}
			got := NewFleet(all, "home").RefusalOf(test.zone, cache)
			if !strings.Contains(got.Message, test.want) || (got.Reason == "") != (test.want == "") {
				t.Errorf("%+v, want %q", got, test.want)
			}
			for _, other := range test.others {
				if strings.Contains(got.Message, other.Name) || strings.Contains(got.Message, other.Namespace+"/") {
					t.Errorf("%q names an object of another namespace", got.Message)
				}
			}
		})
	}
}

// A delegation that moves to other servers, or comes from there, is a permission that ends or begins.
func TestDelegationThatMovesAffectsZonesBelow(t *testing.T) {
	bank, child := zoneAt("bank", "bank.example", "shared", 9), zoneAt("evil", "www.bank.example", "shared", 1)
	cache := NewCache(bank, child)
	fleet := NewFleet(FleetObjects{
		Instances: []*v1beta1.Bind9Instance{owned(instance("platform", "shared-primary-0", "shared"), "Bind9GlobalCluster")},
		Clusters:  []*v1beta1.Bind9GlobalCluster{global("shared", "platform")},
	}, "home")
	for n, server := range []string{"ns.provider.example.", "ns1.platform.example.", "ns.provider.example."} {
		ns := delegating(bank, "www")
		ns.Spec.Nameserver, ns.Generation = server, int64(n)
		if affected := refusable(fleet, cache, cache.SetObject(ns)); !slices.Contains(affected, KeyOfZone(child)) {
			t.Errorf("the delegation is to %s now, and that affects %v alone", server, affected)
		}
	}
}

// refusable lists the zones that an event may have refused, or permitted.
func refusable(f *Fleet, c *Cache, affected []Affected) (keys []ZoneKey) {
	for _, a := range affected {
		if a.By != nil {
			keys = append(keys, f.Concerned(a, c)...)
		}
	}
	return keys
}

// cameTo is when a zone came to the servers of a cluster by definition, "" if it is about to come, and whether its status says so.
func cameTo(cluster string, zone *v1beta1.DNSZone) (since string, recorded bool) {
	switch s := zone.Status; {
	case s.Arrivals != nil:
		for _, a := range s.Arrivals.Hosts {
			if a.Host == "cluster/"+cluster {
				return a.Since, true
			}
		}
	case s.ObservedGeneration <= 0 && zone.Generation <= 1:
		return arrivalTime(zone.CreationTimestamp.Time), false
	case s.ObservedGeneration > 0 && len(s.Bind9Instances) > 0 && !slices.ContainsFunc(s.Conditions, func(c metav1.Condition) bool { return c.Reason == status.NotPermitted }):
		return arrivalTime(zone.CreationTimestamp.Time), true
	}
	return "", false
}

// isFirst reports whether a zone came to the cluster of both before another one did, by definition.
func isFirst(a, b *v1beta1.DNSZone) bool {
	came, other := "", ""
	if came, _ = cameTo(a.Spec.ClusterRef, a); came == "" {
		came = "never"
	}
	if other, _ = cameTo(b.Spec.ClusterRef, b); other == "" {
		other = "never"
	}
	return came < other || came == other && compareZones(a, b) < 0
}

// refusalsAmong is RefusalOf by definition, for all zones at once: from the first zone that came to the last.
func refusalsAmong(f *Fleet, zones []*v1beta1.DNSZone, delegated map[ZoneKey][]string) map[ZoneKey]string {
	slices.SortFunc(zones, func(a, b *v1beta1.DNSZone) int {
		if a.Spec.ClusterRef != b.Spec.ClusterRef {
			return strings.Compare(a.Spec.ClusterRef, b.Spec.ClusterRef)
		}
		if isFirst(a, b) {
			return -1
		}
		return 1
	})
	reasons, denied := map[ZoneKey]string{}, map[ZoneKey]bool{}
	longest := map[ZoneKey]string{}
	for _, zone := range zones {
		name, _ := declaration.ZoneName(zone.Spec.ZoneName)
		foreign, listed := slices.ContainsFunc(f.InstancesOf(zone), func(i *v1beta1.Bind9Instance) bool { return i.Namespace != zone.Namespace }), false
		key := KeyOfZone(zone)
		for suffix, grants := range f.grants {
			if foreign && rrset.IsSubdomain(name, suffix) && len(suffix) > len(longest[key]) {
				longest[key], listed = suffix, slices.ContainsFunc(grants, func(g *v1beta1.ZoneGrant) bool { return slices.Contains(g.Spec.Namespaces, zone.Namespace) })
			}
		}
		denied[key] = foreign && (longest[key] != "" && !listed || longest[key] == "" && strings.Count(name, ".") == 1)
	}
	for n, zone := range zones {
		key := KeyOfZone(zone)
		name, _ := declaration.ZoneName(zone.Spec.ZoneName)
		reason := ""
		if denied[key] {
			reason = status.NotPermitted
		}
		for _, first := range zones[:n] {
			firstName, _ := declaration.ZoneName(first.Spec.ZoneName)
			_, recorded := cameTo(first.Spec.ClusterRef, first)
			stands := !denied[KeyOfZone(first)] && !v1beta1.IsGoing(first) && (recorded || reasons[KeyOfZone(first)] == "")
			if !stands || !slices.ContainsFunc(f.InstancesOf(zone), func(i *v1beta1.Bind9Instance) bool { return f.Serves(i, first) }) {
				continue
			}
			through := slices.ContainsFunc(delegated[KeyOfZone(first)], func(d string) bool { return rrset.IsSubdomain(name, d) })
			switch {
			case firstName == name:
				reason = status.DuplicateZone
			case reason == "" && rrset.IsSubdomain(name, firstName) && first.Namespace != zone.Namespace && !through && (longest[key] == firstName || !rrset.IsSubdomain(longest[key], firstName)):
				reason = status.NotPermitted
			}
		}
		reasons[key] = reason
	}
	return reasons
}

// randomStanding gives a zone any of the statuses by which it may have come to its servers.
func randomStanding(r *rand.Rand, z *v1beta1.DNSZone, members []*v1beta1.Bind9Instance) {
	z.Generation = 1 + int64(r.IntN(2))
	switch r.IntN(5) {
	case 0: // The controller has never looked at it.
		z.Status.ObservedGeneration = -int64(r.IntN(2))
	case 1:
		z.Status.ObservedGeneration, z.Status.Arrivals = 1, &v1beta1.ZoneArrivals{}
	case 2:
		since := arrivalTime(startOfTest.Add(-time.Duration(r.IntN(5)) * time.Second))
		z.Status.ObservedGeneration, z.Status.Arrivals = 1, &v1beta1.ZoneArrivals{Hosts: []v1beta1.ZoneArrival{{Host: "cluster/" + z.Spec.ClusterRef, Since: since}}}
	case 3: // An earlier version has.
		z.Status.ObservedGeneration = 1
		for _, i := range members {
			z.Status.Bind9Instances = append(z.Status.Bind9Instances, v1beta1.ZoneInstance{Namespace: i.Namespace, Name: i.Name})
		}
		if r.IntN(2) == 0 {
			z.Status.Conditions = []metav1.Condition{{Type: status.Ready, Reason: status.NotPermitted}}
		}
	case 4:
		z.DeletionTimestamp = new(metav1.Now())
		if r.IntN(2) == 0 {
			z.Finalizers = []string{v1beta1.DependentsFinalizer}
		}
	}
}

// After any sequence of changes every zone is refused, or is not, as the definition says, and each zone of which that has
// changed is among the affected.
func TestRefusalsAreAsDefined(t *testing.T) {
	servers := FleetObjects{
		Instances: []*v1beta1.Bind9Instance{
			owned(instance("a", "shared-primary-0", "shared"), "Bind9GlobalCluster"), instance("b", "own-0", "own"), instance("c", "own-0", "own"),
		},
		Clusters: []*v1beta1.Bind9GlobalCluster{global("shared", "a")},
		Grants:   []*v1beta1.ZoneGrant{grant("y.net", "b", nil), grant("x.net", "b c", nil)},
	}
	fleet := NewFleet(servers, "home")
	names := []string{"com", "a.com", "b.a.com", "c.b.a.com", "net", "x.net", "y.net", "a.x.net"}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 12))
		cache, zones, records := NewCache(), map[ZoneKey]*v1beta1.DNSZone{}, map[source.ObjectKey]*v1beta1.NSRecord{}
		before := map[ZoneKey]string{}
		for step := range 60 {
			var affected []Affected
			var own ZoneKey
			switch r.IntN(6) {
			case 0, 1:
				z := zoneAt(pick(r, []string{"a", "b", "c"}), pick(r, names), pick(r, []string{"shared", "shared", "own"}), r.IntN(5))
				z.Name = fmt.Sprint(r.IntN(5))
				z.UID, z.Annotations = types.UID(fmt.Sprint(z.Namespace, z.Name, r.IntN(2))), map[string]string{"changed": fmt.Sprint(step)}
				randomStanding(r, z, fleet.InstancesOf(z))
				zones[KeyOfZone(z)] = z
				affected, own = cache.SetZone(z), KeyOfZone(z)
			case 5: // The status alone changes, or a finalizer goes.
				for key, z := range zones {
					z = z.DeepCopy()
					z.Finalizers = nil
					z.Status.ObservedGeneration, z.Status.Arrivals = 1, &v1beta1.ZoneArrivals{}
					if r.IntN(2) == 0 {
						z.Status.Arrivals, _ = fleet.ArrivalsOf(z, startOfTest)
					}
					zones[key] = z
					affected, own = cache.SetZone(z), key
					break
				}
			case 2:
				for key := range zones {
					delete(zones, key)
					affected = cache.RemoveZone(key)
					break
				}
			case 3:
				ns := delegating(zoneAt(pick(r, []string{"a", "b"}), pick(r, names), "", 0), pick(r, []string{"a", "b", "b.a", "x"}))
				ns.Name, ns.Generation, ns.Spec.Nameserver = fmt.Sprint(r.IntN(4)), int64(step), pick(r, []string{"ns1", "ns1.platform.example.", "ns.provider.example."})
				records[source.KeyOf(ns)] = ns
				affected = cache.SetObject(ns)
			default:
				for key, ns := range records {
					delete(records, key)
					affected = cache.RemoveObject(ns)
					break
				}
			}
			delegated := map[ZoneKey][]string{}
			for _, ns := range records {
				if zone := firstOf((namespaceLabels{}).zonesSelecting(slices.Collect(maps.Values(zones)), ns)); zone != nil {
					if name, err := declaration.OwnerName(ns.Spec.Name, zone.Spec.ZoneName); err == nil && ns.Spec.Nameserver != "ns.provider.example." {
						delegated[KeyOfZone(zone)] = append(delegated[KeyOfZone(zone)], name)
					}
				}
			}
			told := refusable(fleet, cache, affected)
			want := refusalsAmong(fleet, slices.Collect(maps.Values(zones)), delegated)
			for key, zone := range zones {
				if got := fleet.RefusalOf(zone, cache).Reason; got != want[key] {
					t.Fatalf("seed %d, step %d: %s (%s of %s): %q, want %q", seed, step, key, zone.Spec.ZoneName, zone.Spec.ClusterRef, got, want[key])
				}
				if _, known := before[key]; known && want[key] != before[key] && key != own && !slices.Contains(told, key) {
					t.Fatalf("seed %d, step %d: %s was %q and is %q now, but is not affected", seed, step, key, before[key], want[key])
				}
			}
			before = want
		}
	}
}

// BenchmarkRefusalOf is for a zone among a thousand below one, on a hundred instances.
func BenchmarkRefusalOf(b *testing.B) {
	servers := FleetObjects{Clusters: []*v1beta1.Bind9GlobalCluster{global("shared", "platform")}}
	for n := range 100 {
		servers.Instances = append(servers.Instances, owned(instance("platform", fmt.Sprint(n), "shared"), "Bind9GlobalCluster"))
	}
	fleet := NewFleet(servers, "home")
	cache := NewCache(zoneAt("platform", "example", "shared", 5000))
	var last *v1beta1.DNSZone
	for n := range 1000 {
		last = zoneAt("platform", fmt.Sprintf("z%d.example", n), "shared", n)
		cache.SetZone(last)
	}
	b.ReportAllocs()
	for b.Loop() {
		if fleet.RefusalOf(last, cache) != (Refusal{}) {
			b.Fatal("refused")
		}
	}
}

// Zones of its name and of names above, in any number and namespaces, cost a zone a look if they are on servers of their own or on none: they
// are not even placed, which takes memory.
func TestZonesElsewhereCostALook(t *testing.T) {
	const many = 2000
	servers := FleetObjects{
		Instances: []*v1beta1.Bind9Instance{owned(instance("platform", "shared-primary-0", "shared"), "Bind9GlobalCluster")},
		Clusters:  []*v1beta1.Bind9GlobalCluster{global("shared", "platform")},
	}
	cache := NewCache(zoneAt("platform", "example", "shared", 2*many))
	for n := range many {
		namespace := fmt.Sprint("own-", n)
		servers.Instances = append(servers.Instances, instance(namespace, "dns-0", "dns"))
		cache.SetZone(zoneAt(namespace, "shop.example", "dns", n))
		for _, name := range []string{"example", "shop.example"} {
			strange := zoneAt("strange", name, "none", n)
			strange.Name = fmt.Sprint(name, n)
			cache.SetZone(strange)
		}
	}
	if allocated := testing.AllocsPerRun(1, func() { cache.SetZone(zoneAt("strange", "example", "none", 0)) }); allocated > 100 {
		t.Errorf("with %d zones at and below its name, one more takes %.0f allocations", 3*many, allocated)
	}
	fleet, zone := NewFleet(servers, "home"), zoneAt("shop", "shop.example", "shared", 0)
	cache.SetZone(zone)
	for what, z := range map[string]*v1beta1.DNSZone{"on shared servers": zone, "on its own": cache.Zone(ZoneKey{Namespace: "own-7", Name: zoneAt("own-7", "shop.example", "dns", 7).Name})} {
		if allocated := testing.AllocsPerRun(1, func() {
			if want := z == zone; (fleet.RefusalOf(z, cache) != Refusal{}) != want {
				t.Errorf("a zone %s is refused: %t", what, !want)
			}
		}); allocated > 100 {
			t.Errorf("of %d zones each elsewhere, a zone %s takes %.0f allocations", many, what, allocated)
		}
	}
}

// A zone that another one refuses keeps nobody from servers that the other one is not on.
func TestRefusedOnOtherServersKeepsNobody(t *testing.T) {
	at := func(name string, age int, providers ...string) *v1beta1.DNSZone {
		z := zoneAt("team", "shop.example", "", age)
		z.Name = name
		for _, p := range providers {
			z.Spec.ProviderRefs = append(z.Spec.ProviderRefs, v1beta1.ProviderReference{Name: p})
		}
		return z
	}
	first, second, third := at("first", 3, "a"), at("second", 2, "a", "b"), at("third", 1, "b")
	fleet := NewFleet(FleetObjects{}, "home")
	if got := fleet.RefusalOf(third, NewCache(second, third)); got.Reason != status.DuplicateZone {
		t.Errorf("beside an older zone: %+v", got)
	}
	cache := NewCache(first, second, third)
	if got := fleet.RefusalOf(third, cache); got != (Refusal{}) {
		t.Errorf("beside an older zone that is refused: %+v", got)
	}
	for _, a := range cache.RemoveZone(KeyOfZone(first)) {
		if concerned := fleet.Concerned(a, cache); len(concerned) != 2 {
			t.Errorf("the end of the first concerns %v", concerned)
		}
	}
}

// BenchmarkRefusalBesideStrangers is for a zone whose name thousands have elsewhere.
func BenchmarkRefusalBesideStrangers(b *testing.B) {
	servers := FleetObjects{
		Instances: []*v1beta1.Bind9Instance{owned(instance("platform", "shared-primary-0", "shared"), "Bind9GlobalCluster")},
		Clusters:  []*v1beta1.Bind9GlobalCluster{global("shared", "platform")},
	}
	zone := zoneAt("shop", "shop.example", "shared", 0)
	cache, fleet := NewCache(zone), NewFleet(servers, "home")
	for n := range 5000 {
		cache.SetZone(zoneAt(fmt.Sprint(n), "shop.example", "none", n))
	}
	for b.Loop() {
		if fleet.RefusalOf(zone, cache) != (Refusal{}) {
			b.Fatal("refused")
		}
	}
}

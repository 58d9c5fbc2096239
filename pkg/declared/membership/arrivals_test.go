package membership

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// arrived returns a zone of which the controller has recorded that it came to some hosts so many seconds ago.
func arrived(z *v1beta1.DNSZone, ago int, hosts ...string) *v1beta1.DNSZone {
	z.Generation, z.Status.ObservedGeneration, z.Status.Arrivals = 2, 1, &v1beta1.ZoneArrivals{}
	for _, host := range hosts {
		z.Status.Arrivals.Hosts = append(z.Status.Arrivals.Hosts, v1beta1.ZoneArrival{Host: host, Since: arrivalTime(startOfTest.Add(-time.Duration(ago) * time.Second))})
	}
	return z
}

// listed returns a zone as an earlier version left it that served it on instances.
func listed(z *v1beta1.DNSZone, reason string, instances ...*v1beta1.Bind9Instance) *v1beta1.DNSZone {
	z.Generation, z.Status.ObservedGeneration = 2, 1
	z.Status.Conditions = []metav1.Condition{{Type: status.Ready, Reason: reason}}
	for _, i := range instances {
		z.Status.Bind9Instances = append(z.Status.Bind9Instances, v1beta1.ZoneInstance{Namespace: i.Namespace, Name: i.Name})
	}
	return z
}

func going(z *v1beta1.DNSZone, finalizers ...string) *v1beta1.DNSZone {
	z.DeletionTimestamp, z.Finalizers = new(metav1.NewTime(startOfTest)), finalizers
	return z
}

func selecting(z *v1beta1.DNSZone, label string) *v1beta1.DNSZone {
	z.Annotations = map[string]string{v1beta1.AllowInstanceNamespacesAnnotation: "*"}
	z.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": label}}}}
	return z
}

func providedBy(z *v1beta1.DNSZone, provider string) *v1beta1.DNSZone {
	z.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: provider}}
	return z
}

// Who came to servers first has a name there, whatever the age of others.
func TestFirstComeKeepsTheName(t *testing.T) {
	const shared, name, above = "cluster/shared", "shop.bank.example", "bank.example"
	member := owned(instance("platform", "shared-primary-0", "shared"), "Bind9GlobalCluster")
	guests := allowing(instance("host", "guests", ""), "*")
	guests.Labels = map[string]string{"app": "guests"}
	fleet := NewFleet(FleetObjects{
		Instances: []*v1beta1.Bind9Instance{member, guests},
		Clusters:  []*v1beta1.Bind9GlobalCluster{global("shared", "platform"), global("empty", "platform")},
	}, "home")
	created := zoneAt("victim", name, "shared", 1)
	created.Status.ObservedGeneration = -1
	served := arrived(zoneAt("victim", name, "shared", 1), 1, shared)
	earlier := listed(zoneAt("victim", name, "shared", 1), status.ReconcileSucceeded, member)
	// A zone of the attacker's is older than all of the victim's.
	moved := func(zoneName, cluster string) *v1beta1.DNSZone {
		return arrived(zoneAt("evil", zoneName, cluster, 9), 9, "cluster/none")
	}
	for name, test := range map[string]struct {
		victim, other *v1beta1.DNSZone
		want, wants   string // why the victim's zone and the other one are refused
	}{
		"moved above": {served, moved(above, "shared"), "", ""},
		"moved above, before the victim's status": {created, moved(above, "shared"), "", ""},
		"moved above, from an earlier version":    {earlier, listed(zoneAt("evil", above, "shared", 9), status.NoPrimaryInstances), "", ""},
		"moved above, and recorded":               {served, arrived(zoneAt("evil", above, "shared", 9), 0, shared), "", ""},
		"moved above, on a cluster of none":       {arrived(zoneAt("victim", name, "empty", 1), 1, "cluster/empty"), moved(above, "empty"), "", ""},
		"moved to the name":                       {served, moved(name, "shared"), "", status.DuplicateZone},
		"moved to the name of a new zone":         {created, moved(name, "shared"), "", status.DuplicateZone},
		"moved in deletion":                       {served, going(moved(name, "shared"), "mallory.example/hold"), "", status.DuplicateZone},
		"was refused, may be served now":          {served, arrived(zoneAt("evil", name, "shared", 9), 9), "", status.DuplicateZone},
		"was refused by an earlier version":       {earlier, listed(zoneAt("evil", name, "shared", 9), status.DuplicateZone, member), "", status.DuplicateZone},
		"served by an earlier version":            {earlier, listed(zoneAt("evil", name, "shared", 9), status.ReconcileSucceeded, member), status.DuplicateZone, ""},
		"selects the servers late": {
			arrived(selecting(zoneAt("victim", name, "", 1), "guests"), 1, "instance/host/guests"), arrived(selecting(zoneAt("evil", above, "", 9), "guests"), 9), "", "",
		},
		"an instance of the cluster, selected": {
			arrived(selecting(zoneAt("victim", name, "shared", 1), "guests"), 1, shared, "instance/host/guests"),
			arrived(selecting(zoneAt("evil", name, "", 9), "guests"), 9), "", status.DuplicateZone,
		},
		"came first":               {served, arrived(zoneAt("evil", above, "shared", 0), 5, shared), status.NotPermitted, ""},
		"both are about to come":   {moved(name, "shared"), arrived(zoneAt("team", name, "shared", 1), 1), "", status.DuplicateZone},
		"both are new":             {created, zoneAt("evil", above, "shared", 9), status.NotPermitted, ""},
		"one is going":             {created, going(zoneAt("evil", above, "shared", 9)), "", ""},
		"one waits for dependents": {created, going(zoneAt("evil", above, "shared", 9), v1beta1.DependentsFinalizer), status.NotPermitted, ""},
		"the first one left":       {served, arrived(zoneAt("evil", name, "none", 9), 9, shared), "", ""},
		"a provider of the namespace": {
			arrived(providedBy(zoneAt("victim", name, "", 1), "p"), 1, "provider/p"), arrived(providedBy(zoneAt("victim", "SHOP.bank.example", "", 9), "p"), 9, "cluster/none"),
			"", status.DuplicateZone,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cache := NewCache(test.victim, test.other)
			if got := fleet.RefusalOf(test.victim, cache).Reason; got != test.want {
				t.Errorf("the victim's zone is refused for %q, want %q", got, test.want)
			}
			if got := fleet.RefusalOf(test.other, cache).Reason; got != test.wants {
				t.Errorf("the other zone is refused for %q, want %q", got, test.wants)
			}
		})
	}
}

// A zone that nobody has changed came when it was created, one that was changed comes now, and what is recorded stays.
func TestArrivalsOf(t *testing.T) {
	member := owned(instance("platform", "shared-primary-0", "shared"), "Bind9GlobalCluster")
	guests := allowing(instance("host", "guests", ""), "*")
	guests.Labels = map[string]string{"app": "guests"}
	fleet := NewFleet(FleetObjects{Instances: []*v1beta1.Bind9Instance{member, guests}, Clusters: []*v1beta1.Bind9GlobalCluster{global("shared", "platform")}}, "home")
	zone := func() *v1beta1.DNSZone {
		return providedBy(selecting(zoneAt("team", "a.example", "shared", 60), "guests"), "p")
	}
	const cluster, selected, provider = "cluster/shared", "instance/host/guests", "provider/p"
	const created, early, now = "2025-12-31T23:59:00.000000Z", "2025-12-31T23:59:30.000000Z", "2026-01-01T00:00:00.250000Z"
	changed := zone()
	changed.Generation = 2
	for name, test := range map[string]struct {
		zone  *v1beta1.DNSZone
		want  [3]string
		comes bool
	}{
		"new":             {zone(), [3]string{created, created, created}, false},
		"changed":         {changed, [3]string{now, now, now}, true},
		"recorded":        {arrived(zone(), 30, cluster, selected, provider), [3]string{early, early, early}, false},
		"one more":        {arrived(zone(), 30, cluster, provider), [3]string{early, now, early}, true},
		"was refused":     {arrived(zone(), 30), [3]string{now, now, now}, true},
		"earlier version": {listed(zone(), "", member, guests), [3]string{created, created, now}, true},
	} {
		arrivals, comes := fleet.ArrivalsOf(test.zone, startOfTest.Add(250*time.Millisecond))
		want := &v1beta1.ZoneArrivals{Hosts: []v1beta1.ZoneArrival{{Host: cluster, Since: test.want[0]}, {Host: selected, Since: test.want[1]}, {Host: provider, Since: test.want[2]}}}
		if diff := cmp.Diff(want, arrivals); diff != "" || comes != test.comes {
			t.Errorf("%s: comes: %t\n%s", name, comes, diff)
		}
	}
}

func TestComes(t *testing.T) {
	fleet := NewFleet(FleetObjects{}, "home")
	shared := zoneAt("team", "a.example", "shared", 1)
	both := providedBy(zoneAt("team", "a.example", "shared", 1), "p")
	for name, test := range map[string]struct {
		before, after *v1beta1.DNSZone
		want          bool
	}{
		"stays":                    {shared, shared, false},
		"a cluster":                {zoneAt("team", "a.example", "none", 1), shared, true},
		"one more provider":        {shared, both, true},
		"one provider less":        {both, shared, false},
		"the name of a cluster":    {shared, zoneAt("team", "a.example", "none", 1), true},
		"the other cluster's name": {both, providedBy(zoneAt("team", "a.example", "", 1), "p"), false},
	} {
		if got := fleet.Comes(test.before, test.after); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

package zonecache

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
)

func testZone(name, zoneName string, labels map[string]string) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name, UID: types.UID(name), Generation: 1}}
	z.Spec.ZoneName = zoneName
	if labels != nil {
		z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: labels}}}
	}
	return z
}

func requests(names ...string) []ctrl.Request {
	var all []ctrl.Request
	for _, name := range names {
		all = append(all, ctrl.Request{NamespacedName: membership.ZoneKey{Namespace: "dns", Name: name}})
	}
	return all
}

func sorted(requests []ctrl.Request) []ctrl.Request {
	return slices.CompactFunc(slices.SortedFunc(slices.Values(requests), func(a, b ctrl.Request) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	}), func(a, b ctrl.Request) bool { return a == b })
}

func TestEventsAskForPassesWhereTheyMatter(t *testing.T) {
	c := New()
	main, sub := testZone("main", "example.com", map[string]string{"in": "yes"}), testZone("sub", "sub.example.com", nil)
	record := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{
		Namespace: "dns", Name: "r000001", UID: "r000001", Generation: 1, Finalizers: []string{v1beta1.Finalizer},
		Labels: map[string]string{"in": "yes"}, Annotations: map[string]string{v1beta1.ZoneAnnotation: "example.test"},
	}}
	record.Spec.Name, record.Spec.IPv4Addresses = "r000001", []string{"192.0.2.2"}
	told := record.DeepCopy()
	told.Status.ZoneRef = &v1beta1.ZoneReference{Name: "main"}
	moved := told.DeepCopy()
	moved.Labels, moved.Generation = nil, 2
	endpoints := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "e"}, Spec: v1alpha1.DNSEndpointSpec{
		Endpoints: []*v1alpha1.Endpoint{{DNSName: "www.sub.example.com"}, {DNSName: "www.example.com"}, {DNSName: "www.example.net"}},
	}}
	statusOnly := main.DeepCopy()
	statusOnly.Status.RecordsCount = 1
	for _, step := range []struct {
		name string
		got  []ctrl.Request
		want []ctrl.Request
	}{
		{"an object without a zone is an orphan", c.Set(record), requests("")},
		{"a zone, and what it takes", c.Set(main), requests("main")},
		{"another zone", c.Set(sub), requests("sub")},
		{"the status of a zone", c.Set(statusOnly), nil},
		{"the status of a record", c.Set(told), nil},
		{"a record that leaves", c.Set(moved), requests("main")},
		{"an object of several zones", c.Set(endpoints), requests("main", "sub")},
		{"a zone that is gone, and the one that follows it", c.Remove(sub), requests("main", "sub")},
	} {
		if diff := cmp.Diff(step.want, sorted(step.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if got := c.TakeOrphans("dns"); len(got) != 0 {
		t.Errorf("orphans that have found a zone: %v", got)
	}
	roles := map[string]membership.Role{}
	taken, since := c.Take(membership.KeyOfZone(main), false)
	if since.IsZero() || !c.OldestChange().IsZero() {
		t.Errorf("changes since %v were taken; those since %v were not", since, c.OldestChange())
	}
	for _, m := range taken {
		roles[m.Key.Name] = m.Role
	}
	if diff := cmp.Diff(map[string]membership.Role{record.Name: membership.Leaving, "e": membership.Selected}, roles); diff != "" {
		t.Errorf("dirty objects (-want +got):\n%s", diff)
	}
	if again, _ := c.Take(membership.KeyOfZone(main), false); len(again) > 0 {
		t.Errorf("handed out twice: %v", again)
	}
	at := c.Placement(endpoints)
	if diff := cmp.Diff([]types.NamespacedName{membership.KeyOfZone(main)}, at.Taken); diff != "" || !slices.Equal(at.Unplaced, []int{2}) {
		t.Errorf("unplaced %v, taken (-want +got):\n%s", at.Unplaced, diff)
	}
}

// Only a zone on the same servers, at or above its name, has a zone looked at, and only if it may refuse or permit that: who has a zone above all
// others elsewhere, or changes something else in it, causes no passes over theirs.
func TestOtherZonesMatterOnCommonServers(t *testing.T) {
	c := New()
	c.Fleet = func() (*membership.Fleet, error) {
		owner := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9GlobalCluster", Name: "shared", UID: "shared"}
		return membership.NewFleet(membership.FleetObjects{
			Instances: []*v1beta1.Bind9Instance{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "shared-0", OwnerReferences: []metav1.OwnerReference{owner}},
				Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: "shared"},
			}},
			Clusters: []*v1beta1.Bind9GlobalCluster{{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "shared"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "platform"}}},
		}, "home"), nil
	}
	at := func(namespace, zoneName, cluster string, generation int64) *v1beta1.DNSZone {
		z := testZone("zone", zoneName, map[string]string{"in": "zone"})
		z.Namespace, z.Spec.ClusterRef, z.Generation = namespace, cluster, generation
		z.UID, z.Status.ObservedGeneration = types.UID(namespace), 1
		return z
	}
	of := func(namespaces ...string) (all []ctrl.Request) {
		for _, namespace := range namespaces {
			all = append(all, ctrl.Request{NamespacedName: membership.ZoneKey{Namespace: namespace, Name: "zone"}})
		}
		return all
	}
	edited := at("top", "example.com", "shared", 3)
	edited.Spec.TTL = new(int64)
	ns := &v1beta1.NSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "top", Name: "ns", Labels: map[string]string{"in": "zone"}}}
	ns.Spec.Name, ns.Spec.Nameserver = "sub", "ns1"
	near := at("top", "own.sub.example.com", "own", 1)
	near.Name = "near"
	for _, step := range []struct {
		name string
		got  []ctrl.Request
		want []ctrl.Request
	}{
		{"a zone", c.Set(at("sub", "sub.example.com", "shared", 1)), of("sub")},
		{"another one elsewhere", c.Set(at("own", "sub.example.com", "own", 1)), of("own")},
		{"one above, nowhere", c.Set(at("top", "example.com", "none", 1)), of("top")},
		{"it is led to the servers", c.Set(at("top", "example.com", "shared", 2)), of("sub", "top")},
		{"something else in it changes", c.Set(edited), of("top")},
		{"it delegates a name", c.Set(ns), of("sub", "top")},
		{"it does so no more", c.Remove(ns), of("sub", "top")},
		{"it leaves", c.Set(at("top", "example.com", "none", 4)), of("sub", "top")},
		{"one of its namespace", c.Set(near), []ctrl.Request{inventory.RequestFor(near)}},
		{"it delegates that", c.Set(ns), append([]ctrl.Request{inventory.RequestFor(near)}, of("top")...)},
		{"it goes from nowhere", c.Remove(at("top", "example.com", "none", 4)), append([]ctrl.Request{inventory.RequestFor(near)}, of("top")...)},
		{"one of the name comes to the servers", c.Set(at("own", "sub.example.com", "shared", 2)), of("own", "sub")},
		{"it goes", c.Remove(at("own", "sub.example.com", "shared", 2)), of("own", "sub")},
	} {
		if diff := cmp.Diff(sorted(step.want), sorted(step.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	queue := workqueue.NewTyped[ctrl.Request]()
	c.SetQueue(queue)
	c.Set(at("above", "example.com", "shared", 1))
	c.Set(at("elsewhere", "example.com", "own", 1))
	c.EnqueueAbove(at("sub", "sub.example.com", "shared", 1))
	if got, _ := queue.Get(); got != of("above")[0] || queue.Len() > 0 {
		t.Errorf("for a zone that appears or goes, %s is looked at, and %d more", got, queue.Len())
	}
	c.EnqueueAbove(at("stranger", "sub.example.com", "own", 1))
	if queue.Len() > 0 {
		t.Error("for a zone elsewhere, others are looked at")
	}
}

// kube-apiserver reports the end of an object as it was stored last: with the finalizer whose removal ended it.
func TestTheEndOfWhatWasReleasedIsNoNews(t *testing.T) {
	zone := testZone("main", "example.com", map[string]string{"in": "yes"})
	record := func(name string, deleted bool) *v1beta1.ARecord {
		r := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{
			Namespace: "dns", Name: name, UID: types.UID(name), Generation: 1, Finalizers: []string{v1beta1.Finalizer}, Labels: map[string]string{"in": "yes"},
		}}
		r.Status.ZoneRef = &v1beta1.ZoneReference{Name: "main"}
		if deleted {
			r.DeletionTimestamp = new(metav1.Now())
		}
		return r
	}
	key := membership.KeyOfZone(zone)
	for _, c := range []struct {
		name string
		note func(*Cache)
		want []ctrl.Request
	}{
		{"released", func(c *Cache) { c.NoteReleased(key, []source.Object{record("www", true)}) }, nil},
		{"not released", func(*Cache) {}, requests("main")},
		{"another one of that name was", func(c *Cache) {
			other := record("www", true)
			other.UID = "other"
			c.NoteReleased(key, []source.Object{other})
		}, requests("main")},
		{"another zone has", func(c *Cache) {
			c.Set(testZone("sub", "sub.example.com", nil))
			c.NoteReleased(membership.ZoneKey{Namespace: "dns", Name: "sub"}, []source.Object{record("www", true)})
		}, requests("main")},
		{"it was not being deleted then", func(c *Cache) { c.NoteReleased(key, []source.Object{record("www", false)}) }, requests("main")},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := New()
			cache.Set(zone)
			cache.Set(record("www", false))
			if got := cache.Set(record("www", true)); len(got) != 1 {
				t.Fatalf("the deletion asks for %v", got)
			}
			cache.Take(key, false)
			c.note(cache)
			if diff := cmp.Diff(c.want, cache.Remove(record("www", true))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := cache.Set(record("www", false)); len(again) != 1 {
				t.Errorf("a new one of that name asks for %v", again)
			}
			if len(cache.released[key]) != 0 {
				t.Errorf("%v is kept", cache.released)
			}
		})
	}
	cache := New()
	cache.Set(zone)
	cache.Set(record("www", true))
	cache.NoteReleased(key, []source.Object{record("www", true)})
	cache.Remove(zone)
	cache.NoteReleased(key, []source.Object{record("www", true)})
	if len(cache.released) != 0 {
		t.Errorf("%v is kept of a zone that is gone", cache.released)
	}
}

// A change of a zone with any number of records waits for others after each step; who takes the objects of that zone waits for the last one.
func TestOthersComeBetweenSteps(t *testing.T) {
	c := New()
	const objects = 500
	for i := range objects {
		c.Set(&v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: fmt.Sprint("r", i)}})
	}
	zone := testZone("main", "example.com", nil)
	zone.Spec.RecordsFrom = []v1beta1.RecordSource{{}}
	key := membership.KeyOfZone(zone)
	var others atomic.Int32
	steps := 0
	var taken, listed []membership.Member
	var wg sync.WaitGroup
	c.mu.Lock()
	c.follow(func(yield func([]membership.Affected) bool) {
		for affected := range c.Members.ZoneSteps(zone) {
			if steps++; steps == 1 {
				wg.Go(func() { taken, _ = c.Take(key, true) })
				wg.Go(func() { listed = c.Objects(key) })
				wg.Go(func() {
					for !c.Members.IsSettled(key) {
						c.OldestChange()
						others.Add(1)
					}
				})
			}
			time.Sleep(2 * time.Millisecond) // Who waits longer than one has the lock next.
			yield(affected)
		}
	})
	between := others.Load()
	c.mu.Unlock()
	wg.Wait()
	if steps < 5 || between == 0 {
		t.Errorf("others had the lock %d times in %d steps", between, steps)
	}
	if len(taken) != objects || len(listed) != objects {
		t.Errorf("%d objects were taken and %d listed, want %d", len(taken), len(listed), objects)
	}
}

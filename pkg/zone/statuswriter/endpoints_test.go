package statuswriter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// zoneNamed is a DNSZone with a DNS name.
func zoneNamed(name string) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Generation: 1}}
	z.Spec.ZoneName = name + ".com"
	z.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns.example.org.", AdminEmail: "hostmaster.example.org."}
	return z
}

func zoneKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: name}
}

// endpointsIn is a DNSEndpoint with an address for each name.
func endpointsIn(generation int64, names ...string) *v1alpha1.DNSEndpoint {
	o := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "app", Generation: generation}}
	for _, name := range names {
		o.Spec.Endpoints = append(o.Spec.Endpoints, &v1alpha1.Endpoint{DNSName: name, RecordType: "A", Targets: []string{"192.0.2.1"}})
	}
	return o
}

// passOver is a pass over a zone that holds what the object declares for it.
func passOver(t *testing.T, zone *v1beta1.DNSZone, o *v1alpha1.DNSEndpoint) SyncCompleted {
	t.Helper()
	desired, err := source.Build(zone, []source.Object{o}, source.Options{Owns: func(_ metav1.Object, name string) bool {
		return rrset.IsSubdomain(name+".", zone.Spec.ZoneName+".")
	}})
	if err != nil {
		t.Fatal(err)
	}
	return SyncCompleted{Zone: zone, Desired: desired, Programmed: status.True(status.ReconcileSucceeded, "")}
}

// collect is what a writer knows about an object after some passes.
func collect(t *testing.T, o *v1alpha1.DNSEndpoint, where Placement, passes ...SyncCompleted) (*Writer, *endpointOutcome) {
	t.Helper()
	cache := shelve(o)
	cache.put(zoneNamed("a"))
	w := NewWriter(Options{Client: cache, Place: func(source.Object) Placement { return where }})
	for _, e := range passes {
		w.OnSyncCompleted(e)
	}
	n, err := w.gatherEndpoint(t.Context(), source.KeyOf(o), o)
	if err != nil {
		t.Fatal(err)
	}
	return w, n
}

func judged(generation int64, o *v1alpha1.DNSEndpoint, zones ...string) *v1alpha1.DNSEndpoint {
	o.Status.ObservedGeneration = generation
	status.Set(&o.Status.Conditions, status.Accepted, status.True(status.Accepted, ""), generation, o.CreationTimestamp.Time)
	for _, z := range zones {
		o.Status.Zones = append(o.Status.Zones, v1alpha1.EndpointZone{Namespace: "team", Name: z, ZoneName: z + ".com", RRsets: []string{"www." + z + ".com./A"}})
	}
	return o
}

func TestEndpointWaitsForItsZones(t *testing.T) {
	both := Placement{Taken: []types.NamespacedName{zoneKey("a"), zoneKey("b")}}
	a, b := zoneNamed("a"), zoneNamed("b")
	spec := func(generation int64) *v1alpha1.DNSEndpoint { return endpointsIn(generation, "www.a.com", "www.b.com") }
	broken := SyncCompleted{Zone: b, Programmed: status.False(status.DuplicateZone, "older")}
	cases := map[string]struct {
		object *v1alpha1.DNSEndpoint
		passes []SyncCompleted
		waits  bool
	}{
		"a new one is told that it was seen":      {spec(1), nil, false},
		"after a start nobody has told":           {judged(1, spec(1)), nil, true},
		"after a start one zone has told":         {judged(1, spec(1)), []SyncCompleted{passOver(t, a, spec(1))}, true},
		"all have told":                           {judged(1, spec(1)), []SyncCompleted{passOver(t, a, spec(1)), passOver(t, b, spec(1))}, false},
		"one tells of the generation before":      {judged(1, spec(2)), []SyncCompleted{passOver(t, a, spec(2)), passOver(t, b, spec(1))}, true},
		"a zone is wrong as a whole":              {judged(1, spec(2)), []SyncCompleted{passOver(t, a, spec(2)), broken}, false},
		"a zone is wrong that was right before":   {judged(2, spec(2)), []SyncCompleted{passOver(t, a, spec(2)), broken}, true},
		"a zone has not seen the new object yet":  {judged(1, spec(1)), []SyncCompleted{passOver(t, a, spec(1)), passOver(t, b, endpointsIn(1))}, true},
		"a zone tells of an object of that name":  {judged(1, spec(1)), []SyncCompleted{passOver(t, a, spec(1)), passOver(t, b, other(spec(1)))}, true},
		"the zone it was in is no more asked for": {judged(1, spec(1), "c"), []SyncCompleted{passOver(t, a, spec(1)), passOver(t, b, spec(1))}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, n := collect(t, c.object, both, c.passes...); n.mustWait() != c.waits {
				t.Errorf("waits: %t", n.mustWait())
			}
		})
	}
}

func other(o *v1alpha1.DNSEndpoint) *v1alpha1.DNSEndpoint {
	o.UID = "another"
	return o
}

func TestEndpointIsSummedUpOverItsZones(t *testing.T) {
	o := endpointsIn(1, "www.a.com", "www.b.com", "www.c.com")
	a, b := passOver(t, zoneNamed("a"), o), passOver(t, zoneNamed("b"), o)
	b.Unprogrammed = map[rrset.Key]status.Verdict{{Name: "www.b.com.", Type: dns.TypeA}: status.False(status.ReconcileFailed, "dns-0: REFUSED")}
	_, n := collect(t, o, Placement{Taken: []types.NamespacedName{zoneKey("a"), zoneKey("b")}, Unplaced: []int{2}}, a, b)
	got := status.Endpoint(o.Status, n.facts, o.CreationTimestamp.Time)
	messages := map[string]string{}
	for _, c := range got.Conditions {
		messages[c.Type] = string(c.Status) + " " + c.Reason + " " + c.Message
	}
	want := map[string]string{
		"Accepted": "False NoMatchingZone 2 of 3 endpoints are accepted; spec.endpoints[2] www.c.com/A: no DNSZone of this namespace contains this name, " +
			"and no other one admits it by its annotation bindy.firestoned.io/allow-endpoint-namespaces",
		"Programmed": "False ReconcileFailed 1 of 3 endpoints are programmed; spec.endpoints[1] www.b.com./A: dns-0: REFUSED",
	}
	want["Ready"] = want["Programmed"]
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Error(diff)
	}
	if len(got.Zones) != 1 || got.Zones[0].Name != "a" || !cmp.Equal(got.Zones[0].RRsets, []string{"www.a.com./A"}) {
		t.Errorf("zones are %+v", got.Zones)
	}
}

// An object goes only after every zone that may hold its data has let go of it.
func TestEndpointIsHeldUntilAllZonesHaveLetGo(t *testing.T) {
	now := metav1.Now()
	o := judged(1, endpointsIn(1, "www.a.com", "www.b.com"), "a")
	o.DeletionTimestamp = &now
	leaving := Placement{Held: []types.NamespacedName{zoneKey("a"), zoneKey("b")}}
	w, n := collect(t, o, leaving)
	step := func(what string, held bool) {
		t.Helper()
		n, err := w.gatherEndpoint(t.Context(), source.KeyOf(o), o)
		if err != nil || n.isHeld() != held {
			t.Errorf("%s: held %t, want %t (%v)", what, n.isHeld(), held, err)
		}
	}
	if !n.isHeld() {
		t.Error("nobody has let go, and it is not held")
	}
	w.Release(zoneKey("a"), o)
	step("one of two zones has let go", true)
	w.Release(zoneKey("b"), o)
	step("both have let go", false)
	back := passOver(t, zoneNamed("a"), endpointsIn(2, "www.a.com"))
	back.Touched = []source.ObjectKey{source.KeyOf(o)}
	w.OnSyncCompleted(back)
	step("one has taken it up again", true)
}

// A zone that is gone holds nothing.
func TestEndpointLeavesAZoneThatIsGone(t *testing.T) {
	o := judged(1, endpointsIn(1), "a", "b")
	_, n := collect(t, o, Placement{})
	for _, z := range o.Status.Zones {
		if left := n.facts.Left(z); left != (z.Name == "b") {
			t.Errorf("zone %s holds nothing: %t", z.Name, left)
		}
	}
}

// Former names are noted until no zone has anything to do any more, whether or not what it still had to do concerned the
// object: that it is done is no change of the object.
func TestFormerNamesAreLookedAtAgainWhenTheZoneIsDone(t *testing.T) {
	endpoints := endpointsIn(1, "www.a.com")
	record := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "app", Generation: 1}}
	record.Spec.Name, record.Spec.IPv4Addresses = "www", []string{"192.0.2.1"}
	for _, o := range []source.Object{endpoints, record} {
		o.SetAnnotations(map[string]string{v1beta1.FormerNamesAnnotation: "old.a.com./A"})
		zone := zoneNamed("a")
		desired, err := source.Build(zone, []source.Object{o}, source.Options{Owns: func(metav1.Object, string) bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		pass := SyncCompleted{Zone: zone, Desired: desired, Programmed: status.True(status.ReconcileSucceeded, ""), Pending: 1}
		w := NewWriter(Options{Client: shelve(o), Place: func(source.Object) Placement { return Placement{Taken: []types.NamespacedName{zoneKey("a")}} }})
		key := source.KeyOf(o)
		posted := func(pass SyncCompleted) bool {
			w.OnSyncCompleted(pass)
			_, posted := w.queue.takeTask(key)
			return posted
		}
		posted(pass)
		n, err := w.gatherEndpoint(t.Context(), key, endpoints)
		if err != nil {
			t.Fatal(err)
		}
		endpoints.Status = status.Endpoint(endpoints.Status, n.facts, pass.At)
		for _, d := range desired.Of(source.KeyOf(record)) {
			record.Status = status.Record(record.Status, recordFacts(pass, d), pass.At)
		}
		if _, err := w.writeObject(t.Context(), key, statusTask{zone: zoneKey("a")}); err != nil {
			t.Fatal(err)
		}
		if posted(pass) {
			t.Errorf("%s is looked at although the outcome is the same", key.Kind)
		}
		pass.Pending = 0
		if !posted(pass) {
			t.Errorf("%s is not looked at when the zone has nothing left to do", key.Kind)
		}
	}
}

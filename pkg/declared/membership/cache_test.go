package membership

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// cluster is what Members are compared with: all objects, and every question answered by a look at all of them.
type cluster struct {
	zones   map[ZoneKey]*v1beta1.DNSZone
	objects map[source.ObjectKey]source.Object
	labels  namespaceLabels
	serial  int
}

type place struct {
	zone   ZoneKey
	object source.ObjectKey
}

func (c *cluster) roles() map[place]Role {
	all := map[place]Role{}
	zones := slices.Collect(maps.Values(c.zones))
	for key, o := range c.objects {
		for zone, role := range c.rolesOf(o, zones) {
			all[place{zone, key}] = role
		}
	}
	return all
}

func (c *cluster) rolesOf(o source.Object, zones []*v1beta1.DNSZone) map[ZoneKey]Role {
	roles := map[ZoneKey]Role{}
	deleted := o.GetDeletionTimestamp() != nil
	switch o := o.(type) {
	case v1beta1.Record:
		selecting, holder := c.labels.zonesSelecting(zones, o), c.labels.holderOf(zones, o)
		for i, z := range selecting {
			switch {
			case deleted && i == 0 && holder == nil && hasFinalizer(o):
				roles[KeyOfZone(z)] = Leaving
			case deleted:
			case i > 0 && z.Namespace == o.GetNamespace():
				roles[KeyOfZone(z)] = AlsoSelected
			case i > 0:
			case holder == nil || holder == z:
				roles[KeyOfZone(z)] = Selected
			default:
				roles[KeyOfZone(z)] = Contested
			}
		}
		if holder != nil && roles[KeyOfZone(holder)] != Selected {
			roles[KeyOfZone(holder)] = Leaving
		}
	case *v1alpha1.DNSEndpoint:
		var left []*v1beta1.DNSZone
		for _, ref := range o.Status.Zones {
			left = append(left, c.zones[ZoneKey{Namespace: ref.Namespace, Name: ref.Name}])
		}
		if hasFinalizer(o) {
			for name := range source.FormerNames(o) {
				left = append(left, zoneOfEndpoint(zones, o, name))
			}
		}
		for _, e := range o.Spec.Endpoints {
			z := zoneOfEndpoint(zones, o, e.DNSName)
			switch {
			case z != nil && !deleted:
				roles[KeyOfZone(z)] = Selected
			case hasFinalizer(o):
				left = append(left, z)
			}
		}
		for _, z := range left {
			if z != nil && roles[KeyOfZone(z)] == NoRole {
				roles[KeyOfZone(z)] = Leaving
			}
		}
	}
	return roles
}

func (m *Cache) all() map[place]Role {
	all := map[place]Role{}
	for zone := range m.zones {
		for _, member := range m.Members(zone) {
			all[place{zone, member.Key}] = member.Role
		}
	}
	return all
}

var (
	randomNamespaces = []string{"a", "b"}
	randomZoneNames  = []string{"example.com", "sub.example.com", "deep.sub.example.com", "example.org"}
	randomLabels     = []map[string]string{nil, {"zone": "x"}, {"zone": "y"}, {"zone": "x", "tier": "web"}}
	randomSelectors  = []metav1.LabelSelector{
		{}, {MatchLabels: map[string]string{"zone": "x"}}, {MatchLabels: map[string]string{"zone": "y"}},
		{MatchLabels: map[string]string{"zone": "x", "tier": "web"}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []string{"x", "y"}}}},
	}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func maybe(r *rand.Rand) bool { return r.IntN(3) == 0 }

// meta makes up the metadata of an object; every write of one gives it another generation.
func (c *cluster) meta(r *rand.Rand, name string) metav1.ObjectMeta {
	c.serial++
	o := metav1.ObjectMeta{
		Namespace: pick(r, randomNamespaces), Name: name, Generation: int64(c.serial),
		CreationTimestamp: metav1.NewTime(time.Unix(int64(r.IntN(3)), 0)),
		Labels:            pick(r, randomLabels),
	}
	o.UID = types.UID(fmt.Sprintf("%s/%s/%d", o.Namespace, name, r.IntN(2)))
	return o
}

func (c *cluster) zone(r *rand.Rand) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: c.meta(r, pick(r, []string{"z1", "z2", "z3"}))}
	z.Spec.ZoneName = pick(r, randomZoneNames)
	z.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: pick(r, []string{"", "", "*", "a", "b"})}
	for range r.IntN(3) {
		from := v1beta1.RecordSource{Selector: pick(r, randomSelectors)}
		if r.IntN(2) == 0 {
			from.NamespaceSelector = &metav1.LabelSelector{MatchLabels: pick(r, randomLabels)}
		}
		z.Spec.RecordsFrom = append(z.Spec.RecordsFrom, from)
	}
	return z
}

func (c *cluster) object(r *rand.Rand) source.Object {
	meta := c.meta(r, pick(r, []string{"o1", "o2", "o3"}))
	if maybe(r) {
		meta.Finalizers = []string{v1beta1.Finalizer}
	}
	if maybe(r) {
		now := metav1.Now()
		meta.DeletionTimestamp = &now
	}
	if r.IntN(2) == 0 {
		e := &v1alpha1.DNSEndpoint{ObjectMeta: meta}
		e.Annotations = map[string]string{v1beta1.FormerNamesAnnotation: pick(r, []string{"", "", "old.sub.example.com/A,x.example.net/TXT"}),
			v1beta1.AllowZoneNamespacesAnnotation: pick(r, []string{"", "*", "a", "b"})}
		for range r.IntN(4) {
			e.Spec.Endpoints = append(e.Spec.Endpoints, &v1alpha1.Endpoint{DNSName: pick(r, []string{
				"www.example.com", "sub.example.com", "*.deep.sub.example.com", "example.net", "notexample.com", "www.example.org"})})
		}
		for range r.IntN(2) {
			e.Status.Zones = append(e.Status.Zones, v1alpha1.EndpointZone{Namespace: pick(r, randomNamespaces), Name: pick(r, []string{"z1", "z2", "z9"})})
		}
		return e
	}
	record := pick(r, v1beta1.RecordKinds[:2]).New()
	switch o := record.(type) {
	case *v1beta1.ARecord:
		o.ObjectMeta = meta
	case *v1beta1.AAAARecord:
		o.ObjectMeta = meta
	}
	record.SetAnnotations(map[string]string{v1beta1.ZoneAnnotation: pick(r, append([]string{"", ""}, randomZoneNames...)),
		v1beta1.AllowZoneNamespacesAnnotation: pick(r, []string{"", "*", "a", "b"})})
	if maybe(r) {
		record.GetRecordStatus().ZoneRef = &v1beta1.ZoneReference{Name: pick(r, []string{"z1", "z2", "z9"}), Namespace: pick(r, []string{"", "a", "b"})}
	}
	return record
}

// A change of a zone or a namespace is interrupted by others, and these are.
func TestMembersAreWhatALookAtEverythingSays(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := &cluster{zones: map[ZoneKey]*v1beta1.DNSZone{}, objects: map[source.ObjectKey]source.Object{}, labels: namespaceLabels{}}
		m := NewCache()
		m.perStep = 1
		before, depth := c.roles(), int(seed%2)
		for step := range 60 {
			s := &modelStep{changed: map[source.ObjectKey]bool{}, told: map[place]bool{}}
			c.step(r, m, s, depth)
			after := c.roles()
			if diff := cmp.Diff(after, m.all()); diff != "" {
				t.Fatalf("seed %d, step %d: members differ from a look at everything (-want +got):\n%s", seed, step, diff)
			}
			checkTold(t, fmt.Sprintf("seed %d, step %d", seed, step), before, after, s)
			before = after
		}
		checkEmpties(t, c, m)
	}
}

// modelStep is what changed in a step: the objects that were written, what is told of and how many changes there were.
type modelStep struct {
	changed map[source.ObjectKey]bool
	told    map[place]bool
	changes int
}

func (s *modelStep) tell(affected []Affected) {
	for _, a := range affected {
		if a.By == nil {
			s.told[place{a.Zone, a.Object}] = true
		}
	}
}

// step changes one thing, and others up to a depth while it is under way.
func (c *cluster) step(r *rand.Rand, m *Cache, s *modelStep, depth int) {
	s.changes++
	run := func(steps Steps) {
		for affected := range steps {
			if s.tell(affected); depth > 0 && maybe(r) {
				c.step(r, m, s, depth-1)
			}
		}
	}
	switch r.IntN(8) {
	case 7:
		namespace := pick(r, randomNamespaces)
		if maybe(r) {
			delete(c.labels, namespace)
			run(m.NamespaceRemovalSteps(namespace))
			break
		}
		c.labels[namespace] = pick(r, randomLabels)
		run(m.NamespaceSteps(namespace, c.labels[namespace]))
	case 0, 1:
		z := c.zone(r)
		c.zones[KeyOfZone(z)] = z
		run(m.ZoneSteps(z))
	case 2:
		for key := range c.zones {
			delete(c.zones, key)
			run(m.ZoneRemovalSteps(key))
			break
		}
	case 3:
		for key, o := range c.objects {
			delete(c.objects, key)
			s.tell(m.RemoveObject(o))
			break
		}
	default:
		o := c.object(r)
		c.objects[source.KeyOf(o)] = o
		s.changed[source.KeyOf(o)] = true
		s.tell(m.SetObject(o))
	}
}

func checkTold(t *testing.T, at string, before, after map[place]Role, s *modelStep) {
	t.Helper()
	for p, role := range after {
		if (before[p] != role || s.changed[p.object]) && !s.told[p] {
			t.Fatalf("%s: %s is now %d in %s, was %d, and nobody is told", at, p.object, role, p.zone, before[p])
		}
	}
	placed := map[source.ObjectKey]bool{}
	for p := range after {
		placed[p.object] = true
	}
	for p := range s.told {
		if s.changes == 1 && p.zone.Name == "" && placed[p.object] {
			t.Fatalf("%s: %s is called an orphan and has a zone", at, p.object)
		}
	}
}

// checkEmpties removes everything: nothing may be kept.
func checkEmpties(t *testing.T, c *cluster, m *Cache) {
	t.Helper()
	for _, o := range c.objects {
		m.RemoveObject(o)
	}
	for key := range c.zones {
		m.RemoveZone(key)
	}
	for namespace := range c.labels {
		m.RemoveNamespace(namespace)
	}
	if n := len(m.zones) + len(m.objects) + len(m.byName) + len(m.byOwnName) + len(m.selectors) + len(m.labels) + len(m.claims) + len(m.endpoints) + len(m.perNamespace) +
		len(m.below) + len(m.delegations) + len(m.namespaces) + len(m.offered); n != 0 {
		t.Errorf("%d entries are kept of nothing: %+v", n, m)
	}
}

func TestStatusOfARecordAffectsNothing(t *testing.T) {
	m := NewCache()
	zone := exampleZone()
	m.SetZone(zone)
	record := aRecord(object("www", 1), "www")
	if got := m.SetObject(record); len(got) != 1 || got[0].Zone != KeyOfZone(zone) {
		t.Fatalf("a new record affects %v, want its zone", got)
	}
	told := record.DeepCopy()
	told.Status.PublishedName = "www.example.com"
	told.Status.ZoneRef = &v1beta1.ZoneReference{Name: zone.Name}
	if got := m.SetObject(told); len(got) != 0 {
		t.Errorf("a status affects %v", got)
	}
	if got := m.Member(KeyOfZone(zone), source.KeyOf(record)); got.Object != source.Object(told) || got.Role != Selected {
		t.Errorf("the zone knows %v, want the record with its status", got)
	}
	elsewhere := told.DeepCopy()
	elsewhere.Labels = nil
	elsewhere.Generation++
	want := []Affected{{Zone: KeyOfZone(zone), Object: source.KeyOf(record)}}
	if diff := cmp.Diff(want, m.SetObject(elsewhere)); diff != "" {
		t.Errorf("a record that leaves (-want +got):\n%s", diff)
	}
	if got := m.Member(KeyOfZone(zone), source.KeyOf(record)); got.Role != Leaving {
		t.Errorf("its role is %d, want leaving", got.Role)
	}
}

func TestOrphansAreTold(t *testing.T) {
	m := NewCache()
	zone := exampleZone()
	record := aRecord(object("www", 1), "www")
	orphan := []Affected{{Object: source.KeyOf(record)}}
	if diff := cmp.Diff(orphan, m.SetObject(record)); diff != "" {
		t.Errorf("a record without a zone (-want +got):\n%s", diff)
	}
	beside := Affected{By: zone, Below: "example.com."}
	if diff := cmp.Diff([]Affected{beside, {Zone: KeyOfZone(zone), Object: source.KeyOf(record)}}, m.SetZone(zone)); diff != "" {
		t.Errorf("its zone arrives (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append([]Affected{beside}, orphan...), m.RemoveZone(KeyOfZone(zone))); diff != "" {
		t.Errorf("its zone is gone (-want +got):\n%s", diff)
	}
}

func TestRarestLabelsFindFewZones(t *testing.T) {
	crowd := exampleZone()
	crowd.Namespace = "a"
	crowd.Spec.RecordsFrom[0].Selector = metav1.LabelSelector{MatchLabels: map[string]string{"b": "2"}}
	for name, c := range map[string]struct {
		selector metav1.LabelSelector
		want     []labelKey
	}{
		"everything":     {metav1.LabelSelector{}, []labelKey{{namespace: "a"}}},
		"labels":         {metav1.LabelSelector{MatchLabels: map[string]string{"z": "1", "b": "2"}}, []labelKey{{namespace: "a", label: "z", value: "1"}}},
		"one of several": {randomSelectors[5], []labelKey{{namespace: "a", label: "zone", value: "x"}, {namespace: "a", label: "zone", value: "y"}}},
		"any value":      {randomSelectors[4], []labelKey{{namespace: "a", label: "tier", any: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := NewCache(crowd).rarestLabels("a", &c.selector)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(labelKey{})); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHolderOf(t *testing.T) {
	zone := func(name, dnsName string) *v1beta1.DNSZone {
		z := &v1beta1.DNSZone{}
		selector := metav1.LabelSelector{MatchLabels: map[string]string{"zone": name}}
		z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: selector}}
		z.Name, z.UID, z.Spec.ZoneName = name, types.UID(name), dnsName
		z.CreationTimestamp = metav1.Unix(int64(len(name)), 0) // "inner" is the youngest.
		return z
	}
	zones := []*v1beta1.DNSZone{zone("one", "one.example"), zone("two", "two.example"), zone("inner", "two.example")}
	for name, c := range map[string]struct {
		ref       string
		label     string
		finalizer bool
		stamp     string
		want      string
	}{
		"nothing is known": {},
		"a stamp alone is admission's, nothing is out yet": {stamp: "one.example"},
		"marked, and the status could not be written":      {stamp: "one.example", finalizer: true, want: "one"},
		"of two with the name, the one that selects it":    {label: "inner", stamp: "two.example", finalizer: true, want: "inner"},
		"of two with the name, none selects it any more":   {stamp: "two.example", finalizer: true, want: "two"},
		"the status is what counts":                        {ref: "two", stamp: "one.example", finalizer: true, want: "two"},
		"the metadata is free already, the status is not":  {ref: "two", want: "two"},
		"the zone is gone":                                 {ref: "three", stamp: "one.example", finalizer: true},
	} {
		t.Run(name, func(t *testing.T) {
			record := &v1beta1.ARecord{}
			record.Labels = map[string]string{"zone": c.label}
			if c.ref != "" {
				record.Status.ZoneRef = &v1beta1.ZoneReference{Name: c.ref}
			}
			if c.finalizer {
				record.Finalizers = []string{v1beta1.Finalizer}
			}
			if c.stamp != "" {
				record.Annotations = map[string]string{v1beta1.ZoneAnnotation: c.stamp}
			}
			got := ""
			if z := (namespaceLabels{}).holderOf(zones, record); z != nil {
				got = z.Name
			}
			if got != c.want {
				t.Errorf("the holder is %q, want %q", got, c.want)
			}
		})
	}
}

// A zone looks at no DNSEndpoints of namespaces that it does not admit, and concerns those alone that it may take and that have a name in it.
func TestEndpointsElsewhereAreNotLookedAt(t *testing.T) {
	above := exampleZone()
	above.Namespace, above.Name, above.Spec.ZoneName = "above", "com", "com"
	m := NewCache(above)
	set := func(namespace, name, consents string, dnsNames ...string) {
		e := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if consents != "" {
			e.Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: consents}
		}
		for _, dnsName := range dnsNames {
			e.Spec.Endpoints = append(e.Spec.Endpoints, &v1alpha1.Endpoint{DNSName: dnsName})
		}
		m.SetObject(e)
	}
	set("dns", "elsewhere", "", "www.example.net", "example.org", "com")
	set("dns", "apex", "", "a.example.net", "EXAMPLE.com.")
	set("dns", "below", "above", "*.a.b.example.com")
	set("friend", "below", "dns", "www.example.com")
	set("friend", "silent", "", "www.example.com")
	set("strange", "below", "*", "www.example.com")
	set("above", "taken", "", "www.example.com", "www.com")
	zone := exampleZone()
	zone.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: "friend, other"}
	got := map[string]bool{}
	m.lookAtCandidates(&zoneEntry{DNSZone: zone, key: KeyOfZone(zone), name: "example.com."}, nil, func(o *objectEntry, concerned bool) {
		got[o.GetNamespace()+"/"+o.GetName()] = concerned
	})
	want := map[string]bool{"dns/elsewhere": false, "dns/apex": true, "dns/below": true, "friend/below": true, "friend/silent": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("looked at (-want +got):\n%s", diff)
	}
}

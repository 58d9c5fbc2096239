package evaluate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	framework "k8s.io/client-go/tools/cache/testing"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
	"github.com/lockstep-dns/lockstep/test/fakekube"
)

// chance makes objects up from few names, so that they get into each other's way.
type chance struct {
	*rand.Rand
	informers *informers.Informers
	made      int
}

func oneOf[T any](c *chance, from ...T) T { return from[c.IntN(len(from))] }

func (c *chance) meta(names ...string) metav1.ObjectMeta {
	c.made++
	return metav1.ObjectMeta{
		Namespace: oneOf(c, "a", "b"), Name: oneOf(c, names...), Generation: int64(c.made), UID: types.UID(fmt.Sprint("uid", c.IntN(3))),
		ResourceVersion: fmt.Sprint(c.made), CreationTimestamp: metav1.NewTime(time.Unix(int64(c.IntN(3)), 0)),
		Labels: oneOf(c, nil, map[string]string{"zone": "x"}, map[string]string{"zone": "y"}),
	}
}

func (c *chance) zone() *v1beta1.DNSZone {
	z := fakekube.Zone(oneOf(c, "example.com", "sub.example.com", "example.org"))
	spec, st := z.Spec, z.Status
	*z = v1beta1.DNSZone{ObjectMeta: c.meta("z1", "z2", "z3"), Spec: spec, Status: st}
	z.Labels = nil
	z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": oneOf(c, "x", "y")}}}}
	z.Annotations = map[string]string{
		v1beta1.AllowEndpointNamespacesAnnotation: oneOf(c, "", "*", "a"), v1beta1.PausedAnnotation: oneOf(c, "", "", "true"),
	}
	if c.IntN(8) == 0 {
		z.Spec.SOARecord.AdminEmail = "" // Nobody can serve that.
	}
	return z
}

var madeUpNames = []string{"www", "mail", "*.web", "x.sub", "sub", "@"}

// marks gives an object a past.
func (c *chance) marks(m *metav1.ObjectMeta, formerName string) {
	if c.IntN(3) == 0 {
		m.Finalizers = []string{v1beta1.Finalizer}
	}
	if c.IntN(5) == 0 {
		m.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)}
	}
	if c.IntN(4) == 0 {
		m.Annotations = map[string]string{v1beta1.FormerNamesAnnotation: formerName}
	}
}

func (c *chance) conditions(generation int64) []metav1.Condition {
	if c.IntN(4) > 0 {
		return nil
	}
	return []metav1.Condition{{
		Type: status.Programmed, Status: metav1.ConditionFalse, Reason: oneOf(c, status.ReconcileFailed, status.PrimaryFailed),
		ObservedGeneration: generation - int64(c.IntN(2)),
	}}
}

func (c *chance) record() v1beta1.Record {
	m := c.meta("o1", "o2", "o3", "o4")
	c.marks(&m, oneOf(c, madeUpNames...)+"/A")
	common := v1beta1.RecordCommon{Name: oneOf(c, madeUpNames...)}
	st := v1beta1.RecordStatus{ObservedGeneration: m.Generation - int64(c.IntN(2)), Conditions: c.conditions(m.Generation)}
	if c.IntN(2) == 0 {
		st.Zone = oneOf(c, "example.com", "example.org")
		st.PublishedName = oneOf(c, madeUpNames[:3]...) + "." + st.Zone
		st.ZoneRef = &v1beta1.ZoneReference{Name: oneOf(c, "z1", "z2", "z9")}
	}
	switch c.IntN(4) {
	case 0:
		return &v1beta1.MXRecord{ObjectMeta: m, Status: st, Spec: v1beta1.MXRecordSpec{RecordCommon: common, Priority: 10, MailServer: "mail"}}
	case 1:
		return &v1beta1.CNAMERecord{ObjectMeta: m, Status: st, Spec: v1beta1.CNAMERecordSpec{RecordCommon: common, Target: "www"}}
	}
	return &v1beta1.ARecord{ObjectMeta: m, Status: st, Spec: v1beta1.ARecordSpec{
		RecordCommon: common, IPv4Addresses: []string{oneOf(c, "192.0.2.1", "192.0.2.2", "nonsense")},
	}}
}

func (c *chance) endpoint() *v1alpha1.DNSEndpoint {
	e := &v1alpha1.DNSEndpoint{ObjectMeta: c.meta("o1", "o2")}
	names := []string{"www.example.com", "x.sub.example.com", "mail.example.org", "elsewhere.net", "www.example.org"}
	c.marks(&e.ObjectMeta, oneOf(c, names...)+"/A")
	e.Status.ObservedGeneration, e.Status.Conditions = e.Generation-int64(c.IntN(2)), c.conditions(e.Generation)
	for range c.IntN(4) {
		e.Spec.Endpoints = append(e.Spec.Endpoints, &v1alpha1.Endpoint{
			DNSName: oneOf(c, names...), RecordType: oneOf(c, "A", "TXT", "SPF"), Targets: []string{oneOf(c, "192.0.2.1", "192.0.2.3")},
		})
	}
	for range c.IntN(3) {
		e.Status.Zones = append(e.Status.Zones, v1alpha1.EndpointZone{
			Namespace: oneOf(c, "a", "b"), Name: oneOf(c, "z1", "z2"), ZoneName: "example.com", RRsets: []string{"www.example.com./A"},
		})
	}
	return e
}

// step changes one thing and tells its key.
func (c *chance) step(t *testing.T) desired.Key {
	t.Helper()
	var o metav1.Object
	var kind string
	switch c.IntN(6) {
	case 0:
		o, kind = c.zone(), subject.ZoneKind.Kind
	case 1, 2:
		o, kind = c.endpoint(), subject.EndpointKind.Kind
	default:
		r := c.record()
		o, kind = r, v1beta1.KindOf(r).Kind
	}
	store := c.informers.Indexer(kind)
	err := store.Update(o)
	if c.IntN(5) == 0 {
		err = store.Delete(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return desired.Key{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// emptyInformers are caches that nobody fills but the test.
func emptyInformers(t testing.TB) *informers.Informers {
	t.Helper()
	return informers.NewFrom(func(runtime.Object) cache.ListerWatcher { return framework.NewFakeControllerSource() }, nil, "home")
}

func indexOf(inf *informers.Informers) *desired.Index {
	for _, namespace := range []string{"a", "b"} {
		// Zones of one name and one instance are duplicates.
		_ = inf.Indexer("Bind9Instance").Update(&v1beta1.Bind9Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}, Spec: v1beta1.Bind9InstanceSpec{ClusterRef: "c"},
		})
	}
	return desired.NewIndex(inf, func([]*v1beta1.Bind9Instance, []*corev1.Pod) []observe.Server {
		return []observe.Server{
			{Namespace: "a", Instance: "p", Pod: "p-0", Role: observe.Primary, Addr: netip.MustParseAddrPort("10.0.0.1:53")},
			{Namespace: "a", Instance: "s", Pod: "s-0", Role: observe.Secondary, Addr: netip.MustParseAddrPort("10.0.0.2:53")},
		}
	})
}

var observed = time.Unix(1000, 0)

// contents are what servers hold in turn, for each zone.
func contents(c *chance, zoneName string) observe.Observation {
	soa := rrset.SOA{MName: "ns1." + zoneName, RName: "hostmaster." + zoneName, Serial: uint32(c.IntN(3)), Refresh: 3600, Retry: 600, Expire: 86400, Minimum: 60, TTL: 300}
	var sets []rrset.RRset
	for _, name := range []string{"www.", "mail.", "*.web.", "", "old."} {
		if c.IntN(2) == 0 {
			key := rrset.Key{Name: name + zoneName, Type: 1}
			sets = append(sets, rrset.New(key, 300, oneOf(c, "192.0.2.1", "192.0.2.2")))
		}
		sets = append(sets, rrset.New(rrset.Key{Name: name + zoneName, Type: 15}, 300, "10 mail."+zoneName))
	}
	return observe.Observation{At: observed, Authoritative: true, Serial: soa.Serial, SOA: soa, Mirror: observe.NewMirror(zoneName, soa, sets...)}
}

// statuses judges everything there is by an index.
func statuses(t *testing.T, inf *informers.Informers, x *desired.Index, answers map[string][]observe.Observation) map[desired.Key]*syncv1.SyncStatus {
	t.Helper()
	e := New(x, NewAnswers(), validate.NewValidator(func() *validate.Anchors { return new(validate.Anchors) }, 0))
	all := map[desired.Key]*syncv1.SyncStatus{}
	for _, kind := range inf.TrackedKinds() {
		for _, key := range inf.Keys(kind, "") {
			s, ok := x.Resolve(key)
			if !ok {
				t.Fatalf("%s exists and is not found", key)
			}
			got := e.Status(&s, func(i int) *syncstatus.Evaluation {
				v := s.Zones[i]
				return syncstatus.Evaluate(v.Declared, v.Servers, answers[v.Declared.ZoneName()], observed, syncstatus.History{})
			})
			for i := range got.Status.Conditions {
				got.Status.Conditions[i].LastTransitionTime = metav1.Time{} // Of what nobody serves it is the present.
			}
			all[key] = got
		}
	}
	return all
}

func TestIndexFollowsEventsAsIfMadeFromScratch(t *testing.T) {
	for seed := range uint64(20) {
		c := &chance{Rand: rand.New(rand.NewPCG(seed, 3)), informers: emptyInformers(t)}
		x := indexOf(c.informers)
		phases := map[syncv1.Phase]int{}
		for step := range 80 {
			for range 1 + c.IntN(3) {
				x.Apply(c.step(t))
			}
			answers := map[string][]observe.Observation{}
			for _, name := range []string{"example.com.", "sub.example.com.", "example.org."} {
				answers[name] = []observe.Observation{contents(c, name), contents(c, name)}
			}
			scratch := indexOf(c.informers)
			for _, kind := range c.informers.TrackedKinds() {
				for _, key := range c.informers.Keys(kind, "") {
					scratch.Apply(key)
				}
			}
			want, got := statuses(t, c.informers, scratch, answers), statuses(t, c.informers, x, answers)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, step %d (-from scratch +followed):\n%s", seed, step, diff)
			}
			for _, s := range got {
				phases[s.Status.Phase]++
			}
		}
		if len(phases) < 3 {
			t.Errorf("seed %d: only %v came about", seed, phases)
		}
	}
}

// What a change of one object touches is told: whoever is not told has the same SyncStatus as before.
func TestViewsTellWhomTheyTouch(t *testing.T) {
	for seed := range uint64(20) {
		c := &chance{Rand: rand.New(rand.NewPCG(seed, 4)), informers: emptyInformers(t)}
		x := indexOf(c.informers)
		answers := map[string][]observe.Observation{}
		for _, name := range []string{"example.com.", "sub.example.com.", "example.org."} {
			answers[name] = []observe.Observation{contents(c, name), contents(c, name)}
		}
		before := statuses(t, c.informers, x, answers)
		views := map[desired.ZoneKey]*desired.Zone{}
		for step := range 80 {
			key := c.step(t)
			concerned, everywhere := x.Apply(key)
			concerned = append(concerned, key)
			if everywhere {
				concerned = append(concerned, c.informers.Keys(subject.ZoneKind.Kind, "")...)
			}
			after := statuses(t, c.informers, x, answers)
			touched := map[desired.Key]bool{}
			for _, k := range concerned {
				touched[k] = true
				if k.Kind != subject.ZoneKind.Kind {
					continue
				}
				zone := desired.ZoneKey{Namespace: k.Namespace, Name: k.Name}
				v := x.Zone(zone)
				if v == nil {
					delete(views, zone)
					continue
				}
				for _, o := range touchedBy(views[zone], v, after) {
					touched[o] = true
				}
				views[zone] = v
			}
			for k, s := range after {
				if was := before[k]; was != nil && !touched[k] && was.Status.InSync && cmp.Diff(was, s) != "" {
					t.Fatalf("seed %d, step %d: %s changed, and %s is not told (-was +is):\n%s", seed, step, key, k, cmp.Diff(was, s))
				}
			}
			before = after
		}
	}
}

func touchedBy(was, is *desired.Zone, all map[desired.Key]*syncv1.SyncStatus) []desired.Key {
	var touched []desired.Key
	if was != nil {
		if some, everybody := is.Declared.AffectedObjects(was.Declared); !everybody {
			return append(slices.Collect(some), desired.KeyOf(is.Key))
		}
	}
	for k := range all {
		touched = append(touched, k)
	}
	return touched
}

func TestEndpointsOfOtherNamespacesSeeOnlyTheZone(t *testing.T) {
	inf := emptyInformers(t)
	x := indexOf(inf)
	put := func(kind string, o metav1.Object) {
		t.Helper()
		if err := inf.Indexer(kind).Update(o); err != nil {
			t.Fatal(err)
		}
		x.Apply(desired.Key{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	z := fakekube.Zone("example.com")
	z.Namespace, z.Name, z.UID = "tenant-b", "secret-zone", "z"
	z.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: "tenant-a"}
	put(subject.ZoneKind.Kind, z)
	r := &v1beta1.CNAMERecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-b", Name: "secret-record", UID: "r", CreationTimestamp: metav1.NewTime(time.Unix(1, 0)), Labels: map[string]string{"zone": "example.com"}},
		Spec:       v1beta1.CNAMERecordSpec{RecordCommon: v1beta1.RecordCommon{Name: "www"}, Target: "mail"},
	}
	put("CNAMERecord", r)
	e := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "hidden-endpoint", UID: "e", CreationTimestamp: metav1.Now()}}
	e.Spec.Endpoints = []*v1alpha1.Endpoint{{DNSName: "www.example.com", RecordType: "A", Targets: []string{"192.0.2.1"}}}
	e.Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "tenant-b"} // Both sides have to consent.
	put(subject.EndpointKind.Kind, e)

	all := statuses(t, inf, x, map[string][]observe.Observation{"example.com.": {{At: observed, Rcode: observe.NoReply}, {At: observed, Rcode: observe.NoReply}}})
	s := all[source.KeyOf(e)]
	if s.Zone != "example.com" || s.Status.FailureReason != status.Conflict {
		t.Errorf("zone %q, %s %s, want example.com and Conflict", s.Zone, s.Status.FailureReason, s.Status.FailureMessage)
	}
	reveals(t, s, "secret-", "tenant-b")
	z.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: "*"}
	r2 := r.DeepCopy()
	r2.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour)) // The endpoint is older now, and comes second all the same.
	put("CNAMERecord", r2)
	all = statuses(t, inf, x, map[string][]observe.Observation{"example.com.": {{At: observed, Rcode: observe.NoReply}, {At: observed, Rcode: observe.NoReply}}})
	if s := all[source.KeyOf(r)]; s.Status.FailureReason != "" {
		t.Errorf("%s %s, want none", s.Status.FailureReason, s.Status.FailureMessage)
	}
	reveals(t, all[source.KeyOf(r)], "hidden-", "tenant-a")
	reveals(t, all[desired.KeyOf(desired.ZoneKey{Namespace: z.Namespace, Name: z.Name})], "hidden-", "tenant-a")
}

// reveals checks that a SyncStatus says nothing that it must not.
func reveals(t *testing.T, s *syncv1.SyncStatus, words ...string) {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range words {
		if strings.Contains(string(raw), w) {
			t.Errorf("%s tells of %q: %s", s.Name, w, raw)
		}
	}
}

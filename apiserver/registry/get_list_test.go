package registry

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

func TestGetFollowsTheServers(t *testing.T) {
	w := newWorld(t)
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z, r := w.Declare("www")
	for _, name := range []string{"dnszone.example.test", "arecord.www"} { // asking for the zone waits for its cache
		if got, want := states(w.get(name)), "InSync primary-0=InSync secondary-0=InSync"; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}

	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.Apply(r)
	if got, want := states(w.get("arecord.www")), "Propagating primary-0=Stale secondary-0=Stale"; got != want {
		t.Errorf("after the declaration has changed: %s, want %s", got, want)
	}
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	w.SetProgrammed(z, r)
	w.Apply(r)
	s := w.get("arecord.www")
	if got, want := states(s), "Propagating primary-0=InSync secondary-0=Stale"; got != want {
		t.Errorf("after the primary has changed: %s, want %s", got, want)
	}
	want := []syncv1.RRset{{Name: "www.example.test.", Type: "A", TTL: new(int64(300)), Rdata: []string{"192.0.2.7"}}}
	if diff := cmp.Diff(want, s.Servers[1].Observed); diff != "" {
		t.Errorf("what the secondary serves (-want +got):\n%s", diff)
	}
	if s.CachesExpireAt == nil || time.Until(s.CachesExpireAt.Time) < 240*time.Second {
		t.Errorf("caches expire at %v, want some 300 s from now", s.CachesExpireAt)
	}
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	w.Eventually("the secondary has caught up", func() bool {
		return states(w.get("arecord.www")) == "InSync primary-0=InSync secondary-0=InSync"
	})
	if s := w.get("arecord.www"); s.CachesExpireAt == nil {
		t.Error("it is forgotten when caches expire")
	}

	w.Remove(r)
	_, err := w.verdicts.getVerdict(w.ctx, keyOf("arecord.www"))
	if !apierrors.IsNotFound(err) {
		t.Errorf("getting a deleted record: %v, want not found", err)
	}
}

func TestStatesOfRealServers(t *testing.T) {
	const deadline = time.Second
	w := newWorld(t, func(o *testOptions) { o.Deadline = deadline })
	zones := bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"}
	primary := bind.Start(t, bind.Options{Zones: []bind.Zone{zones}, Transfer: w.Key})
	w.Server("a-primary", v1beta1.RolePrimary, primary.Addr)

	other := zones
	other.Records = "www A 192.0.2.9"
	w.Server("b-divergent", v1beta1.RoleSecondary, bind.Start(t, bind.Options{Zones: []bind.Zone{other}, Transfer: w.Key}).Addr)
	none := zones
	none.Records = ""
	w.Server("c-missing", v1beta1.RoleSecondary, bind.Start(t, bind.Options{Zones: []bind.Zone{none}, Transfer: w.Key}).Addr)
	ahead := other
	ahead.Serial = 11
	w.Server("d-ahead", v1beta1.RoleSecondary, bind.Start(t, bind.Options{Zones: []bind.Zone{ahead}, Transfer: w.Key}).Addr)
	w.Server("e-refused", v1beta1.RoleSecondary, bind.Start(t, bind.Options{Transfer: w.Key}).Addr)
	parent := bind.Zone{Name: "test.", Records: "example NS ns1.example\nns1.example A 192.0.2.1"}
	w.Server("f-lame", v1beta1.RoleSecondary, bind.Start(t, bind.Options{Zones: []bind.Zone{parent}, Transfer: w.Key}).Addr)
	orphan := bind.Start(t, bind.Options{Transfer: w.Key})
	w.Server("g-notloaded", v1beta1.RoleSecondary,
		bind.Start(t, bind.Options{Role: bind.Secondary, Primary: orphan, Zones: []bind.Zone{zones}, NoWait: true}).Addr)
	silent := bind.Start(t, bind.Options{Zones: []bind.Zone{zones}, Transfer: w.Key})
	silent.Pause()
	w.Server("h-unreachable", v1beta1.RoleSecondary, silent.Addr)
	w.Server("i-keyless", v1beta1.RoleSecondary, bind.Start(t, bind.Options{Zones: []bind.Zone{zones}}).Addr)

	z := fakekube.Zone("example.test", "a-primary", "b-divergent", "c-missing", "d-ahead", "e-refused", "f-lame", "g-notloaded", "h-unreachable", "i-keyless")
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.7"))
	want := "OutOfSync a-primary-0=InSync b-divergent-0=Divergent c-missing-0=Missing d-ahead-0=Divergent e-refused-0=Refused " +
		"f-lame-0=Lame g-notloaded-0=NotLoaded h-unreachable-0=Unreachable i-keyless-0=Refused"
	var s *syncv1.SyncStatus
	w.Eventually("named at g has noticed that it has no data, and the partial truth is told in about the deadline", func() bool {
		began := time.Now()
		s = w.get("arecord.www")
		return states(s) == want && time.Since(began) < 2*deadline
	})
	for _, r := range s.Servers {
		t.Logf("%-14s %-11s %s", r.Pod, r.State, r.Message)
		if (r.Message == "") != (r.State == syncv1.StateInSync) {
			t.Errorf("%s is %s and says %q", r.Pod, r.State, r.Message)
		}
	}
}

func TestRecordsThatNoZoneHas(t *testing.T) {
	w := newWorld(t)
	z := fakekube.Zone("example.test")
	r := w.Record(z, "www", "192.0.2.7")
	r.Labels = nil
	w.Apply(r)
	if s := w.get("arecord.www"); s.Status.Phase != syncv1.PhaseFailed || s.Status.FailureReason != "NotSelected" {
		t.Errorf("%s %s, want Failed NotSelected", s.Status.Phase, s.Status.FailureReason)
	}
	r.Labels = map[string]string{"zone": "example.test"}
	w.Apply(r)
	w.Apply(z)
	w.Eventually("the record's zone is seen", func() bool { return w.get("arecord.www").Zone == "example.test" })
	if s := w.get("arecord.www"); s.Status.Phase != syncv1.PhaseUnknown {
		t.Errorf("without servers the phase is %s, want Unknown", s.Status.Phase)
	}
}

func TestListSelectsAndPages(t *testing.T) {
	w := newWorld(t)
	w.Lagging(bind.Zone{Name: "example.test.", Records: "a A 192.0.2.7\nb A 192.0.2.7\nc A 192.0.2.8"}, bind.Zone{Name: "other.test."})
	z, other := fakekube.Zone("example.test", "primary", "secondary"), fakekube.Zone("other.test", "primary", "secondary")
	w.Apply(z)
	w.Apply(other)
	for _, name := range []string{"c", "b", "a"} {
		r := w.Record(z, name, "192.0.2.7")
		r.Labels["app.kubernetes.io/instance"] = "shop"
		w.Apply(r)
	}
	elsewhere := w.Record(z, "x", "192.0.2.7")
	elsewhere.Namespace = "elsewhere"
	w.Apply(elsewhere)
	w.Apply(&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}})
	w.Eventually("everything is in the caches", func() bool { return len(w.list(query{}).Items) == 9 })

	all := []string{"arecord.a", "arecord.b", "arecord.c", "bind9cluster.c", "bind9instance.primary", "bind9instance.secondary", "dnszone.example.test", "dnszone.other.test"}
	selector := func(s string) fields.Selector { return fields.ParseSelectorOrDie(s) }
	for name, tc := range map[string]struct {
		query query
		want  []string
	}{
		"a namespace":     {query{namespace: ns}, all},
		"all namespaces":  {query{}, append(append([]string{}, all...), "arecord.x")},
		"another":         {query{namespace: "elsewhere"}, []string{"arecord.x"}},
		"none":            {query{namespace: "nowhere"}, nil},
		"a label":         {query{namespace: ns, labels: labels.SelectorFromSet(labels.Set{"zone": "example.test"})}, all[:3]},
		"a tool's label":  {query{namespace: ns, labels: labels.SelectorFromSet(labels.Set{"app.kubernetes.io/instance": "shop"})}, nil},
		"a name":          {query{namespace: ns, fields: selector("metadata.name=arecord.b")}, all[1:2]},
		"a name anywhere": {query{fields: selector("metadata.name=arecord.b")}, all[1:2]},
		"a name not here": {query{namespace: "elsewhere", fields: selector("metadata.name=arecord.b")}, nil},
		"no such name":    {query{namespace: ns, fields: selector("metadata.name=nonsense")}, nil},
		"a kind":          {query{namespace: ns, fields: selector("kind=DNSZone")}, all[6:]},
		"a zone":          {query{namespace: ns, fields: selector("zone=example.test")}, []string{"arecord.a", "arecord.b", "arecord.c", "dnszone.example.test"}},
		"out of step":     {query{namespace: ns, fields: selector("status.inSync=false,kind=ARecord")}, []string{"arecord.c"}},
		"no zone":         {query{namespace: ns, fields: selector("zone=")}, all[3:6]},
		"a phase":         {query{namespace: ns, fields: selector("status.phase=OutOfSync")}, []string{"arecord.c", "dnszone.example.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, names(w.list(tc.query))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}

	everywhere := query{fields: selector("metadata.name=arecord.b")}
	everywhere.setDefaults()
	if got := w.verdicts.candidates(&everywhere); len(got) != 1 {
		t.Errorf("for one name in all namespaces %v are asked about", got)
	}

	var paged []string
	q := query{namespace: ns, limit: 3}
	first := ""
	for {
		l := w.list(q)
		if first == "" {
			first = l.ResourceVersion
		}
		if l.ResourceVersion != first {
			t.Errorf("a page's resourceVersion is %s, want the first's %s", l.ResourceVersion, first)
		}
		paged = append(paged, names(l)...)
		if l.Continue == "" {
			break
		}
		q.continueAt = l.Continue
	}
	if diff := cmp.Diff(all, paged); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if _, err := w.tryList(query{continueAt: "nonsense"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a bad continue token: %v, want a bad request", err)
	}
}

// What is deleted while its page is made is missing there, and hides nothing of what follows.
func TestPageThatLosesItsObjects(t *testing.T) {
	// Keys are read when it has been settled what the page is about.
	var once sync.Once
	var w *world
	var a *v1beta1.ARecord
	w = newWorld(t, func(o *testOptions) {
		o.Deadline = time.Minute
		o.readKey = func(context.Context, types.NamespacedName) (*wire.Key, error) {
			once.Do(func() { w.afterDeletion(keyOf("arecord.a"), func() { w.Remove(a) }) })
			return &w.Key, nil
		}
	})
	w.Lagging(bind.Zone{Name: "example.test.", Records: "a A 192.0.2.7\nb A 192.0.2.7"})
	z := fakekube.Zone("example.test", "primary", "secondary")
	a = w.Record(z, "a", "192.0.2.7")
	w.Apply(z)
	w.Apply(a)
	w.Apply(w.Record(z, "b", "192.0.2.7"))
	q := query{namespace: ns, labels: labels.SelectorFromSet(labels.Set{"zone": "example.test"}), limit: 1}
	q.setDefaults()
	w.Eventually("both records are in the caches, and in the zone", func() bool {
		return len(w.verdicts.candidates(&q)) == 2 && len(w.verdicts.index.ZoneNames(keyOf("arecord.a"))) == 1
	})
	if page := w.list(q); len(page.Items) != 1 || page.Items[0].Name != "arecord.b" || page.Continue != "" {
		t.Errorf("the page has %v and goes on at %q, want arecord.b and no more", names(page), page.Continue)
	}
}

func TestLimitIsClamped(t *testing.T) {
	for limit, want := range map[int64]int64{-1: 0, 0: 0, 1: 1, maxLimit: maxLimit, maxLimit + 1: maxLimit, 1<<63 - 1: maxLimit, -1 << 63: 0} {
		q := query{limit: limit}
		if q.setDefaults(); q.limit != want {
			t.Errorf("limit %d becomes %d, want %d", limit, q.limit, want)
		}
	}
}

func TestDuplicateZoneElsewhereIsNotNamed(t *testing.T) {
	w := newWorld(t)
	old := fakekube.Zone("example.test")
	old.Namespace, old.Name, old.Spec.ClusterRef = "secret-tenant", "secret-zone", ""
	old.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	from := []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{}}}
	old.Spec.Bind9InstancesFrom = from
	old.Annotations = map[string]string{v1beta1.AllowInstanceNamespacesAnnotation: ns} // Both sides have to consent.
	young := fakekube.Zone("example.test")
	young.Spec.ClusterRef, young.Spec.Bind9InstancesFrom = "", from
	w.Server("primary", v1beta1.RolePrimary, bind.Reserve(t))
	i := &v1beta1.Bind9Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "primary", Annotations: map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "*"}},
		Spec:       v1beta1.Bind9InstanceSpec{Role: v1beta1.RolePrimary, Replicas: new(int32(1))},
	}
	w.Apply(i)
	w.Apply(old)
	w.Apply(young)
	w.Eventually("the older zone is seen", func() bool { return w.get("dnszone.example.test").Status.FailureReason == "DuplicateZone" })
	if got, want := w.get("dnszone.example.test").Status.FailureMessage, "a DNSZone of another namespace has this name on the same servers and came first: choose other instances with clusterRef or bind9InstancesFrom"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFleetFollowsPods(t *testing.T) {
	w := newWorld(t)
	w.Server("primary", v1beta1.RolePrimary, bind.Reserve(t))
	w.Apply(&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}})
	for _, name := range []string{"bind9instance.primary", "bind9cluster.c"} {
		w.Eventually(name+" is ready", func() bool { return w.get(name).Status.InSync })
	}
	w.Remove(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "primary-0"}})
	w.Eventually("the cluster is not ready", func() bool { return w.get("bind9cluster.c").Status.Phase == syncv1.PhaseOutOfSync })
}

package reconcile

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/notify"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/zonecache"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// platform is a cluster-scoped cluster with one server in memory, and the reconciler that programs it.
type platform struct {
	*testing.T
	*reconciler
	server *fakePrimary
	kube   client.Client
	now    time.Time
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "shared"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "platform"}}
	member := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "server", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9GlobalCluster", Name: "shared", UID: "shared"},
	}}}
	member.Spec.Role = v1beta1.RolePrimary
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "platform", Name: "server-0", Labels: map[string]string{serving.LabelInstance: "server", "app.kubernetes.io/name": "bind9"},
	}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.53"}
	p := &platform{T: t, server: &fakePrimary{}, now: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	p.kube = fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, member, pod).WithStatusSubresource(&v1beta1.DNSZone{}).Build()
	zones := zonecache.New()
	p.reconciler = &reconciler{
		edges: edges{
			kube: p.kube, zones: zones, dns: p.server, sidecar: p.server, updates: p.server, keys: p.server, serials: &notify.Serials{},
			now:           func() time.Time { return p.now },
			isTerminating: func(context.Context, string) (bool, error) { return false, nil },
		},
		writer: statuswriter.NewWriter(statuswriter.Options{Client: p.kube}), metrics: statuswriter.NewMetrics(nil),
		backoff:    workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval),
		recoveries: &recoveries{enqueue: zones.Enqueue},
	}
	return p
}

// declare stores a zone that was created so long ago and whose specification has been changed so many times, and returns it as the caches have it.
func (p *platform) declare(namespace, zoneName, cluster string, age time.Duration, changes int64) *v1beta1.DNSZone {
	p.Helper()
	z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "zone", UID: types.UID(namespace), Generation: 1 + changes, CreationTimestamp: metav1.NewTime(p.now.Add(-age)),
		Finalizers: []string{v1beta1.Finalizer},
	}}
	z.Spec.ZoneName, z.Spec.ClusterRef = zoneName, cluster
	z.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1.example.net.", AdminEmail: "hostmaster.example.net."}
	z.Status.ObservedGeneration = -1 // The definition's default.
	if err := p.kube.Create(p.Context(), z); err != nil {
		p.Fatal(err)
	}
	return p.refresh(z)
}

// refresh has the caches know a zone as it is stored.
func (p *platform) refresh(z *v1beta1.DNSZone) *v1beta1.DNSZone {
	p.Helper()
	stored := &v1beta1.DNSZone{}
	if err := p.kube.Get(p.Context(), client.ObjectKeyFromObject(z), stored); err != nil {
		p.Fatal(err)
	}
	p.zones.Set(stored)
	return stored
}

// move changes the cluster that a zone names.
func (p *platform) move(z *v1beta1.DNSZone, cluster string) *v1beta1.DNSZone {
	p.Helper()
	z = p.refresh(z)
	z.Spec.ClusterRef = cluster
	z.Generation++
	if err := p.kube.Update(p.Context(), z); err != nil {
		p.Fatal(err)
	}
	return p.refresh(z)
}

func (p *platform) pass(z *v1beta1.DNSZone) {
	p.Helper()
	if _, err := p.Reconcile(p.Context(), inventory.RequestFor(z)); err != nil {
		p.Fatal(err)
	}
}

func (p *platform) refusalOf(z *v1beta1.DNSZone) string {
	p.Helper()
	s, err := p.scopeOf(p.Context(), z)
	if err != nil {
		p.Fatal(err)
	}
	return s.refusal.Reason
}

// An old zone comes to servers above one that is served there: it does not take the name below, whatever of the victim's status is
// written already, and neither after a restart.
func TestLateClaimTakesNoName(t *testing.T) {
	for name, victimWritten := range map[string]bool{"a new zone": false, "a served one": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlatform(t)
			late := p.declare("evil", "bank.example", "none", 24*time.Hour, 0)
			p.pass(late)
			victim := p.declare("victim", "shop.bank.example", "shared", time.Hour, 0)
			if victimWritten {
				victim.Status.ObservedGeneration, victim.Status.Arrivals = 1, &v1beta1.ZoneArrivals{Hosts: []v1beta1.ZoneArrival{{Host: "cluster/shared", Since: "2026-01-01T23:00:00.000000Z"}}}
				if err := p.kube.Status().Update(t.Context(), victim); err != nil {
					t.Fatal(err)
				}
				victim = p.refresh(victim)
			}
			late = p.move(late, "shared")
			for _, when := range []string{"at once", "with its own status", "after a restart"} {
				if got := p.refusalOf(victim); got != "" {
					t.Fatalf("%s: the victim's zone is refused: %s", when, got)
				}
				p.pass(late)
				late = p.refresh(late)
				p.states = zoneStates{}
			}
			want := &v1beta1.ZoneArrivals{Hosts: []v1beta1.ZoneArrival{{Host: "cluster/shared", Since: "2026-01-02T00:00:00.000000Z"}}}
			if diff := cmp.Diff(want, late.Status.Arrivals); diff != "" {
				t.Errorf("the late zone's arrivals:\n%s", diff)
			}
		})
	}
}

// createdAfter fails when a zone is created on the server before its status says since when it is there.
type createdAfter struct {
	*fakePrimary
	*platform
	zone    *v1beta1.DNSZone
	arrived []string
}

func (c *createdAfter) CreateZone(ctx context.Context, at bindcar.Address, zone bindcar.CreateZone) error {
	for _, a := range c.refresh(c.zone).Status.Arrivals.Hosts {
		c.arrived = append(c.arrived, a.Host)
	}
	return c.fakePrimary.CreateZone(ctx, at, zone)
}

// What decides who came first is stored before anybody can see that a zone is served.
func TestArrivalIsStoredBeforeTheZoneIsServed(t *testing.T) {
	p := newPlatform(t)
	zone := p.declare("team", "a.example", "none", time.Hour, 0)
	p.pass(zone)
	zone = p.move(zone, "shared")
	sidecar := &createdAfter{fakePrimary: p.server, platform: p, zone: zone}
	p.sidecar = sidecar
	p.pass(zone)
	if diff := cmp.Diff([]string{"cluster/shared"}, sidecar.arrived); diff != "" {
		t.Errorf("when the zone was created on the server its status said:\n%s", diff)
	}
}

// A refused zone has come nowhere. When the one that was first goes, it comes as of then.
func TestRefusedZoneHasNoArrival(t *testing.T) {
	p := newPlatform(t)
	waiting := p.declare("evil", "bank.example", "none", 24*time.Hour, 0)
	p.pass(waiting)
	first := p.declare("victim", "bank.example", "shared", time.Hour, 0)
	waiting = p.move(waiting, "shared")
	p.pass(waiting)
	if waiting = p.refresh(waiting); waiting.Status.Arrivals != nil && len(waiting.Status.Arrivals.Hosts) > 0 || p.refusalOf(waiting) != status.DuplicateZone {
		t.Fatalf("the second zone is refused for %q and has come to %+v", p.refusalOf(waiting), waiting.Status.Arrivals)
	}
	p.zones.Remove(first)
	p.now = p.now.Add(time.Minute)
	p.pass(waiting)
	want := &v1beta1.ZoneArrivals{Hosts: []v1beta1.ZoneArrival{{Host: "cluster/shared", Since: "2026-01-02T00:01:00.000000Z"}}}
	if diff := cmp.Diff(want, p.refresh(waiting).Status.Arrivals); diff != "" {
		t.Error(diff)
	}
}

// A zone that is deleted while it names servers where another DNSZone has its name deletes nothing of that one's, and refuses it nothing.
func TestDeletedZoneTakesNothingOfOthers(t *testing.T) {
	p := newPlatform(t)
	squatter := p.declare("evil", "bank.example", "none", 24*time.Hour, 0)
	squatter.Finalizers = append(squatter.Finalizers, "mallory.example/hold")
	if err := p.kube.Update(t.Context(), squatter); err != nil {
		t.Fatal(err)
	}
	victim := p.declare("victim", "bank.example", "shared", time.Hour, 0)
	p.server.owner, p.server.sets = bindcar.Owner{Name: "victim/zone"}, map[rrset.Key]rrset.RRset{}
	if err := p.kube.Delete(t.Context(), squatter); err != nil {
		t.Fatal(err)
	}
	squatter = p.move(squatter, "shared")
	if got := p.refusalOf(victim); got != "" {
		t.Errorf("the victim's zone is refused: %s", got)
	}
	p.pass(squatter)
	if squatter = p.refresh(squatter); p.server.deleted > 0 || p.server.sets == nil || len(squatter.Finalizers) != 1 {
		t.Errorf("deleted %d times, finalizers %q", p.server.deleted, squatter.Finalizers)
	}
	// Even if it were not refused itself, and had been made again under its name.
	for _, owner := range []bindcar.Owner{p.server.owner, {Name: "evil/zone", UID: "of its successor"}} {
		p.server.owner = owner
		if err := deleteFromHosts(t.Context(), p.hostsOf(mustScope(t, p, squatter), &zoneState{})); err != nil || p.server.sets == nil {
			t.Errorf("a zone deletes the data of another one, %q: %v", owner, err)
		}
	}
}

func mustScope(t *testing.T, p *platform, z *v1beta1.DNSZone) scope {
	t.Helper()
	s, err := p.scopeOf(t.Context(), z)
	if err != nil || len(s.servers) != 1 {
		t.Fatalf("%d servers, %v", len(s.servers), err)
	}
	return s
}

// A pass over a zone below has no part in what is kept of a zone above: that may change at the same time, and nobody would forget it of a zone
// that is gone, or has been made again.
func TestZonesAboveKeepTheirStates(t *testing.T) {
	p := newPlatform(t)
	above := p.declare("above", "example.test", "shared", time.Hour, 0)
	all, err := inventory.Read(t.Context(), p.kube, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.placeAbove(t.Context(), all, []*v1beta1.DNSZone{above}); err != nil {
		t.Fatal(err)
	}
	if _, kept := p.states.Load(membership.KeyOfZone(above)); kept {
		t.Error("a state is kept of a zone of which there was no pass")
	}
	again := above.DeepCopy()
	again.UID = "again"
	state := p.states.stateOf(again)
	if _, err := p.placeAbove(t.Context(), all, []*v1beta1.DNSZone{above}); err != nil {
		t.Fatal(err)
	}
	if p.states.stateOf(again) != state {
		t.Error("a zone that was made again has lost its state to the former one")
	}
}

package engine

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/cache/testing" //nolint:revive // named framework

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/wire"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

const ns = "dns"

// world is an engine between objects that the test declares and servers that the test runs. Only the way in which
// objects reach the caches is replaced; the servers are real.
type world struct {
	testing.TB
	engine *Engine
	ctx    context.Context

	sources map[string]*framework.FakeControllerSource
	mu      *sync.Mutex // of this world and its replicas
	objects map[object]metav1.Object
	addrs   map[string]netip.AddrPort // by pod
	key     wire.Key
}

func newWorld(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	w := &world{
		TB: t, mu: &sync.Mutex{}, sources: map[string]*framework.FakeControllerSource{}, objects: map[object]metav1.Object{},
		addrs: map[string]netip.AddrPort{}, key: bind.NewKey("transfer."),
	}
	w.start(change...)
	return w
}

// replica is another engine between the same objects and servers.
func (w *world) replica(change ...func(*Options)) *world {
	w.Helper()
	r := &world{TB: w.TB, mu: w.mu, sources: w.sources, objects: w.objects, addrs: w.addrs, key: w.key}
	r.start(change...)
	return r
}

// aged makes the engine one that has run for long.
func (w *world) aged() {
	w.engine.memory.mu.Lock()
	defer w.engine.memory.mu.Unlock()
	w.engine.memory.since = 0
}

func (w *world) start(change ...func(*Options)) {
	w.Helper()
	inf, err := newInformers("home", func(resource string) cache.ListerWatcher {
		if w.sources[resource] == nil {
			w.sources[resource] = framework.NewFakeControllerSource()
		}
		return w.sources[resource]
	})
	if err != nil {
		w.Fatal(err)
	}
	inf.live = w.live
	o := Options{MaxAge: 0, Deadline: 2 * time.Second, WatchInterval: 50 * time.Millisecond}
	for _, c := range change {
		c(&o)
	}
	w.engine, err = newEngine(inf, func(context.Context, types.NamespacedName) (*wire.Key, error) { return &w.key, nil }, o)
	if err != nil {
		w.Fatal(err)
	}
	w.engine.index.serversOf = w.servers
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithCancel(context.Background())
	w.Cleanup(cancel)
	go w.engine.Run(w.ctx)
	w.eventually("the caches are filled", inf.HasSynced)
}

func (w *world) live(_ context.Context, kind syncstatus.Kind, namespace, name string) (metav1.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.objects[object{Kind: kind.Kind, Namespace: namespace, Name: name}]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(v1beta1.Resource(kind.Resource), name)
}

// servers gives pods the addresses of the servers that the test runs.
func (w *world) servers(instances []*v1beta1.Bind9Instance, pods []*corev1.Pod) []observe.Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := observe.Servers(instances, pods)
	for i := range all {
		all[i].Addr = w.addrs[all[i].Pod]
	}
	return all
}

func (w *world) resource(o runtime.Object) (kind, resource string) {
	switch o := o.(type) {
	case *v1beta1.DNSZone:
		return "DNSZone", "dnszones"
	case *v1beta1.Bind9Instance:
		return "Bind9Instance", "bind9instances"
	case *v1beta1.Bind9Cluster:
		return "Bind9Cluster", "bind9clusters"
	case *v1beta1.Bind9GlobalCluster:
		return "Bind9GlobalCluster", "bind9globalclusters"
	case *corev1.Pod:
		return "Pod", "pods"
	case *v1alpha1.DNSEndpoint:
		return "DNSEndpoint", "dnsendpoints"
	case v1beta1.Record:
		k := v1beta1.KindOf(o)
		return k.Kind, k.Resource
	}
	w.Fatalf("no resource for %T", o)
	return "", ""
}

// apply stores an object; it takes a copy.
func (w *world) apply(o runtime.Object) {
	w.Helper()
	o = o.DeepCopyObject()
	m, err := meta.Accessor(o)
	if err != nil {
		w.Fatal(err)
	}
	kind, resource := w.resource(o)
	k := object{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()}
	if m.GetUID() == "" {
		m.SetUID(types.UID(kind + "-" + m.GetName()))
	}
	if at := m.GetCreationTimestamp(); at.IsZero() {
		m.SetCreationTimestamp(metav1.Now())
	}
	w.mu.Lock()
	_, exists := w.objects[k]
	w.mu.Unlock()
	if exists {
		w.sources[resource].Modify(o)
	} else {
		w.sources[resource].Add(o)
	}
	w.mu.Lock()
	w.objects[k] = m
	w.mu.Unlock()
}

func (w *world) remove(o runtime.Object) {
	kind, resource := w.resource(o)
	m, _ := meta.Accessor(o)
	k := object{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()}
	w.mu.Lock()
	last := w.objects[k]
	delete(w.objects, k)
	w.mu.Unlock()
	w.sources[resource].Delete(last.(runtime.Object).DeepCopyObject())
}

// server declares an instance with one pod at an address.
func (w *world) server(name string, role v1beta1.ServerRole, addr netip.AddrPort) {
	w.mu.Lock()
	w.addrs[name+"-0"] = addr
	w.mu.Unlock()
	w.apply(&v1beta1.Bind9Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: "c", Role: role, Replicas: new(int32(1))},
	})
	w.apply(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name + "-0", Labels: map[string]string{named.LabelInstance: name, "app.kubernetes.io/name": "bind9"}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: addr.Addr().String(), Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	})
}

// zone is declared as the test servers' zone files have it, and configured on the named instances.
func zone(name string, instances ...string) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Generation: 1},
		Spec: v1beta1.DNSZoneSpec{
			ZoneName: name, ClusterRef: "c", TTL: new(int64(300)),
			SOARecord: v1beta1.SOARecord{
				PrimaryNS: "ns1." + name + ".", AdminEmail: "hostmaster." + name + ".", Refresh: 3600, Retry: 600, Expire: 86400, NegativeTTL: new(int64(60)),
			},
			NameServers: []v1beta1.NameServer{{Hostname: "ns1." + name + ".", IPv4Address: "192.0.2.1"}},
			RecordsFrom: []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": name}}}},
		},
		Status: v1beta1.DNSZoneStatus{ObservedGeneration: 1},
	}
	for _, i := range instances {
		z.Status.Bind9Instances = append(z.Status.Bind9Instances, v1beta1.ZoneInstance{Namespace: ns, Name: i, Status: v1beta1.ZoneConfigured})
	}
	return z
}

// record declares an address and says that it was programmed.
func (w *world) record(z *v1beta1.DNSZone, name string, addresses ...string) *v1beta1.ARecord {
	w.Helper()
	r := &v1beta1.ARecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("ARecord-" + name), Generation: 1, Labels: map[string]string{"zone": z.Spec.ZoneName}},
		Spec:       v1beta1.ARecordSpec{RecordCommon: v1beta1.RecordCommon{Name: name}, IPv4Addresses: addresses},
	}
	w.programmed(z, r)
	return r
}

func (w *world) programmed(z *v1beta1.DNSZone, r *v1beta1.ARecord) {
	w.Helper()
	desired, err := source.Build(z, []source.Object{r}, source.Options{})
	if err != nil {
		w.Fatal(err)
	}
	d, _ := desired.Declarations.Get(source.ID{ObjectKey: source.KeyOf(r)})
	r.Status = v1beta1.RecordStatus{
		ObservedGeneration: r.Generation, RecordHash: source.Hash(d), PublishedName: r.Spec.Name + "." + z.Spec.ZoneName, Zone: z.Spec.ZoneName,
	}
}

// update changes a zone on a server by RFC 2136: the RRset of an owner and type is replaced by the lines.
func update(t testing.TB, s *bind.Server, zone, owner string, lines ...string) {
	t.Helper()
	m := new(dns.Msg).SetUpdate(zone)
	m.RemoveRRset([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeA, Class: dns.ClassINET}}})
	for _, l := range lines {
		rr, err := dns.NewRR(owner + " 300 A " + l)
		if err != nil {
			t.Fatal(err)
		}
		m.Insert([]dns.RR{rr})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := wire.Dial(ctx, s.Addr, &s.Update)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test
	if _, err := conn.Exchange(ctx, m); err != nil {
		t.Fatalf("updating %s: %v", owner, err)
	}
}

func (w *world) get(name string) *syncv1.SyncStatus {
	w.Helper()
	kind, of, ok := syncstatus.ParseName(name)
	if !ok {
		w.Fatalf("%q names nothing", name)
	}
	s, err := w.engine.Get(w.ctx, kind, ns, of)
	if err != nil {
		w.Fatalf("getting %s: %v", name, err)
	}
	return s
}

func (w *world) list(q Query) *syncv1.SyncStatusList {
	w.Helper()
	l, err := w.engine.List(w.ctx, q)
	if err != nil {
		w.Fatalf("listing: %v", err)
	}
	return l
}

func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	for until := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			w.Fatalf("never: %s", what)
		}
	}
}

func states(s *syncv1.SyncStatus) string {
	out := string(s.Status.Phase)
	for _, r := range s.Servers {
		out += fmt.Sprintf(" %s=%s", r.Pod, r.State)
	}
	return out
}

func names(l *syncv1.SyncStatusList) []string {
	var out []string
	for _, s := range l.Items {
		out = append(out, s.Name)
	}
	return out
}

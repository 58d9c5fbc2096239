// Package fakekube stands in for kube-apiserver in tests of the aggregated API server: it feeds the objects that a test
// declares to the real caches. The DNS servers are real (package test/named).
package fakekube

import (
	"cmp"
	"context"
	"net/netip"
	"reflect"
	"strconv"
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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	framework "k8s.io/client-go/tools/cache/testing"

	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// Namespace is where tests declare objects, unless they say otherwise.
const Namespace = "dns"

// Cluster holds the objects that a test declares.
type Cluster struct {
	testing.TB
	// Key is the transfer key of all servers.
	Key wire.Key

	mu      sync.Mutex
	live    informers.LiveReader
	list    informers.LiveLister
	sources map[string]*framework.FakeControllerSource // by kind
	objects map[source.ObjectKey]metav1.Object
	addrs   map[string]netip.AddrPort // by pod
	byQuery map[string]bool           // the pods whose servers are read by query
}

// New returns a Cluster without objects.
func New(t testing.TB) *Cluster {
	c := &Cluster{
		TB: t, sources: map[string]*framework.FakeControllerSource{}, objects: map[source.ObjectKey]metav1.Object{},
		addrs: map[string]netip.AddrPort{}, byQuery: map[string]bool{}, Key: bind.NewKey("transfer."),
	}
	c.live, c.list = c.ReadLive, c.ReadList
	return c
}

// NewInformers returns caches of the objects; several replicas can have some.
func (c *Cluster) NewInformers() *informers.Informers {
	c.Helper()
	live := func(ctx context.Context, kind subject.Kind, namespace, name string) (metav1.Object, error) {
		c.mu.Lock()
		live := c.live
		c.mu.Unlock()
		return live(ctx, kind, namespace, name)
	}
	inf := informers.NewFrom(func(example runtime.Object) cache.ListerWatcher {
		kind := kindOf(example)
		if c.sources[kind] == nil {
			c.sources[kind] = framework.NewFakeControllerSource()
		}
		return copies{c.sources[kind]}
	}, live, "home")
	inf.ListLive(func(ctx context.Context, kind subject.Kind, namespace string) ([]metav1.Object, string, error) {
		c.mu.Lock()
		list := c.list
		c.mu.Unlock()
		return list(ctx, kind, namespace)
	})
	return inf
}

// copies gives each watcher an object of its own, as decoding does. Caches change what they receive; a FakeControllerSource copies
// what it lists, but sends one object to all watchers.
type copies struct {
	*framework.FakeControllerSource
}

// Watch implements cache.ListerWatcher.
func (c copies) Watch(o metav1.ListOptions) (watch.Interface, error) {
	w, err := c.FakeControllerSource.Watch(o)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		e.Object = e.Object.DeepCopyObject()
		return e, true
	}), nil
}

// ReadList returns the objects of a kind in a namespace as they were declared last.
func (c *Cluster) ReadList(_ context.Context, kind subject.Kind, namespace string) (all []metav1.Object, resourceVersion string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := 0
	for key, o := range c.objects {
		if version, _ := strconv.Atoi(o.GetResourceVersion()); key.Kind == kind.Kind && key.Namespace == namespace {
			all, newest = append(all, o), max(newest, version)
		}
	}
	return all, strconv.Itoa(newest), nil
}

// SetLiveLister replaces ReadList.
func (c *Cluster) SetLiveLister(list informers.LiveLister) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = list
}

// ReadLive returns an object as it was declared last.
func (c *Cluster) ReadLive(_ context.Context, kind subject.Kind, namespace, name string) (metav1.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.objects[source.ObjectKey{Kind: kind.Kind, Namespace: namespace, Name: name}]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(v1beta1.Resource(kind.Resource), name)
}

// SetLiveReader replaces ReadLive.
func (c *Cluster) SetLiveReader(live informers.LiveReader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = live
}

// Locate makes an object be found in another namespace by ReadLive, as a cluster-scoped one is.
func (c *Cluster) Locate(key source.ObjectKey, namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	located := c.objects[key].(runtime.Object).DeepCopyObject().(metav1.Object)
	located.SetNamespace(namespace)
	key.Namespace = namespace
	c.objects[key] = located
}

// ReadKey reads the transfer key, whatever the Secret.
func (c *Cluster) ReadKey(context.Context, types.NamespacedName) (*wire.Key, error) {
	return &c.Key, nil
}

// FindServers returns the servers of instances, with the addresses of those that the test runs.
func (c *Cluster) FindServers(instances []*v1beta1.Bind9Instance, pods []*corev1.Pod) []observe.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := serving.Servers(instances, pods)
	for i := range all {
		if all[i].Addr = c.addrs[all[i].Pod]; c.byQuery[all[i].Pod] {
			all[i].ReadBy = v1beta1.ReadByQuery
		}
	}
	return all
}

// kindOf returns the name of an object's Go type, which is that of its kind.
func kindOf(o runtime.Object) string { return reflect.TypeOf(o).Elem().Name() }

// Apply stores a copy of an object.
func (c *Cluster) Apply(o runtime.Object) {
	c.Helper()
	o = o.DeepCopyObject()
	m, err := meta.Accessor(o)
	if err != nil {
		c.Fatal(err)
	}
	kind := kindOf(o)
	k := source.ObjectKey{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()}
	if m.GetUID() == "" {
		m.SetUID(types.UID(kind + "-" + m.GetName()))
	}
	if at := m.GetCreationTimestamp(); at.IsZero() {
		m.SetCreationTimestamp(metav1.Now())
	}
	c.mu.Lock()
	_, exists := c.objects[k]
	c.mu.Unlock()
	if exists {
		c.sources[kind].Modify(o)
	} else {
		c.sources[kind].Add(o)
	}
	c.mu.Lock()
	c.objects[k] = m
	c.mu.Unlock()
}

// Remove deletes an object.
func (c *Cluster) Remove(o runtime.Object) {
	kind := kindOf(o)
	m, _ := meta.Accessor(o)
	k := source.ObjectKey{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()}
	c.mu.Lock()
	last := c.objects[k]
	delete(c.objects, k)
	c.mu.Unlock()
	c.sources[kind].Delete(last.(runtime.Object).DeepCopyObject())
}

// Server declares an instance with one pod at an address.
func (c *Cluster) Server(name string, role v1beta1.ServerRole, addr netip.AddrPort) {
	c.ServerIn(Namespace, name, role, addr)
}

// ServerIn is Server for one of a namespace. Names are unique in all namespaces.
func (c *Cluster) ServerIn(namespace, name string, role v1beta1.ServerRole, addr netip.AddrPort) {
	c.mu.Lock()
	c.addrs[name+"-0"] = addr
	c.mu.Unlock()
	c.Apply(&v1beta1.Bind9Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: "c", Role: role, Replicas: new(int32(1))},
	})
	c.Apply(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name + "-0", Labels: map[string]string{serving.LabelInstance: name, "app.kubernetes.io/name": "bind9"},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: addr.Addr().String(), Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	})
}

// ServerByQuery is Server for one that is read by query.
func (c *Cluster) ServerByQuery(name string, role v1beta1.ServerRole, addr netip.AddrPort) {
	c.mu.Lock()
	c.byQuery[name+"-0"] = true
	c.mu.Unlock()
	c.Server(name, role, addr)
}

// Lagging starts a primary and a secondary that gets no NOTIFY, so that it stays behind until it is refreshed.
func (c *Cluster) Lagging(zones ...bind.Zone) (primary, secondary *bind.Server) {
	c.Helper()
	primary = bind.Start(c.TB, bind.Options{Zones: zones, Transfer: c.Key})
	secondary = bind.Start(c.TB, bind.Options{Role: bind.Secondary, Primary: primary, Zones: zones})
	c.Server("primary", v1beta1.RolePrimary, primary.Addr)
	c.Server("secondary", v1beta1.RoleSecondary, secondary.Addr)
	return primary, secondary
}

// Zone is declared as the test servers' zone files have it, and configured on the named instances.
func Zone(name string, instances ...string) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Generation: 1},
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
		z.Status.Bind9Instances = append(z.Status.Bind9Instances, v1beta1.ZoneInstance{Namespace: Namespace, Name: i, Status: v1beta1.ZoneConfigured})
	}
	return z
}

// Record returns a programmed record with addresses; Apply stores it.
func (c *Cluster) Record(z *v1beta1.DNSZone, name string, addresses ...string) *v1beta1.ARecord {
	c.Helper()
	r := &v1beta1.ARecord{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: name, UID: types.UID("ARecord-" + name), Generation: 1, Labels: map[string]string{"zone": z.Spec.ZoneName},
		},
		Spec: v1beta1.ARecordSpec{RecordCommon: v1beta1.RecordCommon{Name: name}, IPv4Addresses: addresses},
	}
	c.SetProgrammed(z, r)
	return r
}

// Declare applies the zone example.test on the servers of Lagging, and ARecords in it with the address 192.0.2.7. It returns the zone and the
// first of them.
func (c *Cluster) Declare(names ...string) (z *v1beta1.DNSZone, first *v1beta1.ARecord) {
	c.Helper()
	z = Zone("example.test", "primary", "secondary")
	c.Apply(z)
	for _, name := range names {
		r := c.Record(z, name, "192.0.2.7")
		c.Apply(r)
		first = cmp.Or(first, r)
	}
	return z, first
}

// SetProgrammed sets the status that a record has once its data is on the primaries.
func (c *Cluster) SetProgrammed(z *v1beta1.DNSZone, r *v1beta1.ARecord) {
	c.Helper()
	desired, err := source.Build(z, []source.Object{r}, source.Options{})
	if err != nil {
		c.Fatal(err)
	}
	d, _ := desired.Declarations.Get(source.ID{ObjectKey: source.KeyOf(r)})
	r.Status = v1beta1.RecordStatus{
		ObservedGeneration: r.Generation, RecordHash: source.Hash(d), PublishedName: r.Spec.Name + "." + z.Spec.ZoneName, Zone: z.Spec.ZoneName,
	}
}

// Update changes a zone on a server by RFC 2136: the RRset of an owner and type A is replaced by addresses.
func Update(t testing.TB, s *bind.Server, zone, owner string, addresses ...string) {
	t.Helper()
	m := new(dns.Msg).SetUpdate(zone)
	m.RemoveRRset([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeA, Class: dns.ClassINET}}})
	for _, a := range addresses {
		rr, err := dns.NewRR(owner + " 300 A " + a)
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
	defer conn.Close()
	if _, err := conn.Exchange(ctx, m); err != nil {
		t.Fatalf("updating %s: %v", owner, err)
	}
}

// Eventually waits until something is so.
func (c *Cluster) Eventually(what string, ok func() bool) {
	c.Helper()
	for until := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			c.Fatalf("never: %s", what)
		}
	}
}

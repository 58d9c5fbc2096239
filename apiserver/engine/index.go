package engine

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// object names one object that has a SyncStatus.
type object struct{ kind, namespace, name string }

// Index is the desired side: which record belongs to which zone, and what each zone should serve. It is brought up to
// date when somebody asks, from what informer events have touched.
type Index struct {
	informers *Informers
	// serversOf finds the pods of instances and their addresses.
	serversOf func([]*v1beta1.Bind9Instance, []*corev1.Pod) []observe.Server
	// fleet counts the changes of instances and pods.
	fleet atomic.Uint64

	mu         sync.Mutex
	namespaces map[string]*namespace
}

// namespace is the part of the index for one namespace: a zone selects only records of its own.
type namespace struct {
	mu sync.Mutex
	// stale says that zones came, went or changed their selectors: everything is assigned anew.
	stale   bool
	touched map[string]bool // zones whose object changed otherwise
	dirty   map[object]bool // records that changed
	zones   *zoneCandidates
	zoneOf  map[object]string                    // name of the DNSZone object
	members map[string]map[object]v1beta1.Record // by the same
	views   map[string]*view
}

// view is one zone at one moment. It is immutable.
type view struct {
	zone      *v1beta1.DNSZone
	declared  *syncstatus.Declared
	servers   []observe.Server
	instances map[object]*v1beta1.Bind9Instance
	fleet     uint64
	// since is when declared was made. Answers from before it tell nothing about it: what they lack may have been
	// programmed in between.
	since time.Time
	// What declared was made from beside the zone and its records.
	addresses []netip.Addr
	duplicate *v1beta1.DNSZone
}

func newIndex(inf *Informers) *Index {
	return &Index{informers: inf, serversOf: observe.Servers, namespaces: map[string]*namespace{}}
}

func (x *Index) namespace(name string) *namespace {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.namespaces[name]
	if n == nil {
		n = &namespace{stale: true, touched: map[string]bool{}, dirty: map[object]bool{}}
		x.namespaces[name] = n
	}
	return n
}

// zoneChanged takes note of an event; old or new is nil when there is none.
func (x *Index) zoneChanged(old, now *v1beta1.DNSZone) {
	z := now
	if z == nil {
		z = old
	}
	n := x.namespace(z.Namespace)
	n.mu.Lock()
	defer n.mu.Unlock()
	if old == nil || now == nil || old.UID != now.UID || old.Generation != now.Generation {
		n.stale = true
	}
	n.touched[z.Name] = true
}

func (x *Index) recordChanged(r v1beta1.Record) {
	n := x.namespace(r.GetNamespace())
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dirty[keyOf(r)] = true
}

// sync notes what the caches hold of one object now, ahead of its event.
func (x *Index) sync(key object) {
	switch {
	case key.kind == syncstatus.ZoneKind.Kind:
		now, _ := get[*v1beta1.DNSZone](x.informers.zones, key.namespace, key.name)
		var old *v1beta1.DNSZone
		n := x.namespace(key.namespace)
		n.mu.Lock()
		if v := n.views[key.name]; v != nil {
			old = v.zone
		}
		n.mu.Unlock()
		if old != now {
			x.zoneChanged(old, now)
		}
	case x.informers.records[key.kind] != nil:
		n := x.namespace(key.namespace)
		n.mu.Lock()
		n.dirty[key] = n.dirty[key] || x.assignedDiffers(n, key)
		if !n.dirty[key] {
			delete(n.dirty, key)
		}
		n.mu.Unlock()
	}
}

// assignedDiffers tells whether the cache holds another version of a record than its zone was given. n.mu is held.
func (x *Index) assignedDiffers(n *namespace, key object) bool {
	now, exists := get[v1beta1.Record](x.informers.records[key.kind], key.namespace, key.name)
	was, assigned := n.members[n.zoneOf[key]][key]
	return !assigned && exists || assigned && (!exists || was.GetResourceVersion() != now.GetResourceVersion())
}

func keyOf(r v1beta1.Record) object {
	return object{v1beta1.KindOf(r).Kind, r.GetNamespace(), r.GetName()}
}

// refresh assigns what has changed. n.mu is held.
func (x *Index) refresh(n *namespace, name string) {
	if n.stale {
		x.reassign(n, name)
		return
	}
	for zone := range n.touched {
		delete(n.views, zone)
	}
	clear(n.touched)
	for key := range n.dirty {
		if zone, ok := n.zoneOf[key]; ok {
			delete(n.members[zone], key)
			delete(n.zoneOf, key)
			delete(n.views, zone)
		}
		if r, ok := get[v1beta1.Record](x.informers.records[key.kind], key.namespace, key.name); ok {
			n.assign(key, r)
		}
	}
	clear(n.dirty)
}

func (x *Index) reassign(n *namespace, name string) {
	n.stale = false
	clear(n.touched)
	clear(n.dirty)
	n.zones = newCandidates(inNamespace[*v1beta1.DNSZone](x.informers.zones, name))
	n.zoneOf, n.members, n.views = map[object]string{}, map[string]map[object]v1beta1.Record{}, map[string]*view{}
	for _, k := range v1beta1.RecordKinds {
		for _, r := range inNamespace[v1beta1.Record](x.informers.records[k.Kind], name) {
			n.assign(object{k.Kind, name, r.GetName()}, r)
		}
	}
}

func (n *namespace) assign(key object, r v1beta1.Record) {
	zone := source.ZoneOf(n.zones.of(r), r)
	if zone == nil {
		return
	}
	n.zoneOf[key] = zone.Name
	if n.members[zone.Name] == nil {
		n.members[zone.Name] = map[object]v1beta1.Record{}
	}
	n.members[zone.Name][key] = r
	delete(n.views, zone.Name)
}

// viewOfRecord gives the view of the zone that a record belongs to; nil when none selects it.
func (x *Index) viewOfRecord(key object) *view {
	n := x.namespace(key.namespace)
	n.mu.Lock()
	defer n.mu.Unlock()
	x.refresh(n, key.namespace)
	zone, ok := n.zoneOf[key]
	if !ok {
		return nil
	}
	return x.view(n, key.namespace, zone)
}

// viewOfZone gives the view of a zone object; nil when there is none.
func (x *Index) viewOfZone(namespace, name string) *view {
	n := x.namespace(namespace)
	n.mu.Lock()
	defer n.mu.Unlock()
	x.refresh(n, namespace)
	return x.view(n, namespace, name)
}

// zoneNameOf gives the name of the zone object that a record belongs to, without making a view.
func (x *Index) zoneNameOf(key object) (string, bool) {
	n := x.namespace(key.namespace)
	n.mu.Lock()
	defer n.mu.Unlock()
	x.refresh(n, key.namespace)
	zone, ok := n.zoneOf[key]
	return zone, ok
}

// view makes a zone's view, or gives the present one when it still holds. n.mu is held.
func (x *Index) view(n *namespace, namespace, name string) *view {
	fleet := x.fleet.Load()
	was := n.views[name]
	if was != nil && was.fleet == fleet {
		return was
	}
	zone, ok := get[*v1beta1.DNSZone](x.informers.zones, namespace, name)
	if !ok {
		return nil
	}
	v := x.fleetOf(zone)
	v.fleet = fleet
	if was != nil && slices.Equal(was.addresses, v.addresses) && was.duplicate == v.duplicate {
		v.declared, v.since = was.declared, was.since
	} else {
		v.declared, v.since = declare(v, n.members[name]), time.Now()
	}
	n.views[name] = v
	return v
}

// fleetOf finds a zone's servers.
func (x *Index) fleetOf(zone *v1beta1.DNSZone) *view {
	v := &view{zone: zone, instances: map[object]*v1beta1.Bind9Instance{}}
	all := x.liveInstances("")
	instances := source.InstancesOf(zone, all)
	v.servers = x.serversOf(instances, x.podsOf(instances))
	for _, i := range instances {
		v.instances[object{syncstatus.InstanceKind.Kind, i.Namespace, i.Name}] = i
	}
	v.addresses = source.ServiceAddresses(instances, v1beta1.RolePrimary)
	if items, err := x.informers.zones.GetIndexer().ByIndex(byZoneName, source.DNSName(zone)); err == nil && len(items) > 1 {
		var namesakes []*v1beta1.DNSZone
		for _, o := range items {
			namesakes = append(namesakes, o.(*v1beta1.DNSZone))
		}
		v.duplicate = source.Duplicate(zone, namesakes, all)
	}
	return v
}

func (x *Index) liveInstances(namespace string) []*v1beta1.Bind9Instance {
	return slices.DeleteFunc(inNamespace[*v1beta1.Bind9Instance](x.informers.instances, namespace), func(i *v1beta1.Bind9Instance) bool {
		return i.DeletionTimestamp != nil
	})
}

func (x *Index) podsOf(instances []*v1beta1.Bind9Instance) []*corev1.Pod {
	var pods []*corev1.Pod
	seen := map[string]bool{}
	for _, i := range instances {
		if !seen[i.Namespace] {
			seen[i.Namespace] = true
			pods = append(pods, inNamespace[*corev1.Pod](x.informers.pods, i.Namespace)...)
		}
	}
	return pods
}

// declare builds what a zone should serve. Records being deleted are judged, but no longer declare anything.
func declare(v *view, members map[object]v1beta1.Record) *syncstatus.Declared {
	records := make([]v1beta1.Record, 0, len(members))
	live := make([]v1beta1.Record, 0, len(members))
	for _, r := range members {
		records = append(records, r)
		if r.GetDeletionTimestamp() == nil {
			live = append(live, r)
		}
	}
	var problem *syncstatus.Problem
	if d := v.duplicate; d != nil {
		problem = &syncstatus.Problem{Reason: status.DuplicateZone, Message: "the zone is already declared by DNSZone " +
			visible(d, v.zone.Namespace) + " on the same servers"}
	}
	desired, err := source.Build(v.zone, live, source.Options{ServerAddresses: v.addresses})
	if err != nil {
		desired, problem = nil, &syncstatus.Problem{Reason: status.Invalid, Message: err.Error()}
	}
	return syncstatus.Declare(v.zone, desired, records, problem)
}

// visible names an object to a reader of namespace: one elsewhere is not named, because the reader may have no right to
// know of it.
func visible(o metav1.Object, namespace string) string {
	if o.GetNamespace() == namespace {
		return o.GetName()
	}
	return "in another namespace"
}

// handlers feeds informer events to the index; poke is told the namespace that changed, or "" for all.
func (x *Index) handlers(poke func(namespace string), deleted func(kind string, o metav1.Object)) error {
	add := func(inf cache.SharedIndexInformer, on func(old, now any)) error {
		_, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { on(nil, o) },
			UpdateFunc: on,
			DeleteFunc: func(o any) {
				if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = t.Obj
				}
				on(o, nil)
			},
		})
		return err
	}
	gone := func(kind string, old, now any) {
		if m, ok := old.(metav1.Object); ok && now == nil {
			deleted(kind, m)
		}
	}
	err := add(x.informers.zones, func(old, now any) {
		o, _ := old.(*v1beta1.DNSZone)
		z, _ := now.(*v1beta1.DNSZone)
		x.zoneChanged(o, z)
		gone(syncstatus.ZoneKind.Kind, old, now)
		poke(namespaceOf(old, now))
	})
	for _, k := range v1beta1.RecordKinds {
		if err != nil {
			return err
		}
		err = add(x.informers.records[k.Kind], func(old, now any) {
			for _, o := range []any{old, now} {
				if r, ok := o.(v1beta1.Record); ok {
					x.recordChanged(r)
				}
			}
			gone(k.Kind, old, now)
			poke(namespaceOf(old, now))
		})
	}
	for kind, inf := range map[string]cache.SharedIndexInformer{
		syncstatus.InstanceKind.Kind: x.informers.instances, syncstatus.ClusterKind.Kind: x.informers.clusters, "": x.informers.pods,
	} {
		if err != nil {
			return err
		}
		err = add(inf, func(old, now any) {
			x.fleet.Add(1)
			if kind != "" {
				gone(kind, old, now)
			}
			poke("")
		})
	}
	return err
}

func namespaceOf(objects ...any) string {
	for _, o := range objects {
		if m, ok := o.(metav1.Object); ok {
			return m.GetNamespace()
		}
	}
	return ""
}

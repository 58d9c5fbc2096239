package fault

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/model"
)

// writeTimeout is how long kube-apiserver and admission may be away.
const writeTimeout = 90 * time.Second

// slot is a place for one object, which changes, goes and comes back. No two slots exclude each other; two share a name and type.
type slot struct {
	kind, name, zone string
	// owners are the names that the object has in turn.
	owners []string

	mutex sync.Mutex
	// there is whether the object exists as far as the driver is concerned, owner the name that it has.
	there bool
	owner string
}

// declarations returns how many names and types the object declares.
func (s *slot) declarations() int {
	if s.kind == model.EndpointKind {
		return len(endpointTypes)
	}
	return 1
}

// slotsOf returns the slots of a zone.
func slotsOf(zone string) []*slot {
	var slots []*slot
	add := func(kind, name string, owners ...string) {
		slots = append(slots, &slot{kind: kind, name: zoneObject(zone) + "-" + name, zone: zone, owners: owners})
	}
	for i := range 4 {
		add("ARecord", fmt.Sprint("a", i), fmt.Sprint("a", i), fmt.Sprintf("a%d.deep", i))
	}
	add("ARecord", "shared-x", "shared")
	add("ARecord", "shared-y", "shared")
	add("ARecord", "wild", "*.wild")
	add("AAAARecord", "aaaa", "a0", "b0")
	add("CNAMERecord", "cname", "c0", "c1")
	add("TXTRecord", "txt", "t0", "a1")
	add("MXRecord", "mx", "@", "m0")
	add("SRVRecord", "srv", "_sip._tcp", "_sip._udp")
	add("CAARecord", "caa", "@", "k0")
	add("NSRecord", "ns", "d0", "d1")
	add(model.EndpointKind, "endpoint-x", "e0", "e1")
	add(model.EndpointKind, "endpoint-y", "e2", "e3")
	return slots
}

// foreignKeys are the names and types that only hands change.
func foreignKeys(zone string) []string {
	return []string{"f0." + zone + ". TXT", "f1." + zone + ". A"}
}

// keysOf returns the names and types that are asked for in a zone.
func keysOf(zone string) []string {
	keys := foreignKeys(zone)
	for _, s := range slotsOf(zone) {
		types := []string{model.TypeOfKind[s.kind]}
		if s.kind == model.EndpointKind {
			types = endpointTypes
		}
		for _, owner := range s.owners {
			for _, rrtype := range types {
				if key := model.AbsoluteName(owner, zone+".") + " " + rrtype; !slices.Contains(keys, key) {
					keys = append(keys, key)
				}
			}
		}
	}
	return keys
}

// endpointTypes are the types of the endpoints of one DNSEndpoint, all at one name.
var endpointTypes = []string{"A", "TXT"}

// fresh returns an object with new values for the slot.
func (w *world) fresh(s *slot) *model.Object {
	o := &model.Object{Kind: s.kind, Name: s.name, Label: zoneObject(s.zone), Owner: s.owner, TTL: pick[int64](w, 0, 60, 300)}
	if s.kind == model.EndpointKind {
		for _, rrtype := range endpointTypes {
			o.Endpoints = append(o.Endpoints, model.Endpoint{Type: rrtype, TTL: pick[int64](w, 60, 300), DNSName: s.owner + "." + s.zone,
				Targets: w.values(rrtype)})
		}
		return o
	}
	o.Values = w.values(model.TypeOfKind[s.kind])
	return o
}

func (w *world) values(rrtype string) []string {
	n := w.random(200)
	switch rrtype {
	case "A":
		all := []string{fmt.Sprint("192.0.2.", 1+n), fmt.Sprint("198.51.100.", 1+n)}
		return all[:1+w.random(2)]
	case "AAAA":
		return []string{fmt.Sprintf("2001:db8::%x", 1+n)}
	case "TXT":
		return []string{fmt.Sprint("text ", n)}
	case "CAA":
		return []string{fmt.Sprintf("ca%d.example.net", n)}
	}
	return []string{fmt.Sprintf("h%d.example.net.", n)}
}

// startWorkload makes every object, and then changes some all the time.
func (w *world) startWorkload(ctx context.Context) {
	w.Helper()
	for _, s := range w.slots {
		s.owner = s.owners[0]
		w.store(s)
	}
	for range 2 {
		w.workload.Go(func() {
			for ctx.Err() == nil {
				w.changing.RLock()
				w.changeOne(ctx)
				w.changing.RUnlock()
				w.pause(w.between(100, 700))
			}
		})
	}
	w.workload.Go(func() { w.keepScheduler(ctx) })
}

// changeOne changes, renames, deletes or creates one object.
func (w *world) changeOne(ctx context.Context) {
	s := pick(w, w.slots...)
	if ctx.Err() != nil || !s.mutex.TryLock() {
		return
	}
	defer s.mutex.Unlock()
	if !s.there && !w.isGone(ctx, s) {
		return
	}
	switch n := w.random(10); {
	case s.there && n == 0:
		w.remove(s)
		return
	case n <= 2:
		s.owner = pick(w, s.owners...)
	}
	w.store(s)
}

// isGone reports whether an object that was deleted has gone, so that its name is free.
func (w *world) isGone(ctx context.Context, s *slot) bool {
	o := (&model.Object{Kind: s.kind, Name: s.name, Owner: "x", Values: []string{"x"}}).ToUnstructured(w.namespace)
	return apierrors.IsNotFound(w.client.Get(ctx, client.ObjectKeyFromObject(o), o))
}

// store applies an object until kube-apiserver has accepted it. Applying twice what was stored the first time changes nothing.
func (w *world) store(s *slot) {
	w.Helper()
	wanted := w.fresh(s).ToUnstructured(w.namespace)
	if ttl, there, _ := unstructured.NestedFieldNoCopy(wanted.Object, "spec", "ttl"); there && ttl == nil {
		unstructured.RemoveNestedField(wanted.Object, "spec", "ttl")
	}
	var o *unstructured.Unstructured
	begin := now()
	if err := w.until(writeTimeout, func(ctx context.Context) error {
		o = wanted.DeepCopy()
		return w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("fault"), client.ForceOwnership)
	}); err != nil {
		w.Errorf("%s %s is not accepted: %v", s.kind, s.name, err)
		return
	}
	s.there = true
	w.history.write("write", entry{"begin": begin, "end": now(), "verb": "apply", "kind": s.kind, "name": s.name, "zone": s.zone,
		"uid": o.GetUID(), "generation": o.GetGeneration(), "spec": wanted.Object["spec"]})
}

// remove deletes an object, which goes when its data has gone.
func (w *world) remove(s *slot) {
	w.Helper()
	o := (&model.Object{Kind: s.kind, Name: s.name, Owner: "x", Values: []string{"x"}}).ToUnstructured(w.namespace)
	begin := now()
	if err := w.until(writeTimeout, func(ctx context.Context) error {
		return client.IgnoreNotFound(w.client.Delete(ctx, o))
	}); err != nil {
		w.Errorf("%s %s cannot be deleted: %v", s.kind, s.name, err)
		return
	}
	s.there = false
	w.history.write("write", entry{"begin": begin, "end": now(), "verb": "delete", "kind": s.kind, "name": s.name, "zone": s.zone})
}

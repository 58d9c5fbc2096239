// Package forecast says which answers of DNS servers change if the objects in a cluster become others. It decides by the rules of
// membership and source, as the controller does, and asks no server: both sides are what is declared. It does no I/O.
package forecast

import (
	"cmp"
	"slices"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/guard"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Action is what becomes of an RRset.
type Action string

// The actions.
const (
	Appears  Action = "appears"
	Changes  Action = "changes"
	Vanishes Action = "vanishes"
)

// Zone is what changes in one zone.
type Zone struct {
	// ZoneName is the zone's DNS name with the final dot, Object its DNSZone.
	ZoneName string `json:"zoneName"`
	Object   Object `json:"object"`
	// Problem is why the zone would be served nowhere, or stay as it is; empty if it would be served as declared.
	Problem string `json:"problem,omitempty"`
	// Held is true if the zone's guard would hold removals or changes back until somebody confirms them.
	Held bool `json:"held,omitempty"`
	// Changes are in canonical order of names, then by type.
	Changes []Change `json:"changes"`
	// Unpublished are the objects that would declare something in vain and did not before, sorted.
	Unpublished []Unpublished `json:"unpublished,omitempty"`
}

// Unpublished is an object of which something would not be published.
type Unpublished struct {
	Object  Object `json:"object"`
	Message string `json:"message"`
}

// Change is one RRset that changes.
type Change struct {
	Action Action `json:"action"`
	// Name is spelled as declared, as values are.
	Name string `json:"name"`
	Type string `json:"type"`
	// Before is nil for an RRset that appears, After for one that vanishes.
	Before *Data `json:"before,omitempty"`
	After  *Data `json:"after,omitempty"`
	// Objects declare the RRset, or did, sorted.
	Objects []Object `json:"objects"`
}

// Data is what an RRset holds.
type Data struct {
	TTL uint32 `json:"ttl"`
	// Values are in presentation form. The serial of an SOA record is 0 where the servers count it.
	Values []string `json:"values"`
}

// Object names an object.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is how messages name an object: "ARecord dns/www".
func (o Object) String() string { return source.ObjectKey(o).String() }

// Compare returns the zones in which answers change if the objects before become those after, sorted by zone name, namespace and name. The
// instances of cluster-scoped clusters that name no namespace are in systemNamespace. Objects of kinds that matter to no zone are passed over.
// Unselected are the records of which no zone would take anything, and did before or are new, sorted.
func Compare(before, after []source.Object, systemNamespace string) (zones []Zone, unselected []Object) {
	was, is := newWorld(before, systemNamespace), newWorld(after, systemNamespace)
	for key := range was.zones {
		if _, stays := is.zones[key]; !stays {
			zones = append(zones, compareZone(key, was, is))
		}
	}
	for key := range is.zones {
		zones = append(zones, compareZone(key, was, is))
	}
	zones = slices.DeleteFunc(zones, func(z Zone) bool { return len(z.Changes)+len(z.Unpublished) == 0 && z.Problem == "" })
	slices.SortFunc(zones, func(a, b Zone) int {
		return cmp.Or(rrset.CompareNames(a.ZoneName, b.ZoneName), cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	return zones, findUnselected(before, after, was, is)
}

// compareZone compares what a zone holds in two worlds.
func compareZone(key membership.ZoneKey, was, is *world) Zone {
	before, known := was.contentOf(key)
	after, problem := is.contentOf(key)
	out := Zone{Object: Object{source.ZoneKind, key.Namespace, key.Name}}
	if problem != known {
		out.Problem = problem
	}
	for _, zone := range []*v1beta1.DNSZone{was.zones[key], is.zones[key]} {
		if zone != nil {
			out.ZoneName = declaration.DNSName(zone) + "."
		}
	}
	if strings.HasPrefix(problem, invalid) {
		return out // Servers keep what they have.
	}
	if before == nil || after == nil || !before.SOA.SameData(after.SOA) || before.SOA.Serial != after.SOA.Serial {
		soa := rrset.Key{Name: out.ZoneName, Type: dns.TypeSOA}
		out.add(soa, soaData(before), soaData(after), []Object{out.Object})
	}
	for _, k := range keysOf(before, after) {
		b, a := setOf(before, k), setOf(after, k)
		if !b.RRset.Equal(a.RRset) {
			shown := k
			for _, set := range []source.RRset{b, a} {
				if len(set.Rdata) > 0 {
					shown.Name = set.SpelledName()
				}
			}
			out.add(shown, dataOf(b), dataOf(a), objectsOf(b, a))
		}
	}
	out.Unpublished = unpublished(before, after)
	out.Held = before != nil && after != nil && exceedsGuard(guard.Of(is.zones[key]), before, after)
	return out
}

// unpublished lists what the later of two versions of a zone does not take, and what is new of that.
func unpublished(before, after *source.Zone) (all []Unpublished) {
	if after == nil {
		return nil
	}
	for id, d := range after.Declarations.All() {
		var was source.Declaration
		if before != nil {
			was, _ = before.Declarations.Get(id)
		}
		if d.Accepted || d.IsElsewhere() || !was.Accepted && was.Message == d.Message {
			continue
		}
		all = append(all, Unpublished{Object(id.ObjectKey), d.Message})
	}
	slices.SortFunc(all, func(a, b Unpublished) int {
		return cmp.Or(compareObjects(a.Object, b.Object), cmp.Compare(a.Message, b.Message))
	})
	return all
}

func findUnselected(before, after []source.Object, was, is *world) (all []Object) {
	known := map[source.ObjectKey]bool{}
	for _, o := range before {
		if record, ok := o.(v1beta1.Record); ok && was.members.ZoneOfRecord(record) == nil {
			known[source.KeyOf(o)] = true
		}
	}
	for _, o := range after {
		if record, ok := o.(v1beta1.Record); ok && !known[source.KeyOf(o)] && !v1beta1.IsGoing(record) && is.members.ZoneOfRecord(record) == nil {
			all = append(all, Object(source.KeyOf(o)))
		}
	}
	slices.SortFunc(all, compareObjects)
	return all
}

// exceedsGuard reports whether a zone would lose more than its guard allows. What it has lost lately is not known here.
func exceedsGuard(g guard.Guard, before, after *source.Zone) bool {
	removed, changed := 0, 0
	for have := range before.All() {
		switch want, wanted := after.Get(have.Key); {
		case !wanted:
			if removed++; g.KeepsName(have.Name) && len(slices.Collect(after.At(have.Name))) == 0 {
				return true
			}
		case guard.LosesValues(have, want):
			changed++
		}
	}
	return !g.AllowsRemovals(removed, before.Len()) || !g.AllowsChanges(changed, before.Len())
}

// add adds an RRset that changes, or is on neither side.
func (z *Zone) add(key rrset.Key, before, after *Data, objects []Object) {
	c := Change{Name: key.Name, Type: rrset.TypeName(key.Type), Before: before, After: after, Objects: objects}
	switch {
	case before == nil && after == nil:
		return
	case before == nil:
		c.Action = Appears
	case after == nil:
		c.Action = Vanishes
	default:
		c.Action = Changes
	}
	z.Changes = append(z.Changes, c)
}

func soaData(z *source.Zone) *Data {
	if z == nil {
		return nil
	}
	return &Data{z.SOA.TTL, []string{z.SOA.Rdata()}}
}

// keysOf lists the RRsets of two versions of a zone, in order.
func keysOf(zones ...*source.Zone) (keys []rrset.Key) {
	for _, z := range zones {
		if z == nil {
			continue
		}
		for set := range z.All() {
			keys = append(keys, set.Key)
		}
	}
	slices.SortFunc(keys, rrset.Key.Compare)
	return slices.Compact(keys)
}

func setOf(z *source.Zone, key rrset.Key) (set source.RRset) {
	if z != nil {
		set, _ = z.RRsets.Get(key)
	}
	return set
}

func dataOf(set source.RRset) *Data {
	if len(set.Rdata) == 0 {
		return nil
	}
	values := make([]string, len(set.Rdata))
	for i, rdata := range set.Rdata {
		values[i] = set.SpelledRdata(rdata)
	}
	return &Data{set.TTL, values}
}

// objectsOf lists who declares an RRset on either side.
func objectsOf(sets ...source.RRset) (objects []Object) {
	for _, set := range sets {
		for _, ref := range slices.Concat(set.Owners...) {
			objects = append(objects, Object(ref.Key()))
		}
	}
	slices.SortFunc(objects, compareObjects)
	return slices.Compact(objects)
}

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// world is all that decides what zones hold.
type world struct {
	members *membership.Cache
	fleet   *membership.Fleet
	zones   map[membership.ZoneKey]*v1beta1.DNSZone
}

func newWorld(objects []source.Object, systemNamespace string) *world {
	w := &world{members: membership.NewCache(), zones: map[membership.ZoneKey]*v1beta1.DNSZone{}}
	var servers membership.FleetObjects
	for _, o := range objects {
		switch o := o.(type) {
		case *v1beta1.DNSZone:
			w.members.SetZone(o)
			w.zones[membership.KeyOfZone(o)] = o
		case *v1beta1.Bind9Instance:
			servers.Instances = append(servers.Instances, o)
		case *v1beta1.Bind9GlobalCluster:
			servers.Clusters = append(servers.Clusters, o)
		case *v1beta1.ClusterBind9Provider:
			servers.Providers = append(servers.Providers, o)
		case *v1beta1.ZoneGrant:
			servers.Grants = append(servers.Grants, o)
		case *v1beta1.DNSProvider:
			servers.DNSProviders = append(servers.DNSProviders, o)
		case *corev1.Namespace:
			w.members.SetNamespace(o.Name, o.Labels)
		default:
			if source.KeyOf(o).Kind != "" {
				w.members.SetObject(o)
			}
		}
	}
	for _, o := range objects {
		if membership.MayTravel(o) {
			w.members.AssumeNamespace(o.GetNamespace())
		}
	}
	servers.Instances = membership.LiveInstances(servers.Instances)
	w.fleet = membership.NewFleet(servers, systemNamespace)
	return w
}

// invalid begins the problem of a zone of which nothing can be made.
const invalid = "it is not valid, and stays as it is on its servers: "

// contentOf returns what a zone holds; nil, with the reason, if there is no such zone or it is served nowhere.
func (w *world) contentOf(key membership.ZoneKey) (content *source.Zone, problem string) {
	zone := w.zones[key]
	if zone == nil || v1beta1.IsGoing(zone) {
		return nil, ""
	}
	if refusal := w.fleet.RefusalOf(zone, w.members); refusal != (membership.Refusal{}) {
		return nil, refusal.Message
	}
	var objects []source.Object
	for _, m := range w.members.Members(key) {
		if m.Role.Declares() {
			objects = append(objects, m.Object)
		}
	}
	opts := membership.ContentOptions(w.fleet.InstancesOf(zone), w.fleet.ProvidersOf(zone))
	opts.Owns, opts.Signers = w.members.OwnsEndpoints(key), w.members.SignersOf(zone)
	content, err := source.Build(zone, objects, opts)
	if err != nil {
		return nil, invalid + err.Error()
	}
	return content, ""
}

package desired

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// Fleet is the servers of an instance or a cluster, with the zones that they should serve.
type Fleet struct {
	Servers []observe.Server
	// zones are those of each of its instances, by DNS name; primaries serve them, here or elsewhere.
	zones     map[Key][]string
	primaries map[string][]observe.Server
	keys      hostKeys
}

// ZonesOf are the DNS names of the zones that a server should serve.
func (f *Fleet) ZonesOf(s observe.Server) []string { return f.zones[hostKey(s)] }

// PrimariesOf are a zone's primaries that have an address.
func (f *Fleet) PrimariesOf(zone string) []observe.Server { return f.primaries[zone] }

// TransferKey names the Secret with the key to ask a server of the fleet with, or a primary of its zones; zero if there is
// none.
func (f *Fleet) TransferKey(s observe.Server) types.NamespacedName { return f.keys[hostKey(s)] }

// Fleet has the servers of an instance or a cluster.
func (x *Index) Fleet(o metav1.Object) *Fleet {
	instances := x.fleetInstances(o)
	f := &Fleet{
		Servers: x.serversOf(instances), zones: map[Key][]string{}, primaries: map[string][]observe.Server{},
		keys: hostKeys{},
	}
	f.keys.addInstances(instances)
	own := map[Key]bool{}
	for _, s := range f.Servers {
		own[hostKey(s)] = true
	}
	if len(own) == 0 {
		return f
	}
	all := x.fleet()
	for _, zone := range informers.List[*v1beta1.DNSZone](x.informers, subject.ZoneKind.Kind, "") {
		if !v1beta1.IsGoing(zone) && membership.Servable(zone) {
			f.addZone(x, declaration.DNSName(zone), all.InstancesOf(zone), own)
		}
	}
	return f
}

func (f *Fleet) addZone(x *Index, name string, serving []*v1beta1.Bind9Instance, own map[Key]bool) {
	concerned := false
	for _, i := range serving {
		if k := instanceKey(i); own[k] {
			f.zones[k], concerned = append(f.zones[k], name), true
		}
	}
	if !concerned {
		return
	}
	f.keys.addInstances(serving)
	for _, s := range x.serversOf(serving) {
		if s.Role == observe.Primary && s.Addr.IsValid() {
			f.primaries[name] = append(f.primaries[name], s)
		}
	}
}

// fleetInstances are an instance itself, or the instances of a cluster.
func (x *Index) fleetInstances(o metav1.Object) []*v1beta1.Bind9Instance {
	if i, ok := o.(*v1beta1.Bind9Instance); ok {
		return []*v1beta1.Bind9Instance{i}
	}
	all := x.fleet()
	return slices.DeleteFunc(x.liveInstances(o.GetNamespace()), func(i *v1beta1.Bind9Instance) bool { return !all.BelongsTo(i, o) })
}

// serversOfZone finds a zone's servers, by what has changed up to a generation or later.
func (x *Index) serversOfZone(zone *v1beta1.DNSZone, generation uint64) zoneServers {
	out := zoneServers{generation: generation, keys: hostKeys{}}
	all := x.fleetAt(generation)
	instances, providers := all.InstancesOf(zone), all.ProvidersOf(zone)
	out.Servers = serving.AddProviders(x.serversOf(instances), providers)
	out.keys.addInstances(instances)
	out.keys.addProviders(providers)
	out.opts = membership.ContentOptions(instances, providers)
	out.opts.Signers = x.members.SignersOf(zone)
	out.refusal = all.RefusalOf(zone, x.members)
	out.below = x.zonesBelow(zone, all, instances, providers)
	out.parent = x.parentOf(zone, all)
	return out
}

// parentOf is the served zone above a zone that has the longest name of those in its namespace or on its servers, preferably one of its
// namespace, else the oldest. Anybody may have a zone of any name elsewhere, which is taken only if there is no other.
func (x *Index) parentOf(zone *v1beta1.DNSZone, all *membership.Fleet) *ZoneKey {
	name, err := declaration.ZoneName(zone.Spec.ZoneName)
	if err != nil {
		return nil
	}
	var elsewhere *ZoneKey
	for name := range rrset.NamesUpFrom(rrset.ParentName(name)) {
		parents, distances := x.members.ZonesNamed(name), map[*v1beta1.DNSZone]int{}
		for _, z := range all.Sharing(zone, slices.Clone(parents)) {
			distances[z] = -1
		}
		for _, z := range parents {
			if z.Namespace == zone.Namespace {
				distances[z] = -2
			}
		}
		slices.SortFunc(parents, func(a, b *v1beta1.DNSZone) int {
			return cmp.Or(cmp.Compare(distances[a], distances[b]), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
		})
		nearest := slices.IndexFunc(parents, func(z *v1beta1.DNSZone) bool {
			return !v1beta1.IsGoing(z) && isOnServers(z, all) && all.RefusalOf(z, x.members) == (membership.Refusal{})
		})
		if nearest < 0 {
			continue
		}
		key := membership.KeyOfZone(parents[nearest])
		if distances[parents[nearest]] < 0 {
			return &key
		}
		if elsewhere == nil {
			elsewhere = &key
		}
	}
	return elsewhere
}

// isOnServers reports whether a zone names any servers that there may be.
func isOnServers(zone *v1beta1.DNSZone, all *membership.Fleet) bool {
	return len(zone.Spec.ProviderRefs) > 0 || len(all.InstancesOf(zone)) > 0
}

// zonesBelow are the names of the zones below one on each of its instances and providers.
func (x *Index) zonesBelow(zone *v1beta1.DNSZone, all *membership.Fleet, instances []*v1beta1.Bind9Instance, providers []*v1beta1.DNSProvider) map[Key][]string {
	name, err := declaration.ZoneName(zone.Spec.ZoneName)
	if err != nil {
		return nil
	}
	below := map[Key][]string{}
	for _, other := range x.members.ZonesBelow(name) {
		otherName, _ := declaration.ZoneName(other.Spec.ZoneName)
		add := func(k Key, served bool) {
			if served && !slices.Contains(below[k], otherName) {
				below[k] = append(below[k], otherName)
			}
		}
		for _, i := range instances {
			add(instanceKey(i), all.Serves(i, other))
		}
		for _, p := range providers {
			add(providerKey(p), membership.RefersTo(other, p))
		}
	}
	for _, names := range below {
		slices.Sort(names)
	}
	return below
}

// fleetVersion is a fleet made when that was the generation.
type fleetVersion struct {
	*membership.Fleet
	generation uint64
}

// fleetAt is the fleet with all that has changed up to a generation. All zones that are looked at after a change share it.
func (x *Index) fleetAt(generation uint64) *membership.Fleet {
	if v := x.latest.Load(); v != nil && v.generation == generation {
		return v.Fleet
	}
	all := x.fleet()
	x.latest.Store(&fleetVersion{all, generation})
	return all
}

// fleet decides on which servers zones are; it has the instances that are not being deleted.
func (x *Index) fleet() *membership.Fleet {
	return membership.NewFleet(membership.FleetObjects{
		Instances: x.liveInstances(""),
		Clusters:  informers.List[*v1beta1.Bind9GlobalCluster](x.informers, subject.GlobalClusterKind.Kind, ""),
		Providers: informers.List[*v1beta1.ClusterBind9Provider](x.informers, subject.ProviderKind.Kind, ""),
		Grants:    informers.List[*v1beta1.ZoneGrant](x.informers, informers.GrantKind, ""),

		DNSProviders: informers.List[*v1beta1.DNSProvider](x.informers, informers.DNSProviderKind, ""),
	}, x.informers.SystemNamespace)
}

func (x *Index) liveInstances(namespace string) []*v1beta1.Bind9Instance {
	return membership.LiveInstances(informers.List[*v1beta1.Bind9Instance](x.informers, subject.InstanceKind.Kind, namespace))
}

func (x *Index) serversOf(instances []*v1beta1.Bind9Instance) []observe.Server {
	var pods []*corev1.Pod
	seen := map[string]bool{}
	for _, i := range instances {
		if !seen[i.Namespace] {
			seen[i.Namespace] = true
			pods = append(pods, informers.List[*corev1.Pod](x.informers, informers.PodKind, i.Namespace)...)
		}
	}
	return x.findServers(instances, pods)
}

// hostKeys name the Secrets with the keys that questions to servers are signed with, by instance or provider.
type hostKeys map[Key]types.NamespacedName

func (h hostKeys) addInstances(instances []*v1beta1.Bind9Instance) {
	for _, i := range instances {
		h[instanceKey(i)] = types.NamespacedName{Namespace: i.Namespace, Name: named.TransferKeySecretName(i)}
	}
}

func (h hostKeys) addProviders(providers []*v1beta1.DNSProvider) {
	for _, p := range providers {
		_, h[providerKey(p)] = tsigkey.ProviderSecrets(p)
	}
}

// hostKey names the instance or the provider that a server belongs to.
func hostKey(s observe.Server) Key {
	if s.Provider != "" {
		return Key{Kind: informers.DNSProviderKind, Namespace: s.Namespace, Name: s.Provider}
	}
	return Key{Kind: subject.InstanceKind.Kind, Namespace: s.Namespace, Name: s.Instance}
}

func instanceKey(i *v1beta1.Bind9Instance) Key {
	return Key{Kind: subject.InstanceKind.Kind, Namespace: i.Namespace, Name: i.Name}
}

func providerKey(p *v1beta1.DNSProvider) Key {
	return Key{Kind: informers.DNSProviderKind, Namespace: p.Namespace, Name: p.Name}
}

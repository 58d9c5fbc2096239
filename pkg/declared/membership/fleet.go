package membership

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Fleet is what decides on which servers zones are, at one moment. It is immutable and safe for concurrent use.
type Fleet struct {
	instances []*v1beta1.Bind9Instance
	// globals are the cluster-scoped clusters by name, grants the ZoneGrants by suffix.
	globals map[string][]globalCluster
	grants  map[string][]*v1beta1.ZoneGrant
	// providers are the DNSProviders by namespace and name.
	providers map[types.NamespacedName]*v1beta1.DNSProvider
}

// globalCluster is a cluster-scoped cluster that exists.
type globalCluster struct {
	kind, name string
	uid        types.UID
	// namespace of its instances.
	namespace string
}

// FleetObjects are the objects that a Fleet is made of.
type FleetObjects struct {
	Instances []*v1beta1.Bind9Instance
	Clusters  []*v1beta1.Bind9GlobalCluster
	Providers []*v1beta1.ClusterBind9Provider
	Grants    []*v1beta1.ZoneGrant

	DNSProviders []*v1beta1.DNSProvider
}

// NewFleet returns the fleet of these objects. The instances of cluster-scoped clusters that name no namespace are in systemNamespace.
func NewFleet(o FleetObjects, systemNamespace string) *Fleet {
	f := &Fleet{
		instances: o.Instances, globals: map[string][]globalCluster{}, grants: map[string][]*v1beta1.ZoneGrant{},
		providers: map[types.NamespacedName]*v1beta1.DNSProvider{},
	}
	for _, p := range o.DNSProviders {
		f.providers[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p
	}
	add := func(kind string, cluster metav1.Object) {
		name := cluster.GetName()
		f.globals[name] = append(f.globals[name], globalCluster{kind, name, cluster.GetUID(), InstanceNamespace(cluster, systemNamespace)})
	}
	for _, c := range o.Clusters {
		add("Bind9GlobalCluster", c)
	}
	for _, c := range o.Providers {
		add("ClusterBind9Provider", c)
	}
	for _, grant := range o.Grants {
		for _, suffix := range grant.Spec.Suffixes {
			if name, err := rrset.CanonicalName(suffix); err == nil {
				f.grants[name] = append(f.grants[name], grant)
			}
		}
	}
	return f
}

// InstancesOf lists the instances that serve a zone, in the order of serving.Servers.
func (f *Fleet) InstancesOf(zone *v1beta1.DNSZone) []*v1beta1.Bind9Instance {
	var instances []*v1beta1.Bind9Instance
	for _, i := range f.instances {
		if f.Serves(i, zone) {
			instances = append(instances, i)
		}
	}
	slices.SortFunc(instances, serving.CompareInstances)
	return instances
}

// ProvidersOf lists the DNSProviders that a zone names, in its order. One that does not exist has nothing but its name.
func (f *Fleet) ProvidersOf(zone *v1beta1.DNSZone) []*v1beta1.DNSProvider {
	var serving []*v1beta1.DNSProvider
	for _, ref := range zone.Spec.ProviderRefs {
		p := f.providers[types.NamespacedName{Namespace: zone.Namespace, Name: ref.Name}]
		if p == nil {
			p = &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: zone.Namespace, Name: ref.Name}}
		}
		serving = append(serving, p)
	}
	return serving
}

// ProvidersIn lists the DNSProviders in a namespace, in no order.
func (f *Fleet) ProvidersIn(namespace string) (all []*v1beta1.DNSProvider) {
	for key, p := range f.providers {
		if key.Namespace == namespace {
			all = append(all, p)
		}
	}
	return all
}

// RefersTo reports whether a zone names a DNSProvider. It must be of the zone's namespace: the provider's keys are that namespace's.
func RefersTo(zone *v1beta1.DNSZone, p metav1.Object) bool {
	return zone.Namespace == p.GetNamespace() && slices.Contains(zone.Spec.ProviderRefs, v1beta1.ProviderReference{Name: p.GetName()})
}

// Serves reports whether an instance is one of a zone's. It is when any of these names it:
//
//   - spec.clusterRef: an instance of the zone's namespace by its own clusterRef, or a member of the cluster-scoped cluster
//     of that name;
//   - spec.clusterProviderRef: a member of the cluster-scoped cluster of that name;
//   - spec.bind9InstancesFrom: an instance by its labels, if it is of the zone's namespace or both sides consent: the
//     zone's annotation bindy.firestoned.io/allow-instance-namespaces lists the instance's namespace, and the instance's
//     annotation bindy.firestoned.io/allow-zone-namespaces the zone's.
//
// An instance that is being deleted serves until it is gone. A fleet for those that stay is made of LiveInstances. Whether
// the zone is served there is RefusalOf's question.
func (f *Fleet) Serves(i *v1beta1.Bind9Instance, zone *v1beta1.DNSZone) bool {
	spec := &zone.Spec
	return spec.ClusterRef != "" && i.Spec.ClusterRef == spec.ClusterRef && i.Namespace == zone.Namespace ||
		f.globalOf(i, spec.ClusterRef) != "" || f.globalOf(i, spec.ClusterProviderRef) != "" ||
		consent(zone, v1beta1.AllowInstanceNamespacesAnnotation, i) && selectsInstance(zone, i)
}

// Strangers are the instances of a zone on which data that no object declares is not part of the zone: they are neither of the zone's
// namespace nor of a cluster that it names, and others write there. If all primaries are strangers of one namespace, there is nobody to
// protect from them.
func (f *Fleet) Strangers(zone *v1beta1.DNSZone, serving []*v1beta1.Bind9Instance) []*v1beta1.Bind9Instance {
	var strangers []*v1beta1.Bind9Instance
	namespaces, known := map[string]bool{}, false
	for _, i := range serving {
		stranger := i.Namespace != zone.Namespace && f.globalOf(i, zone.Spec.ClusterRef) == "" && f.globalOf(i, zone.Spec.ClusterProviderRef) == ""
		if stranger {
			strangers = append(strangers, i)
		}
		if i.Spec.Role.Normalize() == v1beta1.RolePrimary {
			namespaces[i.Namespace], known = true, known || !stranger
		}
	}
	if !known && len(namespaces) == 1 {
		return nil
	}
	return strangers
}

// BelongsTo assigns instances to a cluster: by their clusterRef in the namespace of a Bind9Cluster, as members of a cluster-scoped one.
func (f *Fleet) BelongsTo(i *v1beta1.Bind9Instance, cluster metav1.Object) bool {
	if c, namespaced := cluster.(*v1beta1.Bind9Cluster); namespaced {
		return i.Namespace == c.Namespace && i.Spec.ClusterRef == c.Name
	}
	return f.isMember(i, func(g globalCluster) bool { return g.uid == cluster.GetUID() })
}

// globalOf is name if the instance is a member of a cluster-scoped cluster of that name, otherwise "".
func (f *Fleet) globalOf(i *v1beta1.Bind9Instance, name string) string {
	if name != "" && f.isMember(i, func(g globalCluster) bool { return g.name == name }) {
		return name
	}
	return ""
}

// isMember reports whether an instance is a member of a cluster-scoped cluster for which `is` holds. An owner reference alone is a claim
// that anybody can make who may create instances: it counts only with the UID of a cluster that exists, which refers to one object for
// all time, and in the namespace of that cluster's instances, where only those who run the cluster may write.
func (f *Fleet) isMember(i *v1beta1.Bind9Instance, is func(globalCluster) bool) bool {
	return slices.ContainsFunc(i.OwnerReferences, func(o metav1.OwnerReference) bool {
		return f.owns(o, i.Namespace, is)
	})
}

// owns reports whether an owner reference of an instance in a namespace is true, and `is` holds for the cluster.
func (f *Fleet) owns(o metav1.OwnerReference, namespace string, is func(globalCluster) bool) bool {
	return strings.HasPrefix(o.APIVersion, v1beta1.GroupName+"/") && slices.ContainsFunc(f.globals[o.Name], func(g globalCluster) bool {
		return g.kind == o.Kind && g.uid == o.UID && g.namespace == namespace && is(g)
	})
}

// ForgedOwner is the index of the first owner reference of an instance that names a cluster-scoped cluster whose member the instance is
// not; -1 if there is none.
func (f *Fleet) ForgedOwner(i *v1beta1.Bind9Instance) int {
	return slices.IndexFunc(i.OwnerReferences, func(o metav1.OwnerReference) bool {
		return (o.Kind == "Bind9GlobalCluster" || o.Kind == "ClusterBind9Provider") && !f.owns(o, i.Namespace, func(globalCluster) bool { return true })
	})
}

package source

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// InstancesOf lists the instances that serve a zone, by namespace and then by cluster, index and name:
//
//   - those of the cluster that spec.clusterRef names: in the zone's namespace by their own clusterRef, elsewhere when a
//     cluster-scoped cluster of that name owns them;
//   - those of the cluster-scoped cluster that spec.clusterProviderRef names;
//   - those that any of spec.bind9InstancesFrom selects in the zone's namespace, and in other namespaces where the
//     instance's annotation bindy.firestoned.io/allow-zone-namespaces names the zone's.
func InstancesOf(zone *v1beta1.DNSZone, instances []*v1beta1.Bind9Instance) []*v1beta1.Bind9Instance {
	var found []*v1beta1.Bind9Instance
	for _, i := range instances {
		if serves(i, zone) {
			found = append(found, i)
		}
	}
	slices.SortFunc(found, compareInstances)
	return found
}

func serves(i *v1beta1.Bind9Instance, zone *v1beta1.DNSZone) bool {
	spec := &zone.Spec
	return (spec.ClusterRef != "" && i.Spec.ClusterRef == spec.ClusterRef && (i.Namespace == zone.Namespace || ownedByGlobal(i, spec.ClusterRef))) ||
		(spec.ClusterProviderRef != "" && ownedByGlobal(i, spec.ClusterProviderRef)) ||
		(allows(i, zone.Namespace) && selectsInstance(zone, i))
}

// ownedByGlobal tells whether a cluster-scoped cluster of that name made the instance. Its owner reference says so: a
// label or clusterRef could be set by anybody who may create an instance, to draw other tenants' zones to it.
func ownedByGlobal(i *v1beta1.Bind9Instance, cluster string) bool {
	for _, o := range i.OwnerReferences {
		if o.Name == cluster && (o.Kind == "Bind9GlobalCluster" || o.Kind == "ClusterBind9Provider") &&
			strings.HasPrefix(o.APIVersion, v1beta1.GroupName+"/") {
			return true
		}
	}
	return false
}

func selectsInstance(zone *v1beta1.DNSZone, i *v1beta1.Bind9Instance) bool {
	for n := range zone.Spec.Bind9InstancesFrom {
		if ok, _ := matches(&zone.Spec.Bind9InstancesFrom[n].Selector, i.Labels); ok {
			return true
		}
	}
	return false
}

// allows tells whether zones of a namespace may select the instance.
func allows(i *v1beta1.Bind9Instance, namespace string) bool {
	return i.Namespace == namespace || lists(i.Annotations[v1beta1.AllowZoneNamespacesAnnotation], namespace)
}

// compareInstances orders web-primary-2 before web-primary-10.
func compareInstances(a, b *v1beta1.Bind9Instance) int {
	aStem, aIndex := splitIndex(a.Name)
	bStem, bIndex := splitIndex(b.Name)
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(aStem, bStem),
		cmp.Compare(len(aIndex), len(bIndex)), cmp.Compare(aIndex, bIndex), cmp.Compare(a.Name, b.Name))
}

// splitIndex splits the number off the end of a name.
func splitIndex(name string) (stem, index string) {
	stem = strings.TrimRight(name, "0123456789")
	return stem, strings.TrimLeft(name[len(stem):], "0")
}

// ServiceAddresses are the addresses of the Services of all instances with a role, in the instances' order: they stay when
// pods move. With the primary role they are what Options.ServerAddresses takes. An instance without one is left out.
func ServiceAddresses(instances []*v1beta1.Bind9Instance, role v1beta1.ServerRole) []netip.Addr {
	var addresses []netip.Addr
	for _, i := range instances {
		if i.Spec.Role.Normalize() != role {
			continue
		}
		if a, err := netip.ParseAddr(i.Status.ServiceAddress); err == nil {
			addresses = append(addresses, a)
		}
	}
	return addresses
}

package membership

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// InstancesOf returns the instances that serve a zone, by namespace and then by cluster, index and name.
func InstancesOf(zone *v1beta1.DNSZone, instances []*v1beta1.Bind9Instance) []*v1beta1.Bind9Instance {
	var serving []*v1beta1.Bind9Instance
	for _, i := range instances {
		if Serves(i, zone) {
			serving = append(serving, i)
		}
	}
	slices.SortFunc(serving, compareInstances)
	return serving
}

// Serves reports whether an instance serves a zone. It does when any of these names it:
//
//   - spec.clusterRef: an instance of the zone's namespace by its own clusterRef, one elsewhere when a cluster-scoped
//     cluster of that name owns it;
//   - spec.clusterProviderRef: an instance that a cluster-scoped cluster of that name owns;
//   - spec.bind9InstancesFrom: an instance of the zone's namespace by its labels, one elsewhere when its annotation
//     bindy.firestoned.io/allow-zone-namespaces lists the zone's namespace too.
//
// An instance that is being deleted serves until it is gone. Who looks for instances that stay uses LiveInstances first.
func Serves(i *v1beta1.Bind9Instance, zone *v1beta1.DNSZone) bool {
	spec := &zone.Spec
	return (spec.ClusterRef != "" && i.Spec.ClusterRef == spec.ClusterRef && (i.Namespace == zone.Namespace || ownedByGlobal(i, spec.ClusterRef))) ||
		(spec.ClusterProviderRef != "" && ownedByGlobal(i, spec.ClusterProviderRef)) ||
		(admitsZones(i, zone.Namespace) && selectsInstance(zone, i))
}

// ownedByGlobal reports whether a cluster-scoped cluster of that name made the instance. Its owner reference says so: a
// label or clusterRef could be set by anybody who may create an instance, to draw other tenants' zones to it.
func ownedByGlobal(i *v1beta1.Bind9Instance, cluster string) bool {
	return slices.ContainsFunc(i.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Name == cluster && (o.Kind == "Bind9GlobalCluster" || o.Kind == "ClusterBind9Provider") &&
			strings.HasPrefix(o.APIVersion, v1beta1.GroupName+"/")
	})
}

func selectsInstance(zone *v1beta1.DNSZone, i *v1beta1.Bind9Instance) bool {
	for n := range zone.Spec.Bind9InstancesFrom {
		if ok, _ := matchesLabels(&zone.Spec.Bind9InstancesFrom[n].Selector, i.Labels); ok {
			return true
		}
	}
	return false
}

// admitsZones reports whether zones of a namespace may select the instance.
func admitsZones(i *v1beta1.Bind9Instance, namespace string) bool {
	return i.Namespace == namespace || listsNamespace(i.Annotations[v1beta1.AllowZoneNamespacesAnnotation], namespace)
}

// LiveInstances returns the instances that are not being deleted, in a slice of its own.
func LiveInstances(instances []*v1beta1.Bind9Instance) []*v1beta1.Bind9Instance {
	live := make([]*v1beta1.Bind9Instance, 0, len(instances))
	for _, i := range instances {
		if i.DeletionTimestamp.IsZero() {
			live = append(live, i)
		}
	}
	return live
}

// ServiceAddresses returns the addresses of the Services of all instances with a role, in the instances' order: they stay
// when pods move. An instance without one is left out.
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

package membership

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

func selectsInstance(zone *v1beta1.DNSZone, i *v1beta1.Bind9Instance) bool {
	for n := range zone.Spec.Bind9InstancesFrom {
		if ok, _ := matchesLabels(&zone.Spec.Bind9InstancesFrom[n].Selector, i.Labels); ok {
			return true
		}
	}
	return false
}

// consent lets a zone and an object of the other side (an instance, a DNSEndpoint) be used together: they are of one namespace, or the
// zone's annotation of that name lists the object's namespace and the object's annotation bindy.firestoned.io/allow-zone-namespaces the
// zone's.
func consent(zone *v1beta1.DNSZone, annotation string, o metav1.Object) bool {
	return zone.Namespace == o.GetNamespace() ||
		listsNamespace(zone.Annotations[annotation], o.GetNamespace()) &&
			listsNamespace(o.GetAnnotations()[v1beta1.AllowZoneNamespacesAnnotation], zone.Namespace)
}

// MayTakeEndpoints reports whether a zone takes endpoints of a DNSEndpoint, wherever their names are.
func MayTakeEndpoints(zone *v1beta1.DNSZone, e metav1.Object) bool {
	return consent(zone, v1beta1.AllowEndpointNamespacesAnnotation, e)
}

// IsLastPrimary reports whether an instance is a primary of a zone and no other given instance that stays is.
func IsLastPrimary(f *Fleet, instance *v1beta1.Bind9Instance, zone *v1beta1.DNSZone, of []*v1beta1.Bind9Instance) bool {
	return instance.Spec.Role.Normalize() == v1beta1.RolePrimary && f.Serves(instance, zone) &&
		!slices.ContainsFunc(of, func(i *v1beta1.Bind9Instance) bool {
			return (i.Namespace != instance.Namespace || i.Name != instance.Name) && i.DeletionTimestamp == nil &&
				i.Spec.Role.Normalize() == v1beta1.RolePrimary && f.Serves(i, zone)
		})
}

// LiveInstances copies the instances that are not being deleted.
func LiveInstances(instances []*v1beta1.Bind9Instance) []*v1beta1.Bind9Instance {
	live := make([]*v1beta1.Bind9Instance, 0, len(instances))
	for _, i := range instances {
		if !v1beta1.IsGoing(i) {
			live = append(live, i)
		}
	}
	return live
}

// ServiceAddresses lists the addresses of the Services of all instances with a role, in the instances' order: they stay when pods move.
// An instance without one is left out.
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

// ContentOptions is what its servers decide about a zone's content. A provider that does not exist has nothing but its name.
func ContentOptions(instances []*v1beta1.Bind9Instance, providers []*v1beta1.DNSProvider) source.Options {
	return source.Options{Servers: NameServers(instances), MaxRecords: maxRecords(instances, providers)}
}

// maxRecords is the lowest limit of the servers of a zone. An instance that is new, or a provider that does not exist, takes nothing away from
// the others.
func maxRecords(instances []*v1beta1.Bind9Instance, providers []*v1beta1.DNSProvider) (lowest source.RecordLimit) {
	add := func(most int32, kind string, of metav1.Object, fields string) {
		l := source.RecordLimit{Max: int(most), Of: source.ObjectKey{Kind: kind, Namespace: of.GetNamespace(), Name: of.GetName()}, Fields: fields}
		if l.Max > 0 && (lowest.Max == 0 || l.Max < lowest.Max) {
			lowest = l
		}
	}
	for _, i := range instances {
		fields := "spec.config.maxRecordsPerType there"
		if i.Spec.ClusterRef != "" {
			fields = "spec.global.maxRecordsPerType of its cluster " + i.Spec.ClusterRef + ", or " + fields
		}
		add(i.Status.MaxRecordsPerType, "Bind9Instance", i, fields)
	}
	for _, p := range providers {
		if p.UID != "" {
			add(ptr.Deref(p.Spec.MaxRecordsPerType, v1beta1.DefaultMaxRecordsPerType), "DNSProvider", p, "spec.maxRecordsPerType there, if its servers take more")
		}
	}
	return lowest
}

// NameServers returns where clients reach the zone of some instances: primaries first, in the order of serving.Servers. If some are open to
// the outside of the Kubernetes cluster, the others are for the inside and left out.
func NameServers(instances []*v1beta1.Bind9Instance) []source.Server {
	var servers []source.Server
	isExposed := func(i *v1beta1.Bind9Instance) bool { return i.Status.ServiceExposed }
	some := slices.ContainsFunc(instances, isExposed)
	for _, i := range slices.SortedFunc(slices.Values(instances), serving.CompareInstances) {
		s := source.Server{
			Service: i.Namespace + "/" + i.Name, Primary: i.Spec.Role.Normalize() == v1beta1.RolePrimary, Addresses: serving.ClientAddresses(i), Exposed: isExposed(i),
		}
		if s.Exposed == some && (s.Exposed || len(s.Addresses) > 0) {
			servers = append(servers, s)
		}
	}
	return servers
}

// SignerOf is the instance that signs a zone: of its primaries the oldest, which stays the same when others join; nil if there is none.
func SignerOf(instances []*v1beta1.Bind9Instance) *v1beta1.Bind9Instance {
	var signer *v1beta1.Bind9Instance
	for _, i := range instances {
		if i.Spec.Role.Normalize() == v1beta1.RolePrimary && (signer == nil || i.CreationTimestamp.Before(&signer.CreationTimestamp)) {
			signer = i
		}
	}
	return signer
}

// SigningMoves reports whether a change of a zone leads it away from the keys that it is signed with: to servers of another cluster, or to
// none that would sign it. An instance without a cluster keeps its keys for itself. A zone without an instance that could sign it is led away
// by one, or by leaving a provider.
func (f *Fleet) SigningMoves(before, after *v1beta1.DNSZone) bool {
	signer, next := SignerOf(f.InstancesOf(before)), SignerOf(f.InstancesOf(after))
	if signer == nil {
		leaves := slices.ContainsFunc(before.Spec.ProviderRefs, func(p v1beta1.ProviderReference) bool { return !slices.Contains(after.Spec.ProviderRefs, p) })
		return next != nil || leaves
	}
	return next == nil || next.Namespace != signer.Namespace || next.Spec.ClusterRef != signer.Spec.ClusterRef || signer.Spec.ClusterRef == "" && next.Name != signer.Name
}

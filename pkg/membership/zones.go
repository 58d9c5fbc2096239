package membership

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// ZoneKey names a DNSZone object.
type ZoneKey = types.NamespacedName

// KeyOfZone returns the key of a zone.
func KeyOfZone(zone *v1beta1.DNSZone) ZoneKey {
	return ZoneKey{Namespace: zone.Namespace, Name: zone.Name}
}

// DuplicateOf returns the oldest zone that is older than the given one, has the same DNS name and shares an instance with
// it, or nil when there is none. That zone is served; the given one is not. Zones without instances are on no server and
// duplicates of nothing.
func DuplicateOf(zone *v1beta1.DNSZone, zones []*v1beta1.DNSZone, instances []*v1beta1.Bind9Instance) *v1beta1.DNSZone {
	name, err := rrset.CanonicalName(zone.Spec.ZoneName)
	if err != nil {
		return nil
	}
	var oldest *v1beta1.DNSZone
	for _, other := range zones {
		if other.UID == zone.UID || compareZones(other, zone) >= 0 || (oldest != nil && compareZones(other, oldest) >= 0) {
			continue
		}
		otherName, err := rrset.CanonicalName(other.Spec.ZoneName)
		if err == nil && otherName == name && shareInstance(zone, other, instances) {
			oldest = other
		}
	}
	return oldest
}

func shareInstance(a, b *v1beta1.DNSZone, instances []*v1beta1.Bind9Instance) bool {
	return slices.ContainsFunc(instances, func(i *v1beta1.Bind9Instance) bool { return Serves(i, a) && Serves(i, b) })
}

// Servable reports whether instances are expected to serve a zone: its status does not say that its own declaration keeps
// it from every server.
func Servable(zone *v1beta1.DNSZone) bool {
	ready := meta.FindStatusCondition(zone.Status.Conditions, status.Ready)
	return ready == nil || ready.Reason != status.DuplicateZone && ready.Reason != status.ReconcileFailed
}

// AdmitsEndpoints reports whether DNSEndpoints of a namespace may publish in a zone: those of the zone's own namespace
// may, and those of namespaces that the zone's annotation bindy.firestoned.io/allow-endpoint-namespaces lists.
func AdmitsEndpoints(zone *v1beta1.DNSZone, namespace string) bool {
	return zone.Namespace == namespace || listsNamespace(zone.Annotations[v1beta1.AllowEndpointNamespacesAnnotation], namespace)
}

// listsNamespace reports whether a comma-separated list contains a namespace or "*".
func listsNamespace(list, namespace string) bool {
	for entry := range strings.SplitSeq(list, ",") {
		if entry = strings.TrimSpace(entry); entry == "*" || entry == namespace && entry != "" {
			return true
		}
	}
	return false
}

// compareZones orders zones from the oldest.
func compareZones(a, b *v1beta1.DNSZone) int {
	return cmp.Or(compareAge(a.CreationTimestamp, b.CreationTimestamp), cmp.Compare(a.UID, b.UID),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// compareAge puts the older first. An object without a timestamp is about to be created: it is the youngest.
func compareAge(a, b metav1.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b.Time)
}

// prefersZone reports whether an endpoint of a namespace belongs to a rather than to b, two zones of one name: to the one
// of its own namespace, else to the older.
func prefersZone(a, b *v1beta1.DNSZone, namespace string) bool {
	if own := a.Namespace == namespace; own != (b.Namespace == namespace) {
		return own
	}
	return compareZones(a, b) < 0
}

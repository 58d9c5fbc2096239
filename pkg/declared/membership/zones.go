package membership

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// ZoneKey names a DNSZone object.
type ZoneKey = types.NamespacedName

// KeyOfZone identifies a zone by namespace and name.
func KeyOfZone(zone *v1beta1.DNSZone) ZoneKey {
	return ZoneKey{Namespace: zone.Namespace, Name: zone.Name}
}

// Servable reports whether instances are expected to serve a zone: its status does not say that its own declaration keeps it from every
// server. A zone that waits for addresses is served if it was before.
func Servable(zone *v1beta1.DNSZone) bool {
	ready := meta.FindStatusCondition(zone.Status.Conditions, status.Ready)
	switch {
	case ready == nil:
		return true
	case ready.Reason == status.AddressPending:
		return zone.Status.Serial != nil
	}
	return ready.Reason != status.DuplicateZone && ready.Reason != status.NotPermitted && ready.Reason != status.ReconcileFailed
}

// IsRefused reports whether a zone is served nowhere because of others or for want of permission.
func IsRefused(zone *v1beta1.DNSZone) bool {
	ready := meta.FindStatusCondition(zone.Status.Conditions, status.Ready)
	return ready != nil && (ready.Reason == status.DuplicateZone || ready.Reason == status.NotPermitted)
}

// listsNamespace searches a comma-separated list for a namespace or "*".
func listsNamespace(list, namespace string) bool {
	for entry := range strings.SplitSeq(list, ",") {
		if entry = strings.TrimSpace(entry); entry == "*" || entry == namespace && entry != "" {
			return true
		}
	}
	return false
}

// compareSelecting orders zones of one namespace from the oldest. The names of those that one command has made decide, so that it has the same
// outcome each time.
func compareSelecting(a, b *v1beta1.DNSZone) int {
	return cmp.Or(compareAge(a.CreationTimestamp, b.CreationTimestamp), cmp.Compare(a.Name, b.Name))
}

// compareZones orders zones of all namespaces from the oldest. Nobody chooses the UID, which decides between those of the same second.
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

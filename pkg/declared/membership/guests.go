package membership

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
)

// Guests are DNSProviders with secondaries: these transfer zones from primaries, whose key ring has the key of the provider. Of one
// namespace a ring takes the oldest GuestsOfNamespace, so that it fits into its Secret whoever makes providers, and of all MaxGuests.
const (
	GuestsOfNamespace = 8
	MaxGuests         = 512
)

// IsGuest reports whether the key of a provider's secondaries may be in the servers' keyring: those by address have no key, and the Secrets
// of systemNamespace, that of Lockstep, are never taken for keys.
func IsGuest(p *v1beta1.DNSProvider, systemNamespace string) bool {
	return p.Spec.Secondaries != nil && !serving.IsByAddress(p) && p.DeletionTimestamp.IsZero() && p.Namespace != systemNamespace
}

// GuestsBeside lists the other providers with secondaries of a provider's namespace.
func (f *Fleet) GuestsBeside(p *v1beta1.DNSProvider) (guests []*v1beta1.DNSProvider) {
	for key, other := range f.providers {
		if key.Namespace == p.Namespace && key.Name != p.Name && IsGuest(other, "") {
			guests = append(guests, other)
		}
	}
	return guests
}

// RingsOf has the key rings, by namespace and owner, of the primaries from which the secondaries of a provider transfer any of some
// zones, each with the first such zone.
func (f *Fleet) RingsOf(p *v1beta1.DNSProvider, zones []*v1beta1.DNSZone) map[types.NamespacedName]*v1beta1.DNSZone {
	rings := map[types.NamespacedName]*v1beta1.DNSZone{}
	for _, z := range zones {
		if !RefersTo(z, p) || v1beta1.IsGoing(z) {
			continue
		}
		for _, i := range f.InstancesOf(z) {
			ring := types.NamespacedName{Namespace: i.Namespace, Name: serving.KeyOwner(i)}
			if _, known := rings[ring]; !known && i.Spec.Role.Normalize() == v1beta1.RolePrimary {
				rings[ring] = z
			}
		}
	}
	return rings
}

// AdmitGuests chooses the guests of a ring whose keys it takes: the oldest of each namespace and, when there are too many of all, those
// first that are the only ones of their namespace: a namespace with many keeps no other from its first.
func AdmitGuests(guests []*v1beta1.DNSProvider) (admitted []*v1beta1.DNSProvider) {
	byAge := func(a, b *v1beta1.DNSProvider) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	}
	count, rank := map[string]int{}, map[*v1beta1.DNSProvider]int{}
	for _, p := range slices.SortedFunc(slices.Values(guests), byAge) {
		count[p.Namespace]++
		if rank[p] = count[p.Namespace]; rank[p] <= GuestsOfNamespace {
			admitted = append(admitted, p)
		}
	}
	slices.SortStableFunc(admitted, func(a, b *v1beta1.DNSProvider) int { return cmp.Compare(rank[a], rank[b]) })
	return admitted[:min(len(admitted), MaxGuests)]
}

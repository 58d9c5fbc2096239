package dnsprovider

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
)

// leftOut says why primaries of a zone do not take the key of a provider's secondaries: others have all places. It is empty if they do.
func (r *reconciler) leftOut(ctx context.Context, provider *v1beta1.DNSProvider) (string, error) {
	rivals, err := r.rivalsOf(ctx, provider)
	if err != nil || len(rivals) == 0 {
		return "", err
	}
	servers, err := inventory.Read(ctx, r.client, r.systemNamespace)
	if err != nil {
		return "", err
	}
	guests, own := map[types.NamespacedName][]*v1beta1.DNSProvider{}, map[types.NamespacedName]*v1beta1.DNSZone{}
	for _, p := range rivals {
		zones, err := r.zonesOf(ctx, p)
		if err != nil {
			return "", err
		}
		rings := servers.RingsOf(p, zones)
		for ring := range rings {
			guests[ring] = append(guests[ring], p)
		}
		if p.UID == provider.UID {
			own = rings
		}
	}
	for _, ring := range slices.SortedFunc(maps.Keys(own), func(a, b types.NamespacedName) int { return compareZones(own[a], own[b]) }) {
		is := func(p *v1beta1.DNSProvider) bool { return p.UID == provider.UID }
		isNeighbor := func(p *v1beta1.DNSProvider) bool { return p.Namespace != provider.Namespace }
		if slices.ContainsFunc(membership.AdmitGuests(guests[ring]), is) {
			continue
		}
		if n := len(slices.DeleteFunc(guests[ring], isNeighbor)); n > membership.GuestsOfNamespace {
			return fmt.Sprintf("the primaries of DNSZone %s let the secondaries of %d DNSProviders of one namespace transfer zones, the oldest, and this is one of %d: put its servers into an older provider, or delete one that is not needed",
				own[ring].Name, membership.GuestsOfNamespace, n), nil
		}
		return fmt.Sprintf("the primaries of DNSZone %s let the secondaries of %d DNSProviders transfer zones, and others are before this one: ask those who run the primaries",
			own[ring].Name, membership.MaxGuests), nil
	}
	return "", nil
}

// rivalsOf are the providers, this one among them, that may be too many for a key ring; none if there are too few for that.
func (r *reconciler) rivalsOf(ctx context.Context, provider *v1beta1.DNSProvider) (rivals []*v1beta1.DNSProvider, err error) {
	var list v1beta1.DNSProviderList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing DNSProviders: %w", err)
	}
	var neighbors []*v1beta1.DNSProvider
	for i := range list.Items {
		p := &list.Items[i]
		if !membership.IsGuest(p, r.systemNamespace) {
			continue
		}
		if rivals = append(rivals, p); p.Namespace == provider.Namespace {
			neighbors = append(neighbors, p)
		}
	}
	switch {
	case len(rivals) > membership.MaxGuests:
		return rivals, nil
	case len(neighbors) > membership.GuestsOfNamespace:
		return neighbors, nil
	}
	return nil, nil
}

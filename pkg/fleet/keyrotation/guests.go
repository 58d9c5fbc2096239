package keyrotation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
)

// followGuests gives a ring the keys of its guests.
func (p *ensurePass) followGuests(ctx context.Context, role named.KeyRole, source *wire.Key, ring named.Keyring) (next named.Keyring, changed bool, err error) {
	guests, err := p.guestKeys(ctx, role, ring.Guests)
	if err != nil {
		return ring, false, err
	}
	return ring.FollowGuests(role, source, guests)
}

// guestKeys are the keys with which servers outside transfer zones from the owner's primaries, in an order that does not change. A key
// that cannot be read for a moment stays what it was.
func (p *ensurePass) guestKeys(ctx context.Context, role named.KeyRole, before []named.GuestKey) ([]named.GuestKey, error) {
	if role != named.KeyTransfer {
		return nil, nil
	}
	providers, err := p.guests(ctx)
	if err != nil {
		return nil, err
	}
	var keys []named.GuestKey
	for _, provider := range membership.AdmitGuests(providers) {
		key, err := p.guestKey(ctx, provider)
		switch {
		case err == nil:
			keys = append(keys, key)
		case errors.Is(err, named.ErrKey), apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			// The provider's status says so.
		default:
			name, _ := serving.GuestKeyName(provider.Namespace, provider.Name)
			if n := slices.IndexFunc(before, func(k named.GuestKey) bool { return k.Name == name }); n >= 0 {
				keys = append(keys, before[n])
			}
		}
	}
	return keys, nil
}

func (p *ensurePass) guestKey(ctx context.Context, provider *v1beta1.DNSProvider) (named.GuestKey, error) {
	_, secret := tsigkey.ProviderSecrets(provider)
	key, err := p.Cache.Get(ctx, secret)
	if err != nil {
		return named.GuestKey{}, err
	}
	return named.NewGuestKey(provider.Namespace, provider.Name, key)
}

// guests are the providers whose secondaries transfer a zone that a primary of the owner serves.
func (p *ensurePass) guests(ctx context.Context) (guests []*v1beta1.DNSProvider, err error) {
	var list v1beta1.DNSProviderList
	if err := p.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing DNSProviders: %w", err)
	}
	var all *membership.Fleet
	ring := types.NamespacedName{Namespace: p.owner.Namespace, Name: p.owner.GetName()}
	for i := range list.Items {
		provider := &list.Items[i]
		if !membership.IsGuest(provider, p.Controller.Namespace) {
			continue
		}
		if all == nil {
			if all, err = inventory.Read(ctx, p.Client, p.SystemNamespace); err != nil {
				return nil, err
			}
		}
		zones, err := inventory.ListZones(ctx, p.Client, client.InNamespace(provider.Namespace))
		if err != nil {
			return nil, err
		}
		if _, is := all.RingsOf(provider, zones)[ring]; is {
			guests = append(guests, provider)
		}
	}
	return guests, nil
}

package tsigkeys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// Guests are keys of other namespaces, perhaps: of one no more than these, so that a ring fits into its Secret whoever makes
// providers, and of all no more than the second number.
const (
	maxGuestsOfNamespace = 8
	maxGuests            = 512
)

// followGuests gives a ring the keys of its guests.
func (p *ensurePass) followGuests(ctx context.Context, role named.KeyRole, source *wire.Key, ring named.Keyring) (next named.Keyring, changed bool, err error) {
	guests, err := p.guestKeys(ctx, role, ring.Guests)
	if err != nil {
		return ring, false, err
	}
	return ring.FollowGuests(role, source, guests)
}

// guestKeys returns the keys with which servers outside transfer zones from the owner's primaries, in an order that does not
// change. A key that cannot be read for a moment stays what it was.
func (p *ensurePass) guestKeys(ctx context.Context, role named.KeyRole, before []named.GuestKey) ([]named.GuestKey, error) {
	if role != named.KeyTransfer {
		return nil, nil
	}
	providers, err := p.guests(ctx)
	if err != nil {
		return nil, err
	}
	var keys []named.GuestKey
	for _, provider := range limitGuests(providers) {
		key, err := p.guestKey(ctx, provider)
		switch {
		case err == nil:
			keys = append(keys, key)
		case errors.Is(err, named.ErrKey), apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			// The provider's status says so.
		default:
			name, _ := named.GuestKeyName(provider.Namespace, provider.Name)
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

// guests returns the providers whose secondaries transfer a zone that a primary of the owner serves.
func (p *ensurePass) guests(ctx context.Context) (guests []*v1beta1.DNSProvider, err error) {
	var list v1beta1.DNSProviderList
	if err := p.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing DNSProviders: %w", err)
	}
	var all *membership.Fleet
	for i := range list.Items {
		provider := &list.Items[i]
		// Lockstep's own Secrets are nobody's keys.
		if provider.Spec.Secondaries == nil || !provider.DeletionTimestamp.IsZero() || provider.Namespace == p.Controller.Namespace {
			continue
		}
		if all == nil {
			if all, err = fleet.Read(ctx, p.Client, p.Home); err != nil {
				return nil, err
			}
		}
		zones, err := fleet.ListZones(ctx, p.Client, client.InNamespace(provider.Namespace))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(zones, func(z *v1beta1.DNSZone) bool {
			return membership.RefersTo(z, provider) && z.DeletionTimestamp.IsZero() && slices.ContainsFunc(all.InstancesOf(z), p.hasPrimary)
		}) {
			guests = append(guests, provider)
		}
	}
	return guests, nil
}

// hasPrimary reports whether an instance is a primary with the owner's keys.
func (p *ensurePass) hasPrimary(i *v1beta1.Bind9Instance) bool {
	return i.Spec.Role.Normalize() == v1beta1.RolePrimary && i.Namespace == p.owner.Namespace && named.KeyOwner(i) == p.owner.GetName()
}

// limitGuests returns the oldest providers of each namespace, and of all when there are too many those first that are the only ones of
// theirs: a namespace with many keeps no other from its first.
func limitGuests(providers []*v1beta1.DNSProvider) (allowed []*v1beta1.DNSProvider) {
	byAge := func(a, b *v1beta1.DNSProvider) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	}
	count, rank := map[string]int{}, map[*v1beta1.DNSProvider]int{}
	for _, provider := range slices.SortedFunc(slices.Values(providers), byAge) {
		count[provider.Namespace]++
		if rank[provider] = count[provider.Namespace]; rank[provider] <= maxGuestsOfNamespace {
			allowed = append(allowed, provider)
		}
	}
	slices.SortStableFunc(allowed, func(a, b *v1beta1.DNSProvider) int { return cmp.Compare(rank[a], rank[b]) })
	return allowed[:min(len(allowed), maxGuests)]
}

// Package keyrotation makes and rotates the TSIG keys of clusters and of instances without a cluster, and has them ready for
// those who sign. A key comes from a Secret that a user names, or from one that is made here. The servers load a key ring
// that follows it step by step, so that every server accepts a new key before anybody signs with it.
package keyrotation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// rotationInterval is how often servers are asked that a changed key is on its way to.
const rotationInterval = 2 * time.Second

// Sidecar says which keys a server has.
type Sidecar interface {
	Keys(ctx context.Context, server bindcar.Address) (bindcar.ServerKeys, error)
}

// Rotator keeps the keys of owners.
type Rotator struct {
	Client   client.Client
	Children *apply.Children
	Cache    *Cache
	Sidecar  Sidecar
	// Controller and APIServer are accounts, by namespace and name: they may read the keys that they sign with.
	Controller, APIServer client.ObjectKey
	// SystemNamespace is the namespace that Lockstep runs in.
	SystemNamespace string
	// Transitions makes Events; nil makes none.
	Transitions *apply.Transitions
}

// ensurePass is one pass over the keys of one owner.
type ensurePass struct {
	*Rotator
	owner Owner
	now   time.Time
	// servers asks the servers once in a pass, if at all.
	servers func() []serverKeys
	changed bool
}

// Ensure makes the owner's TSIG keys where they are missing, lets those who sign read them, and takes a step of
// the rotation of a key that has changed. It returns when to do so again, 0 for at the next check, and whether it took a step.
func (r *Rotator) Ensure(ctx context.Context, owner Owner, now time.Time) (requeue time.Duration, changed bool, err error) {
	p := &ensurePass{Rotator: r, owner: owner, now: now}
	p.servers = sync.OnceValue(func() []serverKeys { return p.askServers(ctx) })
	used := map[string]named.KeyRole{rndc.KeyName + ".": "control"}
	for _, role := range []named.KeyRole{named.KeyUpdate, named.KeyTransfer} {
		source, secret, err := p.sourceKey(ctx, role)
		if err != nil {
			return 0, false, err
		}
		if other, taken := used[source.Name]; taken {
			return 0, false, fmt.Errorf("%w in Secret %s/%s: the name %s belongs to the %s key; give it another", named.ErrKey,
				secret.Namespace, secret.Name, source.Name, other)
		}
		if serving.IsGuestName(source.Name) {
			return 0, false, fmt.Errorf("%w in Secret %s/%s: names like %s belong to DNSProviders' secondaries; give the key another", named.ErrKey,
				secret.Namespace, secret.Name, source.Name)
		}
		used[source.Name] = role
		ring, err := p.followSource(ctx, role, source)
		if err != nil {
			return 0, false, err
		}
		switch {
		case !ring.Settled(source):
			requeue = rotationInterval
		case p.isRotationDue(ring, secret):
			if err := p.replaceKey(ctx, role, secret); err != nil {
				return 0, false, err
			}
			requeue = rotationInterval
		}
	}
	return requeue, p.changed, errors.Join(
		p.grantKey(ctx, named.KeyUpdate, p.Controller),
		p.grantKey(ctx, named.KeyTransfer, p.Controller, p.APIServer),
	)
}

// sourceKey reads the key that a ring follows: a user's own, else one that is made when it is missing.
func (p *ensurePass) sourceKey(ctx context.Context, role named.KeyRole) (*wire.Key, *corev1.Secret, error) {
	name, ref := p.owner.secretKey(named.KeySecretName(p.owner.GetName(), role)), p.owner.settings.Ref
	if role != named.KeyUpdate {
		ref = nil
	}
	if ref != nil {
		name.Name = ref.Name
	}
	secret := &corev1.Secret{}
	err := p.Client.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) && ref == nil {
		if secret, err = p.createKey(ctx, role, name); err != nil {
			return nil, nil, err
		}
	}
	if err == nil && ref == nil {
		err = p.owner.checkPredecessor(secret)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the %s key: %w", role, tsigkey.Unreadable(name.Name, err))
	}
	var key *wire.Key
	if ref != nil {
		key, err = named.KeyFromRef(secret, *ref)
	} else {
		key, err = named.KeyFromSecret(secret)
	}
	return key, secret, err
}

func (p *ensurePass) createKey(ctx context.Context, role named.KeyRole, name client.ObjectKey) (*corev1.Secret, error) {
	key, err := named.NewKey(name.Namespace, p.owner.GetName(), role)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: p.owner.ObjectMeta(name), Data: named.KeyData(key)}
	if err := p.Client.Create(ctx, secret, client.FieldOwner(apply.FieldOwner)); err != nil {
		return nil, fmt.Errorf("creating the %s key: %w", role, err)
	}
	return secret, nil
}

// followSource takes the step of the ring towards its source that can be taken now.
func (p *ensurePass) followSource(ctx context.Context, role named.KeyRole, source *wire.Key) (named.Keyring, error) {
	name := p.owner.secretKey(named.KeyringSecretName(p.owner.GetName(), role))
	if known, ok := p.Cache.ringOf(name, p.owner.GetUID()); ok && known.Settled(source) {
		if guests, err := p.guestKeys(ctx, role, known.Guests); err != nil || slices.Equal(known.Guests, guests) {
			return known, err
		}
	}
	secret, ring := &corev1.Secret{}, named.Keyring{}
	err := p.Client.Get(ctx, name, secret)
	switch {
	case apierrors.IsNotFound(err):
		secret = nil
	case err != nil:
		return ring, fmt.Errorf("reading the %s keys: %w", role, err)
	default:
		if err := p.owner.checkOwned(secret); err != nil {
			return ring, err
		}
		if ring, err = named.KeyringFromSecret(secret); err != nil {
			return ring, err
		}
	}
	next, changed, err := ring.Follow(role, source, p.keyFacts(role), p.now)
	if err == nil && !changed {
		next, changed, err = p.followGuests(ctx, role, source, ring)
	}
	if err != nil {
		return ring, err
	}
	if changed {
		if err := p.writeRing(ctx, role, name, secret, next); err != nil {
			return ring, err
		}
		p.changed = true
		if was := ring.Names().Active; was != "" && was != next.Names().Active {
			p.Transitions.Emit(p.owner.regarding, corev1.EventTypeNormal, apply.KeyRotated, fmt.Sprintf("every server accepts the new %s key; it signs from now on", role))
		}
		log.FromContext(ctx).Info("key ring changed", "secret", name, "signing", next.Names().Active, "accepted", strings.Join(next.Names().Accepted, " "), "guests", len(next.Guests))
	}
	p.Cache.setRing(name, p.owner.GetUID(), next)
	return next, nil
}

// writeRing stores the ring, unless somebody else has changed it since it was read.
func (p *ensurePass) writeRing(ctx context.Context, role named.KeyRole, name client.ObjectKey, secret *corev1.Secret, ring named.Keyring) error {
	data, err := ring.Data(role)
	if err != nil {
		return err
	}
	if secret == nil {
		err = p.Client.Create(ctx, &corev1.Secret{ObjectMeta: p.owner.ObjectMeta(name), Data: data}, client.FieldOwner(apply.FieldOwner))
	} else {
		err = p.patchSecret(ctx, secret, data)
	}
	if err != nil {
		return fmt.Errorf("writing the %s keys: %w", role, err)
	}
	return nil
}

func (p *ensurePass) patchSecret(ctx context.Context, secret *corev1.Secret, data map[string][]byte) error {
	entries := map[string]any{}
	for name := range secret.Data {
		entries[name] = nil
	}
	for name, value := range data {
		entries[name] = value
	}
	patch, err := apply.MergePatch(secret.ResourceVersion, nil, map[string]any{"data": entries})
	if err != nil {
		return err
	}
	return p.Client.Patch(ctx, secret, patch, client.FieldOwner(apply.FieldOwner))
}

// isRotationDue reports whether a key that was made here has reached the age at which it is replaced.
func (p *ensurePass) isRotationDue(ring named.Keyring, source *corev1.Secret) bool {
	return ring.IsDue(p.owner.settings.Rotation, p.now) && metav1.IsControlledBy(source, p.owner)
}

// replaceKey puts a new key into a Secret that was made here. The ring follows it as it follows a user's change.
func (p *ensurePass) replaceKey(ctx context.Context, role named.KeyRole, source *corev1.Secret) error {
	key, err := named.NewKey(source.Namespace, p.owner.GetName(), role)
	if err != nil {
		return err
	}
	if err := p.patchSecret(ctx, source, named.KeyData(key)); err != nil {
		return fmt.Errorf("replacing the %s key: %w", role, err)
	}
	log.FromContext(ctx).Info("key replaced", "secret", source.Namespace+"/"+source.Name)
	return nil
}

// grantKey lets accounts read exactly this one Secret of the namespace.
func (p *ensurePass) grantKey(ctx context.Context, role named.KeyRole, accounts ...client.ObjectKey) error {
	secret := named.KeyringSecretName(p.owner.GetName(), role)
	name := secret + "-reader"
	binding := rbacv1ac.RoleBinding(name, p.owner.Namespace).WithLabels(p.owner.Labels()).WithOwnerReferences(p.owner.Reference()).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("Role").WithName(name))
	for _, account := range accounts {
		binding.WithSubjects(rbacv1ac.Subject().WithKind("ServiceAccount").WithNamespace(account.Namespace).WithName(account.Name))
	}
	return p.Children.Apply(ctx,
		rbacv1ac.Role(name, p.owner.Namespace).WithLabels(p.owner.Labels()).WithOwnerReferences(p.owner.Reference()).
			WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("secrets").WithResourceNames(secret).WithVerbs("get")),
		binding)
}

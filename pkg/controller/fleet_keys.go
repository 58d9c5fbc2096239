package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// How often the Secrets that keys come from are looked at, and the servers that a changed key is on its way to.
const (
	sourcePace   = 15 * time.Second
	rotationPace = 2 * time.Second
)

// keyOwner is the object whose keys they are: a cluster, or an instance without one.
type keyOwner struct {
	metav1.Object
	kind schema.GroupVersionKind
	// namespace of the Secrets: the owner's own, or that of a cluster-scoped cluster's instances.
	namespace string
	settings  named.KeySettings
	// pods are the labels of the servers that have the keys.
	pods map[string]string
}

func (o keyOwner) secret(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: o.namespace, Name: name}
}

func (o keyOwner) meta(name client.ObjectKey) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: name.Namespace, Name: name.Name,
		Labels: map[string]string{named.LabelName: named.AppName, named.LabelPartOf: o.GetName(), named.LabelManagedBy: named.Manager},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: o.kind.GroupVersion().String(), Kind: o.kind.Kind, Name: o.GetName(), UID: o.GetUID(),
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}
}

// keysPass is one look at the keys of one owner.
type keysPass struct {
	deps   Deps
	client client.Client
	owner  keyOwner
	now    time.Time
	// servers answer once in a pass, if they are asked at all.
	servers func(context.Context) []keyServer
	changed bool
}

// ensureKeys makes the owner's TSIG keys where they are missing, lets the API server read the transfer key, and takes a
// step of the rotation of a key that has changed. again is when to look again, changed tells of a step.
func ensureKeys(ctx context.Context, a *applier, deps Deps, owner keyOwner, now time.Time) (again time.Duration, changed bool, err error) {
	p := &keysPass{deps: deps, client: a.client, owner: owner, now: now}
	p.servers = p.askOnce()
	again = sourcePace
	given := map[string]named.KeyRole{named.ControlKeyName + ".": "control"}
	for _, role := range []named.KeyRole{named.KeyUpdate, named.KeyTransfer} {
		source, secret, err := p.source(ctx, role)
		if err != nil {
			return 0, false, err
		}
		if other, taken := given[source.Name]; taken {
			return 0, false, fmt.Errorf("%w in Secret %s/%s: the name %s is that of the %s key; give it another", named.ErrKey,
				secret.Namespace, secret.Name, source.Name, other)
		}
		given[source.Name] = role
		ring, err := p.follow(ctx, role, source)
		if err != nil {
			return 0, false, err
		}
		switch {
		case !ring.Settled(source):
			again = rotationPace
		case p.due(ring, secret):
			if err := p.replace(ctx, role, secret); err != nil {
				return 0, false, err
			}
			again = rotationPace
		}
	}
	return again, p.changed, grantTransferKey(ctx, a, deps, owner)
}

// source reads the key that a ring follows: a user's own, else one that is made when it is missing.
func (p *keysPass) source(ctx context.Context, role named.KeyRole) (*wire.Key, *corev1.Secret, error) {
	name, ref := p.owner.secret(named.KeySecretName(p.owner.GetName(), role)), p.owner.settings.Ref
	if role != named.KeyUpdate {
		ref = nil
	}
	if ref != nil {
		name.Name = ref.Name
	}
	secret := &corev1.Secret{}
	err := p.client.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) && ref == nil {
		if secret, err = p.create(ctx, role, name); err != nil {
			return nil, nil, err
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the %s key: %w", role, err)
	}
	var key *wire.Key
	if ref != nil {
		key, err = named.KeyFromRef(secret, *ref)
	} else {
		key, err = named.KeyFromSecret(secret)
	}
	return key, secret, err
}

func (p *keysPass) create(ctx context.Context, role named.KeyRole, name client.ObjectKey) (*corev1.Secret, error) {
	key, err := named.NewKey(name.Namespace, p.owner.GetName(), role)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: p.owner.meta(name), Data: named.KeyData(key)}
	if err := p.client.Create(ctx, secret, client.FieldOwner(syncevent.FieldOwner)); err != nil {
		return nil, fmt.Errorf("creating the %s key: %w", role, err)
	}
	return secret, nil
}

// follow takes the step of the ring towards its source that can be taken now.
func (p *keysPass) follow(ctx context.Context, role named.KeyRole, source *wire.Key) (named.Keyring, error) {
	name := p.owner.secret(named.KeyringSecretName(p.owner.GetName(), role))
	if known, ok := p.deps.keys.ring(name, p.owner.GetUID()); ok && known.Settled(source) {
		return known, nil
	}
	secret, ring := &corev1.Secret{}, named.Keyring{}
	err := p.client.Get(ctx, name, secret)
	switch {
	case apierrors.IsNotFound(err):
		secret = nil
	case err != nil:
		return ring, fmt.Errorf("reading the %s keys: %w", role, err)
	default:
		if err := p.owns(secret); err != nil {
			return ring, err
		}
		if ring, err = named.KeyringFromSecret(secret); err != nil {
			return ring, err
		}
	}
	next, changed, err := ring.Follow(role, source, p.facts(ctx, role), p.now)
	if err != nil {
		return ring, err
	}
	if changed {
		if err := p.write(ctx, role, name, secret, next); err != nil {
			return ring, err
		}
		p.changed = true
		log.FromContext(ctx).Info("key ring changed", "secret", name, "signing", next.Names().Active, "accepted", strings.Join(next.Names().Accepted, " "))
	}
	p.deps.keys.put(name, p.owner.GetUID(), next)
	return next, nil
}

// owns refuses a ring of somebody else: a cluster and an instance of the same name would else share their keys, and the
// deletion of one would take them from the other.
func (p *keysPass) owns(ring *corev1.Secret) error {
	owner := metav1.GetControllerOf(ring)
	if owner != nil && owner.UID == p.owner.GetUID() {
		return nil
	}
	who := "nobody"
	if owner != nil {
		who = owner.Kind + " " + owner.Name
	}
	return fmt.Errorf("%w for %s %s: Secret %s/%s belongs to %s; clusters and instances without one need different names in a namespace",
		named.ErrKey, p.owner.kind.Kind, p.owner.GetName(), ring.Namespace, ring.Name, who)
}

// write stores the ring, unless somebody else has changed it since it was read.
func (p *keysPass) write(ctx context.Context, role named.KeyRole, name client.ObjectKey, secret *corev1.Secret, ring named.Keyring) error {
	data, err := ring.Data(role)
	if err != nil {
		return err
	}
	if secret == nil {
		err = p.client.Create(ctx, &corev1.Secret{ObjectMeta: p.owner.meta(name), Data: data}, client.FieldOwner(syncevent.FieldOwner))
	} else {
		err = p.patch(ctx, secret, data)
	}
	if err != nil {
		return fmt.Errorf("writing the %s keys: %w", role, err)
	}
	return nil
}

func (p *keysPass) patch(ctx context.Context, secret *corev1.Secret, data map[string][]byte) error {
	before := secret.DeepCopy()
	secret.Data = data
	return p.client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(syncevent.FieldOwner))
}

// due tells whether a key that was made here has reached the age at which it is replaced.
func (p *keysPass) due(ring named.Keyring, source *corev1.Secret) bool {
	at := ring.RotateAt(p.owner.settings.Rotation)
	return at != nil && !p.now.Before(at.Time) && metav1.IsControlledBy(source, p.owner)
}

// replace puts a new key into a Secret that was made here. The ring follows it as it follows a user's change.
func (p *keysPass) replace(ctx context.Context, role named.KeyRole, source *corev1.Secret) error {
	key, err := named.NewKey(source.Namespace, p.owner.GetName(), role)
	if err != nil {
		return err
	}
	if err := p.patch(ctx, source, named.KeyData(key)); err != nil {
		return fmt.Errorf("replacing the %s key: %w", role, err)
	}
	log.FromContext(ctx).Info("key replaced", "secret", source.Namespace+"/"+source.Name)
	return nil
}

// grantTransferKey lets the aggregated API server read exactly this one Secret of the namespace.
func grantTransferKey(ctx context.Context, a *applier, deps Deps, owner keyOwner) error {
	secret := named.KeyringSecretName(owner.GetName(), named.KeyTransfer)
	labels := map[string]string{named.LabelName: named.AppName, named.LabelPartOf: owner.GetName(), named.LabelManagedBy: named.Manager}
	reference := named.OwnerReference(owner.kind.GroupVersion().String(), owner.kind.Kind, owner)
	role := rbacv1ac.Role(secret+"-reader", owner.namespace).WithLabels(labels).WithOwnerReferences(reference).
		WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("secrets").WithResourceNames(secret).WithVerbs("get"))
	binding := rbacv1ac.RoleBinding(secret+"-reader", owner.namespace).WithLabels(labels).WithOwnerReferences(reference).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("Role").WithName(secret + "-reader")).
		WithSubjects(rbacv1ac.Subject().WithKind("ServiceAccount").WithNamespace(deps.Namespace).WithName(deps.APIServerAccount))
	if err := a.applyUncached(ctx, role); err != nil {
		return err
	}
	return a.applyUncached(ctx, binding)
}

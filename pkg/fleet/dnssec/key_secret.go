package dnssec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// keySecretName names the Secret with the keys of a zone on the servers of owner. A zone that is created again in the same
// namespace finds its keys; one of another namespace must not, so each has a Secret of its own.
func keySecretName(owner keyrotation.Owner, zone *v1beta1.DNSZone) string {
	if zone.Namespace == owner.Namespace {
		return digestedName(owner, declaration.DNSName(zone))
	}
	return digestedName(owner, zone.Namespace+"/"+declaration.DNSName(zone))
}

func digestedName(owner keyrotation.Owner, of string) string {
	digest := sha256.Sum256([]byte(of))
	return owner.GetName() + "-dnssec-" + hex.EncodeToString(digest[:8])
}

// keySecret keeps the keys of a signed zone. Whoever reads it can sign as the zone, so one account may: that of the pod that
// signs. Not the accounts of its secondaries, nor those of the zone's other primaries.
type keySecret struct {
	name        string
	annotations map[string]string
	owner       keyrotation.Owner
	signer      *v1beta1.Bind9Instance
}

// secret has no entries of its own: they are the sidecar's, or a user's.
func (s keySecret) secret() *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(s.name, s.owner.Namespace).
		WithLabels(s.owner.Labels()).WithAnnotations(s.annotations).WithOwnerReferences(s.owner.Reference())
}

// role is the right to the Secret, and to no other.
func (s keySecret) role() *rbacv1ac.RoleApplyConfiguration {
	return rbacv1ac.Role(s.name, s.owner.Namespace).
		WithLabels(s.owner.Labels()).WithAnnotations(s.annotations).WithOwnerReferences(s.owner.Reference()).
		WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("secrets").WithResourceNames(s.name).WithVerbs("get", "patch"))
}

// binding grants the right to the signer. Another signer takes it from the one before.
func (s keySecret) binding() *rbacv1ac.RoleBindingApplyConfiguration {
	return rbacv1ac.RoleBinding(s.name, s.owner.Namespace).
		WithLabels(s.owner.Labels()).WithAnnotations(s.annotations).WithOwnerReferences(s.owner.Reference()).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("Role").WithName(s.name)).
		WithSubjects(rbacv1ac.Subject().WithKind("ServiceAccount").
			WithNamespace(s.signer.Namespace).WithName(named.ServiceAccountName(s.signer.Name)))
}

// EnsureKeySecret makes the Secret for the zone's keys, if one keeps them, and lets the zone's signer use it. A Secret that a user
// made is used if it names the zone.
func (s Signing) EnsureKeySecret(ctx context.Context, c client.Client, children *apply.Children, zone *v1beta1.DNSZone) error {
	name := s.KeySecretName(zone)
	if name == "" {
		return nil
	}
	keys := keySecret{name: name, annotations: map[string]string{v1beta1.ZoneAnnotation: zone.Spec.ZoneName}, owner: s.owner, signer: s.Signer}
	if !children.IsKnown(keys.secret()) {
		if err := s.copyFormerKeys(ctx, c, zone); err != nil {
			return err
		}
	}
	err := children.Apply(ctx, keys.secret())
	if errors.Is(err, apply.ErrForeign) {
		err = keys.checkUsers(ctx, c, err)
	}
	if err != nil {
		return err
	}
	return children.Apply(ctx, keys.role(), keys.binding())
}

// checkUsers accepts a Secret that is not ours if it has the annotation with the zone's name; otherwise it returns the refusal.
func (s keySecret) checkUsers(ctx context.Context, c client.Reader, refusal error) error {
	var theirs corev1.Secret
	if err := c.Get(ctx, client.ObjectKey{Namespace: s.owner.Namespace, Name: s.name}, &theirs); err != nil {
		return err
	}
	if want := s.annotations[v1beta1.ZoneAnnotation]; theirs.Annotations[v1beta1.ZoneAnnotation] != want {
		return fmt.Errorf("%w; if it holds keys for the zone, annotate it with %s=%s", refusal, v1beta1.ZoneAnnotation, want)
	}
	return nil
}

// copyFormerKeys gives a signed zone the keys that it shared, by its name alone, with the zones of other namespaces: earlier
// versions kept them so. Only a zone that is signed with them at this moment gets them.
func (s Signing) copyFormerKeys(ctx context.Context, c client.Client, zone *v1beta1.DNSZone) error {
	former := client.ObjectKey{Namespace: s.owner.Namespace, Name: digestedName(s.owner, declaration.DNSName(zone))}
	if zone.Namespace == s.owner.Namespace || zone.Status.DNSSEC == nil || !zone.Status.DNSSEC.Signed {
		return nil
	}
	var old corev1.Secret
	if err := c.Get(ctx, former, &old); err != nil {
		return client.IgnoreNotFound(err)
	}
	own := client.ObjectKey{Namespace: former.Namespace, Name: keySecretName(s.owner, zone)}
	// With another field owner: what is applied has no entries, and would remove these.
	err := c.Create(ctx, &corev1.Secret{ObjectMeta: s.owner.ObjectMeta(own), Data: old.Data}, client.FieldOwner(apply.FieldOwner+"-keys"))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

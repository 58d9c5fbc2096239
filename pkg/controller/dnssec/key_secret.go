package dnssec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/apply"
	"github.com/lockstep-dns/lockstep/pkg/controller/tsigkeys"
	"github.com/lockstep-dns/lockstep/pkg/named"
)

// keySecretName names the Secret with the keys of a zone on the servers of a cluster, or of an instance that stands alone. A
// zone that is made anew there finds its keys again.
func keySecretName(owner, zone string) string {
	digest := sha256.Sum256([]byte(zone))
	return owner + "-dnssec-" + hex.EncodeToString(digest[:8])
}

// keySecret keeps the keys of a signed zone. Whoever reads it can sign as the zone, so one account may: that of the pod that
// signs. Not the accounts of its secondaries, nor those of the zone's other primaries.
type keySecret struct {
	name        string
	annotations map[string]string
	owner       tsigkeys.Owner
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

// EnsureKeySecret makes the Secret for the zone's keys, if one keeps them, and lets the zone's signer use it.
func (s Signing) EnsureKeySecret(ctx context.Context, children *apply.Children, zone *v1beta1.DNSZone) error {
	name := s.KeySecretName(zone)
	if name == "" {
		return nil
	}
	keys := keySecret{name: name, annotations: map[string]string{v1beta1.ZoneAnnotation: zone.Spec.ZoneName}, owner: s.owner, signer: s.Signer}
	return children.Apply(ctx, keys.secret(), keys.role(), keys.binding())
}

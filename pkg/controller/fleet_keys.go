package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// keyOwner is the object whose keys they are: a cluster, or an instance without one.
type keyOwner struct {
	metav1.Object
	kind schema.GroupVersionKind
	// namespace of the Secrets: the owner's own, or that of a cluster-scoped cluster's instances.
	namespace string
}

// ensureKeys makes the owner's TSIG keys where they are missing and lets the API server read the transfer key. A Secret
// that is there already is used as it is.
func ensureKeys(ctx context.Context, a *applier, deps Deps, owner keyOwner) error {
	for _, role := range []named.KeyRole{named.KeyUpdate, named.KeyTransfer} {
		if err := ensureKey(ctx, a.client, owner, role); err != nil {
			return err
		}
	}
	return grantTransferKey(ctx, a, deps, owner)
}

func ensureKey(ctx context.Context, c client.Client, owner keyOwner, role named.KeyRole) error {
	name := client.ObjectKey{Namespace: owner.namespace, Name: named.KeySecretName(owner.GetName(), role)}
	secret := &corev1.Secret{}
	err := c.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return createKey(ctx, c, owner, role, name)
	}
	if err != nil {
		return fmt.Errorf("reading the %s key: %w", role, err)
	}
	key, err := named.KeyFromSecret(secret)
	if err != nil {
		return err
	}
	// A Secret that somebody else made may lack the clause that named includes.
	clause := named.KeyData(key)[named.KeyClauseEntry]
	if string(secret.Data[named.KeyClauseEntry]) == string(clause) {
		return nil
	}
	patch := corev1ac.Secret(name.Name, name.Namespace).WithData(map[string][]byte{named.KeyClauseEntry: clause})
	if err := c.Apply(ctx, patch, client.FieldOwner(syncevent.FieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("completing Secret %s: %w", name, err)
	}
	return nil
}

func createKey(ctx context.Context, c client.Client, owner keyOwner, role named.KeyRole, name client.ObjectKey) error {
	key, err := named.NewKey(name.Namespace, owner.GetName(), role)
	if err != nil {
		return err
	}
	err = c.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name,
			Labels: map[string]string{named.LabelName: named.AppName, named.LabelPartOf: owner.GetName(), named.LabelManagedBy: named.Manager},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: owner.kind.GroupVersion().String(), Kind: owner.kind.Kind, Name: owner.GetName(), UID: owner.GetUID(),
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Data: named.KeyData(key),
	}, client.FieldOwner(syncevent.FieldOwner))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the %s key: %w", role, err)
	}
	return nil
}

// grantTransferKey lets the aggregated API server read exactly this one Secret of the namespace.
func grantTransferKey(ctx context.Context, a *applier, deps Deps, owner keyOwner) error {
	secret := named.KeySecretName(owner.GetName(), named.KeyTransfer)
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

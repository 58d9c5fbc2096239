package inventory

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrNotEnrolled means that this process may not run servers in a namespace.
var ErrNotEnrolled = errors.New("not enrolled")

// NamespaceRole is the ClusterRole with the rights to run servers in a namespace, and the name of the RoleBinding that grants
// them there.
const NamespaceRole = "lockstep-fleet-namespace"

// NamespaceRights finds out in which namespaces this process may run servers.
type NamespaceRights struct {
	Client client.Client
	// Account is that of this process, by namespace and name.
	Account client.ObjectKey
}

// Explain puts an error that wraps ErrNotEnrolled in place of one that says that something is forbidden in a namespace, if the reason is
// that this process may not run servers there. What a quota or admission forbids has another reason.
func (r NamespaceRights) Explain(ctx context.Context, namespace string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Group: "apps", Resource: "statefulsets"},
	}}
	if failure := r.Client.Create(ctx, review); failure != nil {
		return errors.Join(err, fmt.Errorf("asking for the rights in namespace %s: %w", namespace, failure))
	}
	if review.Status.Allowed {
		return err
	}
	return fmt.Errorf("namespace %[1]s is %[2]w, so no servers can run in it; an administrator enrolls it with: "+
		"kubectl create rolebinding %[3]s --namespace=%[1]s --clusterrole=%[3]s --serviceaccount=%[4]s:%[5]s",
		namespace, ErrNotEnrolled, NamespaceRole, r.Account.Namespace, r.Account.Name)
}

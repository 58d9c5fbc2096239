package inventory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Only a namespace in which the fleet manager has no rights is called not enrolled, and no review is sent for other errors.
func TestNamespaceRights(t *testing.T) {
	forbidden := fmt.Errorf("creating: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New("no")))
	for name, c := range map[string]struct {
		err               error
		allowed, enrolled bool
		reviews           int
	}{
		"no error":                {nil, false, true, 0},
		"another error":           {errors.New("away"), false, true, 0},
		"a quota":                 {forbidden, true, true, 1},
		"no rights":               {forbidden, false, false, 1},
		"no rights, among others": {errors.Join(errors.New("away"), forbidden), false, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			reviews := 0
			kube := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					review := o.(*authorizationv1.SelfSubjectAccessReview)
					if attributes := review.Spec.ResourceAttributes; attributes.Namespace != "dns" {
						t.Errorf("asks about %+v", attributes)
					}
					review.Status.Allowed = c.allowed
					reviews++
					return nil
				},
			}).Build()
			rights := NamespaceRights{kube, client.ObjectKey{Namespace: "lockstep-system", Name: "lockstep-fleet"}}
			got := rights.Explain(t.Context(), "dns", c.err)
			if errors.Is(got, ErrNotEnrolled) == c.enrolled || reviews != c.reviews || (got == nil) != (c.err == nil) {
				t.Errorf("%v after %d reviews", got, reviews)
			}
			const command = "kubectl create rolebinding lockstep-fleet-namespace --namespace=dns --clusterrole=lockstep-fleet-namespace --serviceaccount=lockstep-system:lockstep-fleet"
			if !c.enrolled && !strings.HasSuffix(got.Error(), command) {
				t.Errorf("%q does not say what to do", got)
			}
		})
	}
}

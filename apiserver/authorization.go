package apiserver

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// allNamesFirst authorizes a request for one object by the right to all objects of its resource in its namespace, and asks
// about the name only where that is lacking. A SubjectAccessReview without a name is about all of them
// (ResourceAttributes in authorization.k8s.io/v1), and its answer is remembered for some seconds: a client that asks
// about a thousand records has one review made by kube-apiserver, not a thousand that are answered the same.
func allNamesFirst(a authorizer.Authorizer) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, one authorizer.Attributes) (authorizer.Decision, string, error) {
		if one.IsResourceRequest() && one.GetName() != "" {
			decision, reason, err := a.Authorize(ctx, withoutName{one})
			if decision == authorizer.DecisionAllow || err != nil {
				return decision, reason, err
			}
		}
		return a.Authorize(ctx, one)
	})
}

type withoutName struct{ authorizer.Attributes }

func (withoutName) GetName() string { return "" }

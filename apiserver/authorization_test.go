package apiserver

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestARightToAllNamesIsAskedForFirst(t *testing.T) {
	unreachable := errors.New("kube-apiserver is out of reach")
	for _, c := range []struct {
		who     string
		allowed []string // names; "" for all of them
		request authorizer.AttributesRecord
		err     error
		want    authorizer.Decision
		asked   []string
	}{
		{who: "viewer", allowed: []string{""}, request: resource("arecord.www"), want: authorizer.DecisionAllow, asked: []string{""}},
		{who: "one name", allowed: []string{"arecord.www"}, request: resource("arecord.www"), want: authorizer.DecisionAllow, asked: []string{"", "arecord.www"}},
		{who: "another name", allowed: []string{"arecord.mail"}, request: resource("arecord.www"), want: authorizer.DecisionNoOpinion, asked: []string{"", "arecord.www"}},
		{who: "nobody", request: resource("arecord.www"), want: authorizer.DecisionNoOpinion, asked: []string{"", "arecord.www"}},
		{who: "viewer lists", allowed: []string{""}, request: resource(""), want: authorizer.DecisionAllow, asked: []string{""}},
		{who: "nobody lists", request: resource(""), want: authorizer.DecisionNoOpinion, asked: []string{""}},
		{who: "a path", request: authorizer.AttributesRecord{Path: "/metrics"}, want: authorizer.DecisionNoOpinion, asked: []string{""}},
		{who: "no answer", request: resource("arecord.www"), err: unreachable, want: authorizer.DecisionNoOpinion, asked: []string{""}},
	} {
		t.Run(c.who, func(t *testing.T) {
			var asked []string
			a := allNamesFirst(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				asked = append(asked, a.GetName())
				for _, name := range c.allowed {
					if name == a.GetName() {
						return authorizer.DecisionAllow, "", nil
					}
				}
				return authorizer.DecisionNoOpinion, "no", c.err
			}))
			got, _, err := a.Authorize(t.Context(), c.request)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %v, %v; want %v, %v", got, err, c.want, c.err)
			}
			if diff := cmp.Diff(c.asked, asked); diff != "" {
				t.Errorf("names asked about (-want +got):\n%s", diff)
			}
		})
	}
}

func resource(name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{Verb: "get", Namespace: "dns", Resource: "syncstatuses", Name: name, ResourceRequest: true}
}

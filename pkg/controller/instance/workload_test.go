package instance

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// TestTokenReviewers: the sidecars of all instances may check tokens, whatever order the cache has them in.
func TestTokenReviewers(t *testing.T) {
	var instances []*v1beta1.Bind9Instance
	for _, name := range []string{"b", "a"} {
		for _, namespace := range []string{"two", "one"} {
			instances = append(instances, &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		}
	}
	var got []string
	for _, s := range tokenReviewers(instances).Subjects {
		got = append(got, *s.Namespace+"/"+*s.Name)
	}
	if want := []string{"one/a-bind9", "one/b-bind9", "two/a-bind9", "two/b-bind9"}; !slices.Equal(got, want) {
		t.Errorf("subjects %q, want %q", got, want)
	}
	if instances[0].Name != "b" {
		t.Error("the cache's list was sorted in place")
	}
}

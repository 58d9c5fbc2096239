package dnssec

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// TestSigningEnds: a zone that is to be signed no more stays so while resolvers may have DS records from a zone that is declared here.
func TestSigningEnds(t *testing.T) {
	primary := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "a"}}
	primary.Spec.Role = v1beta1.RolePrimary
	zone := &v1beta1.DNSZone{}
	zone.Spec.DNSSECPolicy = "insecure"
	for name, c := range map[string]struct {
		last *v1beta1.DNSSECStatus
		want string
	}{
		"never signed":            {nil, "insecure"},
		"a parent elsewhere":      {&v1beta1.DNSSECStatus{Policy: "default"}, "insecure"},
		"a parent here":           {&v1beta1.DNSSECStatus{Policy: "default", Delegation: &v1beta1.SecureDelegation{}}, "default"},
		"no resolver can have it": {&v1beta1.DNSSECStatus{Policy: "default", Delegation: &v1beta1.SecureDelegation{SigningMayEnd: true}}, "insecure"},
		"the signatures go":       {&v1beta1.DNSSECStatus{Policy: "insecure", Delegation: &v1beta1.SecureDelegation{}}, "insecure"},
	} {
		zone.Status.DNSSEC = c.last
		s, err := SigningOf(t.Context(), fake.NewClientBuilder().Build(), zone, []*v1beta1.Bind9Instance{primary}, "dns")
		if err != nil || s.Policy != c.want || !s.Ends() {
			t.Errorf("%s: policy %q, ends %t, %v; want %q", name, s.Policy, s.Ends(), err, c.want)
		}
	}
}

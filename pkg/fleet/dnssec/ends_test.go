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

// TestPolicyWaits: a signed zone keeps its policy while a parent may have a DS record of which the signer does not know.
func TestPolicyWaits(t *testing.T) {
	primary := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "a"}}
	primary.Spec.Role = v1beta1.RolePrimary
	key := func(published, confirmed bool) *v1beta1.SecureDelegation {
		return &v1beta1.SecureDelegation{Keys: []v1beta1.DelegatedKey{{Published: true, Confirmed: true}, {Published: published, Confirmed: confirmed}}}
	}
	for name, c := range map[string]struct {
		last, next string
		delegation *v1beta1.SecureDelegation
		want       string
	}{
		"nobody delegates it":      {"default", "other", nil, "other"},
		"no DS record yet":         {"default", "other", key(false, false), "other"},
		"the signer is not told":   {"default", "other", key(true, false), "default"},
		"the signer is told":       {"default", "other", key(true, true), "other"},
		"the record is withdrawn":  {"default", "other", key(false, true), "other"},
		"nothing is to be changed": {"default", "default", key(true, false), "default"},
		"it was unsigned":          {"insecure", "other", key(true, false), "other"},
	} {
		zone := &v1beta1.DNSZone{}
		zone.Spec.DNSSECPolicy, zone.Status.DNSSEC = c.next, &v1beta1.DNSSECStatus{Policy: c.last, Delegation: c.delegation}
		s, err := SigningOf(t.Context(), fake.NewClientBuilder().Build(), zone, []*v1beta1.Bind9Instance{primary}, "dns")
		if err != nil || s.Policy != c.want || (s.Remark(zone.Status.DNSSEC) != "") != (c.want != c.next) {
			t.Errorf("%s: policy %q, %q, %v; want %q", name, s.Policy, s.Remark(zone.Status.DNSSEC), err, c.want)
		}
	}
}

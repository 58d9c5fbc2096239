package render

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// Servers of one name in two namespaces are two servers: what is broken on the second is not left out for the first.
func TestChainOfTwoNamespaces(t *testing.T) {
	in := func(namespace string, security v1alpha1.Security) v1alpha1.SyncStatus {
		return v1alpha1.SyncStatus{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "arecord.www"},
			Chain: []v1alpha1.ChainLink{
				{Name: "example.com.", Type: "DS", Security: v1alpha1.SecuritySecure},
				{Server: "dns-0", Name: "www.example.com.", Type: "A", Security: security, SecurityCause: "Signature Expired", Message: "of yesterday"},
			},
			Status: v1alpha1.SyncStatusStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionValidated, Status: "True", Reason: string(security)}}},
		}
	}
	text := Chain([]v1alpha1.SyncStatus{in("inside", v1alpha1.SecuritySecure), in("outside", v1alpha1.SecurityBogus)}, false, Palette{})
	for _, want := range []string{"broken: www.example.com. A on outside/dns-0: Signature Expired: of yesterday\n", "inside/arecord.www: Secure", "outside/arecord.www: Bogus"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Count(text, " DS ") != 1 {
		t.Errorf("a link above both is there more than once:\n%s", text)
	}
	if text := Chain([]v1alpha1.SyncStatus{in("inside", v1alpha1.SecuritySecure)}, false, Palette{}); strings.Contains(text, "inside/") {
		t.Errorf("one namespace is named:\n%s", text)
	}
}

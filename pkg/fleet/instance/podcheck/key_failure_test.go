package podcheck

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// An instance fails with a zone if its own servers do not accept the keys, and names no zone of another namespace.
func TestKeyFailure(t *testing.T) {
	instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "a"}}
	zone := func(namespace, on, reason string) *v1beta1.DNSZone {
		z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
		z.Spec.ZoneName = "secret.example"
		z.Status.FailureReason, z.Status.FailureMessage = reason, "update of secret.example.: BADKEY"
		for _, name := range []string{"a", "b"} {
			i := v1beta1.ZoneInstance{Namespace: "dns", Name: name, Status: v1beta1.ZoneConfigured}
			if name == on {
				i.Status = v1beta1.ZoneFailed
			}
			z.Status.Bind9Instances = append(z.Status.Bind9Instances, i)
		}
		return z
	}
	for name, c := range map[string]struct {
		zone  *v1beta1.DNSZone
		fails string
		shows bool
	}{
		"its server does not know the key": {zone("dns", "a", "BadKey"), "BadKey", true},
		"with a zone of another namespace": {zone("team", "a", "BadSignature"), "BadSignature", false},
		"another server does not":          {zone("dns", "b", "BadKey"), "", false},
		"the zone may not be updated":      {zone("dns", "a", "Refused"), "", false},
	} {
		got := keyFailure(instance, []*v1beta1.DNSZone{{}, c.zone})
		if got.Reason != c.fails || strings.Contains(got.Message, "secret.example") != c.shows {
			t.Errorf("%s: %q: %q", name, got.Reason, got.Message)
		}
	}
}

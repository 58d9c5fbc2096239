package attack

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// The authority's key is read by its issuer alone, and each component reads no certificate but its own.
func TestAttack11AuthorityKey(t *testing.T) {
	kube.Isolated(t)
	n := newTenant(t, "authority")
	all := []string{
		certs.SecretName, certs.APIServerSecret, certs.WebhookSecret, certs.ControllerClientSecret, certs.APIServerClientSecret, certs.MetricsClientSecret,
	}
	for _, c := range []struct {
		namespace, account string
		may                []string
	}{
		{system, "lockstep-controller", []string{certs.ControllerClientSecret}},
		{system, "lockstep-apiserver", []string{certs.APIServerSecret, certs.APIServerClientSecret}},
		{system, "lockstep-webhook", []string{certs.WebhookSecret}},
		{system, "default", nil},
		{n.namespace, named.ServiceAccountName("dns-primary-0"), nil},
		{n.namespace, "default", nil},
		{system, "lockstep-fleet", all},
	} {
		as := accountClient(t, c.namespace, c.account)
		may := map[string]bool{}
		for _, secret := range c.may {
			may[secret] = true
		}
		for _, secret := range all {
			switch err := as.Get(t.Context(), client.ObjectKey{Namespace: system, Name: secret}, &corev1.Secret{}); {
			case may[secret] && err != nil:
				t.Errorf("%s: %v", c.account, err)
			case !may[secret] && !apierrors.IsForbidden(err):
				t.Errorf("%s of %s reads Secret %s: %v", c.account, c.namespace, secret, err)
			}
		}
	}
}

package tsigkey

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// ProviderSecrets name the Secrets with the keys of a provider: that for updates, and that for questions and transfers, which may
// be the same. They are zero where the provider has none. Whatever is sent to its servers is signed with one of them.
func ProviderSecrets(p *v1beta1.DNSProvider) (update, transfer types.NamespacedName) {
	if p.Spec.Secondaries != nil && p.Spec.Secondaries.TransferKey != nil {
		transfer = types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.Secondaries.TransferKey.SecretRef.Name}
	}
	if p.Spec.RFC2136 == nil {
		return update, transfer
	}
	update = types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.RFC2136.UpdateKey.SecretRef.Name}
	if transfer = update; p.Spec.RFC2136.TransferKey != nil {
		transfer.Name = p.Spec.RFC2136.TransferKey.SecretRef.Name
	}
	return update, transfer
}

package instance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/named"
)

// certificateInterval is how often the certificate of an instance that nothing happens to is checked. It is renewed when two
// days of its life are left, and a retired authority is trusted for a week.
const certificateInterval = time.Hour

// ensureCertificate keeps the serving certificate of an instance's sidecars in a Secret that only they mount. A new one reaches running
// pods through the kubelet.
func (w *workloads) ensureCertificate(ctx context.Context, workload *named.Workload) error {
	instance := workload.Instance
	key, now := client.ObjectKey{Namespace: instance.Namespace, Name: named.CertificateSecretName(instance.Name)}, time.Now()
	if _, ok := w.certificates.Get(key); ok {
		return nil
	}
	authority, err := w.Authority.current(ctx)
	if err != nil {
		return err
	}
	var secret corev1.Secret
	if err := w.client.Get(ctx, key, &secret); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the sidecars' certificate: %w", err)
	}
	name := bindcar.CertificateName(instance.Namespace, instance.Name)
	if !authority.IsUsable(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], now, name) {
		leaf, err := authority.Issue(now, name)
		if err != nil {
			return fmt.Errorf("issuing the sidecars' certificate: %w", err)
		}
		configuration := corev1ac.Secret(key.Name, key.Namespace).WithType(corev1.SecretTypeTLS).
			WithLabels(workload.Labels()).
			WithOwnerReferences(named.OwnerReference(fleet.InstanceKind.GroupVersion().String(), fleet.InstanceKind.Kind, instance)).
			WithData(map[string][]byte{corev1.TLSCertKey: leaf.CertPEM, corev1.TLSPrivateKeyKey: leaf.KeyPEM})
		if err := w.Children.Apply(ctx, configuration); err != nil {
			return fmt.Errorf("writing the sidecars' certificate: %w", err)
		}
		log.FromContext(ctx).Info("certificate issued to the sidecars", "secret", key, "notAfter", leaf.Cert.NotAfter)
	}
	w.certificates.Set(key, true, authorityLifetime)
	return nil
}

package instance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// Authority is the certificate authority, which a certs.Keeper in this process keeps.
type Authority interface {
	State(ctx context.Context) (certs.State, error)
}

// BundleChanges start the reconciliation of all instances when the authorities change that sidecars have to trust.
type BundleChanges chan event.GenericEvent

// Report says that the authorities have changed.
func (c BundleChanges) Report() {
	select {
	case c <- event.GenericEvent{Object: &corev1.Secret{}}:
	default: // It has been said already.
	}
}

// ensureCertificate keeps the serving certificate of an instance's sidecars, with the authorities that verify their callers, in
// a Secret that only they mount. A new one reaches running pods through the kubelet.
func (w *workloads) ensureCertificate(ctx context.Context, workload *named.Workload) error {
	instance := workload.Instance
	authority, err := w.Authority.State(ctx)
	if err != nil {
		return err
	}
	key, now := client.ObjectKey{Namespace: instance.Namespace, Name: named.CertificateSecretName(instance.Name)}, time.Now()
	if checked, ok := w.certificates.Get(instance.UID); ok && checked == string(authority.Bundle()) {
		return nil
	}
	var secret corev1.Secret
	if err := w.client.Get(ctx, key, &secret); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the sidecars' certificate: %w", err)
	}
	subject := certs.Subject{DNSNames: []string{bindcar.CertificateName(instance.Namespace, instance.Name)}}
	if !authority.IsCurrent(secret.Data, now, subject) {
		data, err := authority.Issue(now, subject)
		if err != nil {
			return fmt.Errorf("issuing the sidecars' certificate: %w", err)
		}
		configuration := corev1ac.Secret(key.Name, key.Namespace).WithType(corev1.SecretTypeTLS).
			WithLabels(workload.Labels()).
			WithOwnerReferences(named.OwnerReference(inventory.InstanceKind.GroupVersion().String(), inventory.InstanceKind.Kind, instance)).
			WithData(data)
		if err := w.Children.Apply(ctx, configuration); err != nil {
			return fmt.Errorf("writing the sidecars' certificate: %w", err)
		}
		log.FromContext(ctx).Info("certificate issued to the sidecars", "secret", key)
	}
	w.certificates.Set(instance.UID, string(authority.Bundle()), apply.RereadAfter)
	return nil
}

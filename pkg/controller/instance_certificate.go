package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// certificatePace is how often the certificate of an instance that nothing happens to is looked at. It is renewed when two
// days of its life are left, and a retired authority is trusted for a week.
const certificatePace = time.Hour

// certificates remembers when the certificate of an instance was last seen to stand.
type certificates struct {
	mu   sync.Mutex
	seen map[client.ObjectKey]time.Time
}

func (c *certificates) fresh(key client.ObjectKey, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.seen[key]
	return ok && now.Sub(at) < keyLife
}

func (c *certificates) note(key client.ObjectKey, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[client.ObjectKey]time.Time{}
	}
	c.seen[key] = now
}

// ensureCertificate keeps the serving certificate of the instance's sidecars in a Secret that only they mount. A new one
// reaches running pods through the kubelet.
func (p *instancePass) ensureCertificate(ctx context.Context) error {
	key, now := client.ObjectKey{Namespace: p.instance.Namespace, Name: named.CertificateSecretName(p.instance.Name)}, p.now()
	if p.certificates.fresh(key, now) {
		return nil
	}
	authority, err := p.authority.get(ctx)
	if err != nil {
		return err
	}
	var secret corev1.Secret
	if err := p.client.Get(ctx, key, &secret); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the sidecars' certificate: %w", err)
	}
	name := bindcar.CertificateName(p.instance.Namespace, p.instance.Name)
	if !authority.Stands(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], now, name) {
		leaf, err := authority.Issue(now, name)
		if err != nil {
			return fmt.Errorf("issuing the sidecars' certificate: %w", err)
		}
		apply := corev1ac.Secret(key.Name, key.Namespace).WithType(corev1.SecretTypeTLS).
			WithLabels(p.workload.Labels()).
			WithOwnerReferences(named.OwnerReference(instanceKind.GroupVersion().String(), instanceKind.Kind, p.instance)).
			WithData(map[string][]byte{corev1.TLSCertKey: leaf.CertPEM, corev1.TLSPrivateKeyKey: leaf.KeyPEM})
		if err := p.client.Apply(ctx, apply, client.FieldOwner(syncevent.FieldOwner), client.ForceOwnership); err != nil {
			return fmt.Errorf("writing Secret %s with the sidecars' certificate: %w", key, err)
		}
		log.FromContext(ctx).Info("certificate issued to the sidecars", "secret", key, "notAfter", leaf.Cert.NotAfter)
	}
	p.certificates.note(key, now)
	return nil
}

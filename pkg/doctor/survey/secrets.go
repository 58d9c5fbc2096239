package survey

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/doctor"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
)

// certManagerAnnotation names the Certificate of cert-manager that a Secret comes from.
const certManagerAnnotation = "cert-manager.io/certificate-name"

// keyUse is a Secret that an object names.
type keyUse struct {
	secret client.ObjectKey
	owner  string
	// check returns what is wrong with the Secret.
	check func(*corev1.Secret) error
}

func (s *Survey) addKey(o client.Object, kind, namespace, secret string, check func(*corev1.Secret) error) {
	if secret == "" {
		return
	}
	owner := kind + " " + o.GetName()
	if o.GetNamespace() != "" {
		owner = kind + " " + o.GetNamespace() + "/" + o.GetName()
	}
	s.keys = append(s.keys, keyUse{client.ObjectKey{Namespace: namespace, Name: secret}, owner, check})
}

func (s *Survey) addInstance(f *doctor.Facts, i *v1beta1.Bind9Instance) {
	certificate := fact[doctor.Certificate]("get secrets", i.Namespace)
	certificate.Value.Secret = client.ObjectKey{Namespace: i.Namespace, Name: named.CertificateSecretName(i.Name)}
	certificate.Value.Name = bindcar.CertificateName(i.Namespace, i.Name)
	f.Sidecars = append(f.Sidecars, certificate)
	if i.Spec.ClusterRef == "" {
		s.addKeys(i, "Bind9Instance", i.Namespace, named.StandaloneKeys(&i.Spec))
	}
}

// addKeys adds the keyrings of a cluster or of an instance that stands alone, and the key that a user has given it.
func (s *Survey) addKeys(o client.Object, kind, namespace string, settings named.KeySettings) {
	for _, role := range []named.KeyRole{named.KeyUpdate, named.KeyTransfer} {
		s.addKey(o, kind, namespace, named.KeyringSecretName(o.GetName(), role), checkKeyring)
	}
	if ref := settings.Ref; ref != nil {
		s.addKey(o, kind, namespace, ref.Name, func(secret *corev1.Secret) error { _, err := named.KeyFromRef(secret, *ref); return err })
	}
}

func (s *Survey) addProvider(p *v1beta1.DNSProvider) {
	update, transfer := tsigkey.ProviderSecrets(p)
	s.addKey(p, "DNSProvider", p.Namespace, update.Name, checkKey)
	if transfer.Name != update.Name {
		s.addKey(p, "DNSProvider", p.Namespace, transfer.Name, checkKey)
	}
	if p.Spec.CoreDNS == nil {
		return
	}
	if ref := p.Spec.CoreDNS.Etcd.TLSSecretRef; ref != nil {
		s.addKey(p, "DNSProvider", p.Namespace, ref.Name, checkTLS)
	}
	if ref := p.Spec.CoreDNS.Etcd.CredentialsSecretRef; ref != nil {
		s.addKey(p, "DNSProvider", p.Namespace, ref.Name, checkCredentials)
	}
}

func checkKey(secret *corev1.Secret) error { _, err := named.KeyFromSecret(secret); return err }

func checkKeyring(secret *corev1.Secret) error { _, err := named.KeyringFromSecret(secret); return err }

// checkTLS leaves the words of an error of crypto/tls out: what they are about is a key.
func checkTLS(secret *corev1.Secret) error {
	certificate, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(certificate)+len(key) == 0 {
		return nil
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return fmt.Errorf("tls.crt and tls.key in Secret %s/%s are no certificate with its key", secret.Namespace, secret.Name)
	}
	return nil
}

func checkCredentials(secret *corev1.Secret) error {
	if len(secret.Data["username"]) == 0 || len(secret.Data["password"]) == 0 {
		return errors.New("no username or no password in Secret " + client.ObjectKeyFromObject(secret).String())
	}
	return nil
}

// readSecrets reads the Secrets with certificates and keys, each by name. What is secret in them is dropped at once.
func (s *Survey) readSecrets(ctx context.Context, f *doctor.Facts) {
	for service, secret := range map[string]string{"lockstep-apiserver": certs.APIServerSecret, "lockstep-webhook": certs.WebhookSecret} {
		c := fact[doctor.Certificate]("get secrets", s.System)
		c.Value.Secret, c.Value.Name = client.ObjectKey{Namespace: s.System, Name: secret}, certs.ServiceNames(service, s.System)[0]
		f.Serving = append(f.Serving, c)
	}
	for _, secret := range []string{certs.ControllerClientSecret, certs.APIServerClientSecret, certs.MetricsClientSecret} {
		c := fact[doctor.Certificate]("get secrets", s.System)
		c.Value.Secret = client.ObjectKey{Namespace: s.System, Name: secret}
		f.Clients = append(f.Clients, c)
	}
	for _, all := range [][]doctor.Fact[doctor.Certificate]{f.Serving, f.Clients, f.Sidecars} {
		for i := range all {
			s.readCertificate(ctx, &all[i])
		}
	}
	for _, use := range s.keys {
		read := fact[doctor.KeySecret]("get secrets", use.secret.Namespace)
		read.Value.Secret, read.Value.Owner = use.secret, use.owner
		secret := &corev1.Secret{}
		if read.Err = s.client.Get(ctx, use.secret, secret); read.Err == nil {
			if err := use.check(secret); err != nil {
				read.Value.Problem = err.Error()
			}
		}
		f.Keys = append(f.Keys, read)
	}
}

func (s *Survey) readCertificate(ctx context.Context, c *doctor.Fact[doctor.Certificate]) {
	secret := &corev1.Secret{}
	c.Err = s.client.Get(ctx, c.Value.Secret, secret)
	c.Value.Certificate, c.Value.Bundle = secret.Data[corev1.TLSCertKey], secret.Data[certs.BundleKey]
	c.Value.CertManager = secret.Annotations[certManagerAnnotation]
}

package coredns

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// Kind implements host.BackendKind: providers with etcd from which CoreDNS reads.
type Kind struct{}

// Takes implements host.BackendKind.
func (Kind) Takes(p *v1beta1.DNSProvider) bool { return p.Spec.CoreDNS != nil }

// Read implements host.BackendKind.
func (Kind) Read(ctx context.Context, p *v1beta1.DNSProvider, access host.ProviderAccess) (open func() host.Backend, versions string, err error) {
	options, versions, err := readOptions(ctx, p, access)
	return func() host.Backend { return New(options) }, versions, err
}

// Apex implements host.Backend.
func (b *Backend) Apex() string {
	return "CoreDNS answers with NS records of its own at the apex; remove the record"
}

// readOptions reads how a provider's etcd is reached, and the versions of the Secrets that say so.
func readOptions(ctx context.Context, p *v1beta1.DNSProvider, access host.ProviderAccess) (o Options, versions string, err error) {
	if problem := serving.ProviderProblem(p); problem != "" {
		return o, "", errors.New(problem) // It may have been stored before that was refused: then its Secrets are not used.
	}
	etcd := p.Spec.CoreDNS.Etcd
	o = Options{
		Endpoints: etcd.Endpoints, Prefix: etcd.Prefix, Owner: p.Namespace + "/" + p.Name,
		Account: access.Gate.Account(p.Namespace, "DNSProvider "+p.Name+" (etcd)", MaxConnections),
	}
	if ref := etcd.TLSSecretRef; ref != nil {
		secret, err := access.Secret(ctx, p, ref.Name, "ca.crt and, for a client certificate, tls.crt and tls.key")
		if err != nil {
			return o, "", err
		}
		if o.TLS, err = tlsConfig(secret); err != nil {
			return o, "", err
		}
		versions += secret.ResourceVersion
	}
	if ref := etcd.CredentialsSecretRef; ref != nil {
		secret, err := access.Secret(ctx, p, ref.Name, "username and password")
		if err != nil {
			return o, "", err
		}
		o.Username, o.Password = string(secret.Data["username"]), string(secret.Data["password"])
		if o.Username == "" || o.Password == "" {
			return o, "", host.Unusable(fmt.Errorf("the Secret %s has no username or no password: it needs the entries username and password", secret.Name))
		}
		versions += " " + secret.ResourceVersion
	}
	return o, versions, nil
}

// tlsConfig is the configuration that a Secret has: an authority, and for a client a certificate.
func tlsConfig(secret *corev1.Secret) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca := secret.Data["ca.crt"]; len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, host.Unusable(fmt.Errorf("the Secret %s has no certificate in ca.crt: it needs the one of etcd's authority in PEM", secret.Name))
		}
	}
	if cert := secret.Data["tls.crt"]; len(cert) > 0 {
		pair, err := tls.X509KeyPair(cert, secret.Data["tls.key"])
		if err != nil {
			return nil, host.Unusable(fmt.Errorf("the Secret %s has no usable tls.crt and tls.key: %w", secret.Name, err))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

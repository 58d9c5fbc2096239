package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"

	certutil "k8s.io/client-go/util/cert"
)

// requireClientCertificates has the server answer only those who show a certificate of ClientCAFile, if there is one.
func (o *Options) requireClientCertificates(config *tls.Config) error {
	if o.ClientCAFile == "" {
		return nil
	}
	authorities, err := certutil.NewPool(o.ClientCAFile)
	if err != nil {
		return fmt.Errorf("reading --client-ca-file: %w", err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, authorities
	config.VerifyConnection = func(state tls.ConnectionState) error { return checkCommonName(state.PeerCertificates, o.ClientNames) }
	return nil
}

// checkCommonName checks that the common name of a verified certificate is one of those; none means any.
func checkCommonName(chain []*x509.Certificate, names []string) error {
	if len(names) == 0 || len(chain) > 0 && slices.Contains(names, chain[0].Subject.CommonName) {
		return nil
	}
	return fmt.Errorf("the client's certificate has none of the names %q", names)
}

// Package tlsfiles gives servers their certificate, and the authorities that verify their clients, from files that somebody else replaces,
// such as those of a mounted Secret. Sidecars and vantages have them; what reads Secrets itself has pkg/fleet/certs.
package tlsfiles

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"k8s.io/klog/v2"
)

// Files are the PEM files of a server that requires a certificate of every client. It is safe for concurrent use.
type Files struct {
	// Certificate and Key are the server's, ClientCA has the authorities that verify clients; those of the system never do.
	Certificate, Key, ClientCA string

	mu sync.Mutex
	// texts are what config was made of; problem is what kept later ones from being used.
	texts   [3][]byte
	config  *tls.Config
	problem string
}

// ServerConfig returns a configuration with what the files have at each handshake. It is an error if they cannot be used now.
func (f *Files) ServerConfig() (*tls.Config, error) {
	if _, err := f.current(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.current() }}, nil
}

// current returns the configuration for the next connection. Files that cannot be read, or do not fit together because they are just being
// replaced, change nothing.
func (f *Files) current() (*tls.Config, error) {
	texts, err := f.read()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.config != nil && slices.EqualFunc(texts[:], f.texts[:], bytes.Equal) {
		return f.config, nil
	}
	var config *tls.Config
	if err == nil {
		config, err = parse(texts)
	}
	switch {
	case err == nil:
		f.texts, f.config, f.problem = texts, config, ""
		klog.InfoS("certificate loaded", "file", f.Certificate, "expires", config.Certificates[0].Leaf.NotAfter)
	case f.config == nil:
		return nil, err
	case f.problem != err.Error():
		f.problem = err.Error()
		klog.ErrorS(err, "the present certificate stays", "file", f.Certificate)
	}
	return f.config, nil
}

func (f *Files) read() (texts [3][]byte, err error) {
	for i, file := range []string{f.Certificate, f.Key, f.ClientCA} {
		if texts[i], err = os.ReadFile(file); err != nil {
			return texts, err
		}
	}
	return texts, nil
}

func parse(texts [3][]byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, fmt.Errorf("the certificate and its key: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(texts[2]) {
		return nil, errors.New("the authorities of clients: there is no certificate in the file")
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities, MinVersion: tls.VersionTLS13,
		// Each connection is verified with the authorities of its moment.
		SessionTicketsDisabled: true,
	}, nil
}

package bindcar

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// certificatePace is how often the files of the serving certificate are looked at. The kubelet needs up to two minutes to
// bring a new one; it is made days before the old one expires.
const certificatePace = 10 * time.Second

// certificate is the serving certificate, read anew when its files change: a sidecar runs for longer than it lives.
type certificate struct {
	certFile, keyFile string
	// pace is how long what was read is good for.
	pace time.Duration

	mu      sync.Mutex
	pair    *tls.Certificate
	certPEM []byte
	looked  time.Time
}

// loadCertificate reads the files for the first time.
func loadCertificate(certFile, keyFile string) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, pace: certificatePace}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// listen makes a listener one of TLS.
func (c *certificate) listen(plain net.Listener) net.Listener {
	return tls.NewListener(plain, &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS13})
}

// get is for tls.Config. Files that cannot be read, or do not fit together because they are just being replaced, change
// nothing.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) >= c.pace {
		_ = c.load()
	}
	return c.pair, nil
}

func (c *certificate) load() error {
	certPEM, err := os.ReadFile(c.certFile)
	if err != nil {
		return fmt.Errorf("reading the serving certificate: %w", err)
	}
	c.looked = time.Now()
	if c.pair != nil && bytes.Equal(certPEM, c.certPEM) {
		return nil
	}
	keyPEM, err := os.ReadFile(c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the serving certificate's key: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return fmt.Errorf("loading the serving certificate %s: %w", c.certFile, err)
	}
	c.pair, c.certPEM = &pair, certPEM
	return nil
}

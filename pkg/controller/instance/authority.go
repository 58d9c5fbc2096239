package instance

import (
	"context"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/certs"
)

// authorityLifetime is how long the certificate authority that was read stays good. A new one is trusted for much longer
// than that before it signs.
const authorityLifetime = 30 * time.Second

// Authority reads the certificate authority, which a certs.Keeper keeps, when it is needed. It is safe for concurrent use.
type Authority struct {
	reader client.Reader
	secret client.ObjectKey

	mu    sync.Mutex
	state certs.State
	pool  *x509.CertPool
	at    time.Time
}

// NewAuthority returns the Authority in a Secret.
func NewAuthority(reader client.Reader, secret client.ObjectKey) *Authority {
	return &Authority{reader: reader, secret: secret}
}

// Roots returns what a sidecar's certificate is verified with. While the Kubernetes API is away they are those known last.
func (a *Authority) Roots(ctx context.Context) (*x509.CertPool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.refreshLocked(ctx); err != nil && a.pool == nil {
		return nil, err
	}
	return a.pool, nil
}

func (a *Authority) current(ctx context.Context) (certs.State, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.refreshLocked(ctx)
	return a.state, err
}

func (a *Authority) refreshLocked(ctx context.Context) error {
	if a.pool != nil && time.Since(a.at) < authorityLifetime {
		return nil
	}
	var secret corev1.Secret
	if err := a.reader.Get(ctx, a.secret, &secret); err != nil {
		return fmt.Errorf("reading the certificate authority: %w", err)
	}
	state, err := certs.ReadSecret(&secret)
	if err != nil {
		return fmt.Errorf("reading the certificate authority in Secret %s: %w", a.secret, err)
	}
	a.state, a.pool, a.at = state, state.Pool(), time.Now()
	return nil
}

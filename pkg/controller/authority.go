package controller

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

// authority reads the certificate authority that the keeper keeps, when it is needed and not oftener than keyLife. A new
// one is trusted for much longer than that before it signs.
type authority struct {
	reader client.Reader
	secret client.ObjectKey

	mu    sync.Mutex
	state certs.State
	pool  *x509.CertPool
	at    time.Time
}

func (a *authority) get(ctx context.Context) (certs.State, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.refresh(ctx)
	return a.state, err
}

// roots are what a sidecar's certificate is verified with. While the Kubernetes API is away they are those known last.
func (a *authority) roots(ctx context.Context) (*x509.CertPool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.refresh(ctx); err != nil && a.pool == nil {
		return nil, err
	}
	return a.pool, nil
}

func (a *authority) refresh(ctx context.Context) error {
	if a.pool != nil && time.Since(a.at) < keyLife {
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

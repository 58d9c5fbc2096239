package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

type countingListener int

func (c *countingListener) Enqueue() { *c++ }

// servingAt is a Serving whose clock the test holds.
func servingAt(now *time.Time) *Serving {
	s := NewServing(nil, SecretKey("ns"), ServiceNames("a", "b")...)
	s.now = func() time.Time { return *now }
	return s
}

func secretOf(t *testing.T, s State) *corev1.Secret {
	t.Helper()
	secret := newSecret(SecretKey("ns"))
	if err := writeSecret(s, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestServingWaitsForSecret(t *testing.T) {
	now := epoch
	s := servingAt(&now)
	if err := s.Check(nil); !errors.Is(err, ErrNoCertificate) {
		t.Errorf("health check before the Secret: %v", err)
	}
	if _, err := s.GetCertificate(nil); !errors.Is(err, ErrNoCertificate) {
		t.Errorf("handshake before the Secret: %v", err)
	}
	if cert, key := s.CurrentCertKeyContent(); cert != nil || key != nil {
		t.Error("content before the Secret")
	}
	if _, err := s.Roots(t.Context()); !errors.Is(err, ErrNoCertificate) {
		t.Errorf("roots before the Secret: %v", err)
	}
	if err := s.use(secretOf(t, settle(t, State{}, epoch))); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(nil); err != nil {
		t.Errorf("health check after the Secret: %v", err)
	}
	if cert, key := s.CurrentCertKeyContent(); cert == nil || key == nil {
		t.Error("no content after the Secret")
	}
	if roots, err := s.Roots(t.Context()); err != nil || roots == nil {
		t.Errorf("no roots after the Secret: %v", err)
	}
}

func TestServingRenews(t *testing.T) {
	first := settle(t, State{}, epoch)
	second := settle(t, State{}, epoch)
	tests := map[string]struct {
		change func(t *testing.T, s *Serving, now *time.Time)
		want   bool
	}{
		"nothing happens":   {func(*testing.T, *Serving, *time.Time) {}, false},
		"half of its life":  {func(_ *testing.T, _ *Serving, now *time.Time) { *now = now.Add(84 * time.Hour) }, false},
		"two thirds":        {func(_ *testing.T, _ *Serving, now *time.Time) { *now = now.Add(112 * time.Hour) }, true},
		"clock set back":    {func(_ *testing.T, _ *Serving, now *time.Time) { *now = now.Add(-3 * time.Hour) }, true},
		"clock set forward": {func(_ *testing.T, _ *Serving, now *time.Time) { *now = now.AddDate(0, 2, 0) }, true},
		"same authority":    {func(t *testing.T, s *Serving, _ *time.Time) { useSecret(t, s, first) }, false},
		"another authority": {func(t *testing.T, s *Serving, _ *time.Time) { useSecret(t, s, second) }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := epoch
			s := servingAt(&now)
			useSecret(t, s, first)
			var told countingListener
			s.AddListener(&told)
			before, err := s.GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			tc.change(t, s, &now)
			after, err := s.GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := before != after; got != tc.want {
				t.Errorf("renewed = %v, want %v", got, tc.want)
			}
			if (told > 0) != tc.want {
				t.Errorf("listeners told %d times", told)
			}
		})
	}
}

func useSecret(t *testing.T, s *Serving, state State) {
	t.Helper()
	if err := s.use(secretOf(t, state)); err != nil {
		t.Fatal(err)
	}
}

func TestServingKeepsCertificateWhenSecretIsUnusable(t *testing.T) {
	now := epoch
	s := servingAt(&now)
	useSecret(t, s, settle(t, State{}, epoch))
	if err := s.use(newSecret(SecretKey("ns"))); err == nil {
		t.Error("an empty Secret was accepted")
	}
	if _, err := s.GetCertificate(nil); err != nil {
		t.Error(err)
	}
}

// A real handshake, verified as kube-apiserver does: by the bundle and the Service's DNS name.
func TestServingHandshake(t *testing.T) {
	now := time.Now()
	state := settle(t, State{}, now)
	s := servingAt(&now)
	useSecret(t, s, state)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: s.GetCertificate})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go acceptAll(listener)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(state.Bundle())
	for name, want := range map[string]bool{"a.b.svc": true, "a.b.svc.cluster.local": true, "other.b.svc": false} {
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: name})
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}

func acceptAll(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}()
	}
}

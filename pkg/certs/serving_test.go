package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	if err := s.adoptAuthority(secretOf(t, settle(t, State{}, epoch))); err != nil {
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

// Whoever does not ask at each handshake, as the API server, is given another certificate within a minute of the present
// one's becoming due, also when it does so because the clock is set.
func TestServingLooksAtTheClock(t *testing.T) {
	tests := map[string]struct {
		pass, jump time.Duration
		want       bool
	}{
		"young":       {pass: 84 * time.Hour},
		"two thirds":  {pass: 112 * time.Hour, want: true},
		"set forward": {jump: 30 * 24 * time.Hour, want: true},
		"set back":    {jump: -24 * time.Hour, want: true},
		"a bit back":  {jump: -30 * time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				authority := settle(t, State{}, time.Now())
				time.Sleep(48 * time.Hour)
				var jump atomic.Int64
				s := NewServing(nil, SecretKey("ns"), ServiceNames("a", "b")...)
				s.now = func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
				useSecret(t, s, authority)
				var told countingListener
				s.AddListener(&told)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go s.keepFresh(ctx)

				time.Sleep(tc.pass)
				jump.Store(int64(tc.jump))
				time.Sleep(clockTick)
				synctest.Wait()
				if (told > 0) != tc.want {
					t.Errorf("told of %d new certificates", told)
				}
				content, _ := s.CurrentCertKeyContent()
				if present, err := parseCerts(content); err != nil || isDue(present[0], s.now()) {
					t.Errorf("the present certificate is due: %v", err)
				}
			})
		})
	}
}

func useSecret(t *testing.T, s *Serving, state State) {
	t.Helper()
	if err := s.adoptAuthority(secretOf(t, state)); err != nil {
		t.Fatal(err)
	}
}

func TestServingKeepsCertificateWhenSecretIsUnusable(t *testing.T) {
	now := epoch
	s := servingAt(&now)
	useSecret(t, s, settle(t, State{}, epoch))
	if err := s.adoptAuthority(newSecret(SecretKey("ns"))); err == nil {
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

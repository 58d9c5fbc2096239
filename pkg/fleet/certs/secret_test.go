package certs

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestSecretRoundTrip(t *testing.T) {
	s := settle(t, State{}, epoch)
	s = settle(t, s, epoch.Add(61*24*time.Hour))
	s = settle(t, s, epoch.Add(61*24*time.Hour+12*time.Hour))
	s, err := policy.Replace(s, epoch.Add(62*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	secret := newSecret(SecretKey("ns"))
	if err := writeSecret(s, secret); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	if !holdsCert(got.Signer, s.Signer.Cert) || !holdsCert(got.Next, s.Next.Cert) || len(got.Retired) != 1 || !got.Since.Equal(s.Since) {
		t.Errorf("read back %+v, stored %+v", got, s)
	}
	if !bytes.Equal(got.Bundle(), s.Bundle()) {
		t.Error("the bundle changed on its way through the Secret")
	}
}

func TestReadSecretRefusesWhatDoesNotFit(t *testing.T) {
	a, b := settle(t, State{}, epoch), settle(t, State{}, epoch)
	good, other := newSecret(SecretKey("ns")), newSecret(SecretKey("ns"))
	for s, secret := range map[*State]*corev1.Secret{&a: good, &b: other} {
		if err := writeSecret(*s, secret); err != nil {
			t.Fatal(err)
		}
	}
	leaf := mint(t, a, epoch)
	tests := map[string]func(*corev1.Secret){
		"empty":                   func(s *corev1.Secret) { s.Data = nil },
		"no key":                  func(s *corev1.Secret) { delete(s.Data, signerKey) },
		"another authority's key": func(s *corev1.Secret) { s.Data[signerKey] = other.Data[signerKey] },
		"garbage":                 func(s *corev1.Secret) { s.Data[signerCert] = []byte("garbage") },
		"a leaf":                  func(s *corev1.Secret) { s.Data[signerCert], s.Data[signerKey] = leaf.CertPEM, leaf.KeyPEM },
		"bundle holds a key":      func(s *corev1.Secret) { s.Data[bundleCert] = s.Data[signerKey] },
		"next without a key":      func(s *corev1.Secret) { s.Data[nextCert] = other.Data[signerCert] },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			secret := good.DeepCopy()
			spoil(secret)
			if _, err := ReadSecret(secret); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func FuzzReadSecret(f *testing.F) {
	secret := newSecret(SecretKey("ns"))
	s, _, err := policy.Advance(State{}, epoch, false)
	if err != nil {
		f.Fatal(err)
	}
	if err := writeSecret(s, secret); err != nil {
		f.Fatal(err)
	}
	f.Add(secret.Data[signerCert], secret.Data[signerKey], secret.Data[bundleCert])
	f.Fuzz(func(t *testing.T, cert, key, bundle []byte) {
		secret := &corev1.Secret{Data: map[string][]byte{signerCert: cert, signerKey: key, bundleCert: bundle}}
		if s, err := ReadSecret(secret); err == nil && len(s.Bundle()) == 0 {
			t.Error("an accepted Secret without a bundle")
		}
	})
}

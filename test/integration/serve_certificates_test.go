package integration

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// The authority's Secret is deleted, spoilt, and rolled over while clients ask through the APIService and the webhooks: no
// request fails. Bundles that somebody changes come back.
func TestServeCertificates(t *testing.T) {
	var f *fixture
	kube.Disruptive(t, func() { f = newServedRecord(t, "certificates.example") })

	ctx, stop := context.WithCancel(t.Context())
	l, _, _ := f.startClients(ctx)
	first := f.authoritySecret(t.Context())
	f.runSub("a deleted Secret is made again", func(f *fixture) {
		if err := f.client.Delete(f.Context(), first.DeepCopy()); err != nil {
			f.Fatal(err)
		}
		f.waitAuthorityRestored(first)
	})
	f.runSub("a spoilt one as well", func(f *fixture) {
		f.patchSecret(`{"data":{"ca.key":"` + base64.StdEncoding.EncodeToString([]byte("garbage")) + `"}}`)
		f.waitAuthorityRestored(first)
	})
	var successor []byte
	f.runSub("a successor is trusted before it signs, and then signs", func(f *fixture) { successor = f.rollOverAuthority() })
	stop()
	l.requireNoFailure()

	if successor == nil {
		return
	}
	f.runSub("a bundle that somebody changed comes back", func(f *fixture) {
		want := f.authoritySecret(f.Context()).Data["bundle.crt"]
		kube.Kubectl(f, "", "patch", "apiservice", apiService, "--type=merge", "-p", `{"spec":{"caBundle":"`+base64.StdEncoding.EncodeToString(successor)+`"}}`)
		for _, hooks := range []string{"mutating", "validating"} {
			kube.Kubectl(f, "", "patch", hooks+"webhookconfiguration", "lockstep-webhook", "--type=json", "-p",
				`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"`+base64.StdEncoding.EncodeToString(successor)+`"}]`)
		}
		f.waitBundlePublished(want)
	})
	for name, made := range map[string]time.Duration{"set forward": -certs.DefaultPolicy.CALife - time.Hour, "set back": 48 * time.Hour} {
		f.runSub("a clock that is "+name+" costs the authority its place", func(f *fixture) { f.replaceAuthority(time.Now().Add(made)) })
	}
}

const apiService = "v1alpha1.sync.bindy.firestoned.io"

// authoritySecret is the Secret with the certificate authority.
func (f *fixture) authoritySecret(ctx context.Context) *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{}
	if err := f.client.Get(ctx, certs.SecretKey(system), secret); err != nil {
		f.Fatal(err)
	}
	return secret
}

func (f *fixture) patchSecret(patch string) {
	f.Helper()
	if err := f.client.Patch(f.Context(), f.authoritySecret(f.Context()), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		f.Fatal(err)
	}
}

// waitAuthorityRestored waits until the Secret is whole: with the authority that it had, and a successor, all of them published.
func (f *fixture) waitAuthorityRestored(had *corev1.Secret) {
	f.Helper()
	var now corev1.Secret
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, certs.SecretKey(system), &now); err != nil {
			return err
		}
		if _, err := certs.ReadSecret(&now); err != nil {
			return err
		}
		if !bytes.Equal(now.Data["ca.crt"], had.Data["ca.crt"]) || len(now.Data["next.crt"]) == 0 {
			return errors.New("not the authority of before with a successor")
		}
		return nil
	})
	f.waitBundlePublished(now.Data["bundle.crt"])
}

// waitBundlePublished waits until every verifier has the bundle.
func (f *fixture) waitBundlePublished(bundle []byte) {
	f.Helper()
	want := base64.StdEncoding.EncodeToString(bundle)
	kube.Eventually(f, kube.Settle, func(context.Context) error {
		for _, of := range [][]string{
			{"apiservice", apiService, "-o", "jsonpath={.spec.caBundle}"},
			{"mutatingwebhookconfiguration", "lockstep-webhook", "-o", "jsonpath={.webhooks[*].clientConfig.caBundle}"},
			{"validatingwebhookconfiguration", "lockstep-webhook", "-o", "jsonpath={.webhooks[*].clientConfig.caBundle}"},
		} {
			out, err := kube.TryKubectl(f, "", append([]string{"get"}, of...)...)
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			for i, have := range strings.Fields(out) {
				if have != want {
					return fmt.Errorf("%s: caBundle %d is not the one of the Secret", of[0], i)
				}
			}
		}
		return nil
	})
}

// rollOverAuthority adds a successor whose time to be trusted without signing is almost over, and waits until the
// servers have certificates of it. It returns the successor's certificate.
func (f *fixture) rollOverAuthority() []byte {
	f.Helper()
	cert, key := newAuthority(f.T, time.Now().Add(10*time.Second-certs.DefaultPolicy.Overlap))
	secret := f.authoritySecret(f.Context())
	secret.Data["next.crt"], secret.Data["next.key"] = cert, key
	secret.Data["bundle.crt"] = append(bytes.Clone(secret.Data["ca.crt"]), cert...)
	if err := f.client.Update(f.Context(), secret); err != nil {
		f.Fatal(err)
	}
	f.waitBundlePublished(secret.Data["bundle.crt"])
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
		now := f.authoritySecret(ctx)
		if bytes.Equal(now.Data["ca.crt"], cert) {
			return nil
		}
		// The keeper looks at the clock once a minute, and whenever something changes.
		f.patchSecret(fmt.Sprintf(`{"metadata":{"annotations":{"test.lockstep/look":"%d"}}}`, time.Now().Unix()))
		return errors.New("the successor does not sign yet")
	})
	f.waitBundlePublished(append(bytes.Clone(cert), secret.Data["ca.crt"]...))
	for face, port := range map[string]string{"apiserver": "8443", "webhook": "9443"} {
		f.waitServingCertificate(face, port, cert)
	}
	return cert
}

// replaceAuthority has the authority be one that was made at another time and is not valid now, as it is for a clock that was set, and
// waits until everything works with its successor.
func (f *fixture) replaceAuthority(made time.Time) {
	f.Helper()
	cert, key := newAuthority(f.T, made)
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error { // until the keeper does not write in between
		secret := f.authoritySecret(ctx)
		secret.Data = map[string][]byte{"ca.crt": cert, "ca.key": key, "bundle.crt": append(bytes.Clone(cert), secret.Data["ca.crt"]...)}
		return f.client.Update(ctx, secret)
	})
	var now *corev1.Secret
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		now = f.authoritySecret(ctx)
		state, err := certs.ReadSecret(now)
		if err != nil {
			return err
		}
		over := func(c *x509.Certificate) bool { return c.NotAfter.Before(time.Now()) }
		if bytes.Equal(now.Data["ca.crt"], cert) || state.Next != nil || slices.ContainsFunc(state.Retired, over) {
			return errors.New("the keeper has not done yet")
		}
		return nil
	})
	f.waitBundlePublished(now.Data["bundle.crt"])
	for face, port := range map[string]string{"apiserver": "8443", "webhook": "9443"} {
		f.waitServingCertificate(face, port, now.Data["ca.crt"])
	}
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if _, err := f.status(ctx, "arecord.www"); err != nil {
			return err
		}
		return f.client.Create(ctx, f.aRecord("probe", "probe", "192.0.2.9"), client.DryRunAll)
	})
}

// waitServingCertificate waits until every replica of a component shows a certificate that this authority signed.
func (f *fixture) waitServingCertificate(face, port string, authority []byte) {
	f.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		for _, pod := range f.componentPods(ctx, face) {
			dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "lockstep-" + face + "." + system + ".svc"}}
			conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, port))
			if err != nil {
				return fmt.Errorf("%s: %w", pod.Name, err)
			}
			_ = conn.Close()
		}
		return nil
	})
}

// newAuthority makes one of the kind that the controller makes, as if at another time. Certificates begin an hour early.
func newAuthority(t *testing.T, made time.Time) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(made.UnixNano()),
		Subject:      pkix.Name{CommonName: "lockstep-ca", SerialNumber: fmt.Sprint(made.UnixNano())},
		NotBefore:    made.Add(-time.Hour), NotAfter: made.Add(certs.DefaultPolicy.CALife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

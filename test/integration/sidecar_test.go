package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/mtls"
)

// authority is the project's certificate authority as the cluster has it.
func (f *fixture) authority(ctx context.Context) (certs.State, error) {
	var secret corev1.Secret
	if err := f.client.Get(ctx, certs.SecretKey("lockstep-system"), &secret); err != nil {
		return certs.State{}, err
	}
	return certs.ReadSecret(&secret)
}

// connectAs returns what a client of sidecars with an identity connects with.
func (f *fixture) connectAs(ctx context.Context, identity string) (*tls.Config, error) {
	authority, err := f.authority(ctx)
	if err != nil {
		return nil, err
	}
	data, err := authority.Issue(time.Now(), certs.Subject{Identity: identity})
	if err != nil {
		return nil, err
	}
	return certs.ClientConfig(data)
}

// issueTo returns the certificate of a client, as the data of a Secret.
func issueTo(t *testing.T, authority certs.State, identity string) map[string][]byte {
	t.Helper()
	data, err := authority.Issue(time.Now(), certs.Subject{Identity: identity})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sidecarAt is an instance's sidecar at an address.
func (f *fixture) sidecarAt(ip string, port uint16, instance string) bindcar.Address {
	f.Helper()
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		f.Fatal(err)
	}
	return bindcar.Address{Addr: netip.AddrPortFrom(addr, port), Namespace: f.namespace, Instance: instance}
}

// askSidecar returns the code that a sidecar answers to the certificate of a Secret's data, or to none; 0 if it ends the
// handshake because of it. The sidecar's certificate is verified.
func (f *fixture) askSidecar(at bindcar.Address, data map[string][]byte) int {
	f.Helper()
	trusted := func(ctx context.Context) (*tls.Config, error) { return f.connectAs(ctx, bindcar.ControllerIdentity) }
	client := bindcar.NewClient(bindcar.ClientOptions{TLS: mtls.WithCertificate(trusted, data)})
	code := 0
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error { // a Service leads to new pods after a moment
		_, err := client.Zones(ctx, at)
		var answer *bindcar.Error
		switch {
		case err == nil:
			code = http.StatusOK
		case !errors.As(err, &answer) || answer.Code == 0 && answer.Reason != status.BindcarAuthFailed:
			return err
		default:
			code = answer.Code
		}
		return nil
	})
	return code
}

// The certificate of an instance is made again when somebody deletes it, and the sidecar serves the new one without a
// restart.
func TestSidecarCertificateIsReplaced(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	standalone := f.instance("alone", v1beta1.RolePrimary, 1)
	f.create(standalone)
	waitConditions(f, kube.Start, standalone, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod alone-0 is ready")
	secret := &corev1.Secret{ObjectMeta: f.meta(named.CertificateSecretName("alone"), nil)}
	if err := f.client.Delete(f.Context(), secret); err != nil {
		t.Fatal(err)
	}
	attempt := 0
	kube.Eventually(t, kube.Start, func(ctx context.Context) error {
		// Deleting a Secret is no event of the instance; a change of the instance is.
		attempt++
		change(f, standalone, func(i *v1beta1.Bind9Instance) { i.Labels = map[string]string{"attempt": fmt.Sprint(attempt)} })
		return f.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	})
	issued, err := f.authority(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !issued.IsCurrent(secret.Data, time.Now(), certs.Subject{DNSNames: []string{bindcar.CertificateName(f.namespace, "alone")}}) {
		t.Error("the new certificate does not stand")
	}
	// Only the new certificate is trusted here, so an answer is one by it.
	only := func(ctx context.Context) (*tls.Config, error) {
		config, err := f.connectAs(ctx, bindcar.ControllerIdentity)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(secret.Data[corev1.TLSCertKey])
		return config, nil
	}
	var pod corev1.Pod
	if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "alone-0"}, &pod); err != nil {
		t.Fatal(err)
	}
	at := f.sidecarAt(pod.Status.PodIP, layout.SidecarPort, "alone")
	kube.Eventually(t, kube.Start, func(ctx context.Context) error {
		return bindcar.NewClient(bindcar.ClientOptions{TLS: only}).Ready(ctx, at)
	})
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(&pod), &pod); err != nil {
		t.Fatal(err)
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.RestartCount != 0 {
			t.Errorf("container %s was restarted", c.Name)
		}
	}
}

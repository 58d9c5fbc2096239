package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/dnsprovider"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/hosttest"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/backend"
	"github.com/lockstep-dns/lockstep/test/coredns/servers"
)

// secrets are Secrets by name, as kube-apiserver has them.
type secrets map[string]*corev1.Secret

func (s secrets) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	secret := s[key.Name]
	if secret == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	secret.DeepCopyInto(o.(*corev1.Secret))
	return nil
}

func (s secrets) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (s secrets) set(t *testing.T, name, version string, entries map[string]string) {
	t.Helper()
	s[name] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-dns", Name: name, ResourceVersion: version}, Data: map[string][]byte{}}
	for key, value := range entries {
		if raw, err := os.ReadFile(value); err == nil {
			value = string(raw)
		}
		s[name].Data[key] = []byte(value)
	}
}

// TestController: a zone as the controller brings it to a DNSProvider with TLS and credentials, whose Secrets are wrong at first; the rest
// of it lives on what CoreDNS cannot hold, what others have put there, and a pause.
func TestController(t *testing.T) {
	certificates := servers.NewCertificates(t)
	w := &world{etcd: servers.StartEtcd(t, servers.EtcdOptions{TLS: certificates}), zones: []string{"z.test."}}
	w.etcd.EnableAuth("lockstep", "secret", "/skydns/")
	w.coreDNS = servers.StartCoreDNS(t, w.etcd, w.zones,
		"tls "+certificates.ClientCert+" "+certificates.ClientKey+" "+certificates.CA+"\n credentials lockstep secret", "")
	zone, known := w.zones[0], secrets{}
	backends := &dnsprovider.Backends{Reader: known}
	corp := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "team-dns", Name: "corp", UID: "corp", Generation: 1}}
	corp.Spec.CoreDNS = &v1beta1.CoreDNSProvider{Etcd: v1beta1.EtcdStore{
		Endpoints: w.etcd.Endpoints, Prefix: "/skydns",
		TLSSecretRef: &v1beta1.ProviderSecret{Name: "tls"}, CredentialsSecretRef: &v1beta1.ProviderSecret{Name: "user"},
	}}
	says := func(want string) {
		t.Helper()
		if _, err := backends.Of(t.Context(), corp); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	says("Secret tls does not exist or may not be read: create it with the entries ca.crt")
	known.set(t, "tls", "1", map[string]string{"ca.crt": "nothing"})
	says("Secret tls has no certificate in ca.crt")
	known.set(t, "tls", "2", map[string]string{"ca.crt": certificates.CA, "tls.crt": certificates.ClientCert, "tls.key": certificates.ClientKey})
	known.set(t, "user", "1", map[string]string{"username": "lockstep"})
	says("Secret user has no username or no password")
	known.set(t, "user", "2", map[string]string{"username": "lockstep", "password": "secret"})

	address, wild := addressOf(zone, "192.0.2.1"), rrset.New(rrset.Key{Name: "*." + zone, Type: dns.TypeA}, 60, "192.0.2.2")
	want := hosttest.MapOf(address, wild, rrset.New(rrset.Key{Name: zone, Type: dns.TypeNS}, 60, "ns1.z.test."))
	sync := func(paused bool) backend.Outcome {
		t.Helper()
		b, err := backends.Of(t.Context(), corp)
		if err != nil {
			t.Fatal(err)
		}
		return backend.Sync(t.Context(), backend.Named{Backend: b, Name: corp.Name}, zone, want, paused)
	}
	if out := sync(true); out.Err != nil || out.Pending != 1 || out.Unprogrammed[address.Key].Reason != status.Paused {
		t.Errorf("paused: %+v", out)
	}
	out := sync(false)
	if out.Err != nil || len(out.Unprogrammed) > 0 || len(out.Unsupported) != 1 || out.Unsupported[wild.Key].Reason != status.Unsupported {
		t.Errorf("outcome %+v", out)
	}
	if got := w.coreDNS.Ask(t, address.Key); !got.Equal(address) {
		t.Errorf("CoreDNS answers %s", got)
	}
	w.put(t, "/skydns/test/z/theirs/x", `{"host":"192.0.2.9","ttl":60}`)
	changed := make(chan struct{}, 100)
	backends.Follow(client.ObjectKey{Name: "z"}, zone, []*v1beta1.DNSProvider{corp}, func() { changed <- struct{}{} })
	<-changed // It has begun.
	w.damage(t, zone, address)
	<-changed
	if out = sync(false); out.Applied.Len() != 1 || out.Foreign == 0 || len(out.Unprogrammed) > 0 {
		t.Errorf("after drift: %+v", out)
	}
	if got := w.coreDNS.Ask(t, address.Key); !got.Equal(address) {
		t.Errorf("after drift CoreDNS answers %s", got)
	}
	for len(changed) > 0 {
		<-changed
	}
	corp.Generation++
	if _, err := backends.Of(t.Context(), corp); err != nil {
		t.Fatal(err)
	}
	<-changed // The watch of the former connection has ended.
	backends.Follow(client.ObjectKey{Name: "z"}, zone, []*v1beta1.DNSProvider{corp}, func() {})
	// The provider and its Secrets go before the zone.
	clear(known)
	backends.Forget(client.ObjectKeyFromObject(corp))
	b := backends.Followed(client.ObjectKey{Name: "z"}, client.ObjectKeyFromObject(corp))
	if b == nil {
		t.Fatal("the connection that a zone needs is closed")
	}
	if err := backend.Clear(t.Context(), backend.Named{Backend: b, Name: corp.Name}, zone); err != nil {
		t.Error(err)
	}
	if keys := w.keys(t, "/skydns/"); len(keys) != 1 {
		t.Errorf("left in etcd: %v", keys)
	}
	backends.Follow(client.ObjectKey{Name: "z"}, zone, nil, nil)
	if _, err := b.Observe(t.Context(), zone); err == nil {
		t.Error("the connection that nobody needs is still open")
	}
	if backends.Followed(client.ObjectKey{Name: "z"}, client.ObjectKeyFromObject(corp)) != nil {
		t.Error("the zone is still followed")
	}
}

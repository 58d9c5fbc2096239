package dnsprovider

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/test/hostileetcd"
	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// secretReader has every Secret, with a user. Reading one whose name is "slow" takes until the test ends.
type secretReader struct {
	client.Reader
	arrived chan<- struct{}
	release <-chan struct{}
}

func (r secretReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if key.Name == "slow" {
		r.arrived <- struct{}{}
		select {
		case <-r.release:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	o.(*corev1.Secret).Data = map[string][]byte{"username": []byte("u"), "password": []byte("p")}
	return nil
}

func etcdProvider(namespace, name string, endpoint netip.AddrPort, secret string) *v1beta1.DNSProvider {
	p := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Generation: 1}}
	p.Spec.CoreDNS = &v1beta1.CoreDNSProvider{Etcd: v1beta1.EtcdStore{Endpoints: []string{"http://" + endpoint.String()}}}
	if secret != "" { // It is used with https only.
		p.Spec.CoreDNS.Etcd.Endpoints[0] = "https://" + endpoint.String()
		p.Spec.CoreDNS.Etcd.CredentialsSecretRef = &v1beta1.ProviderSecret{Name: secret}
	}
	return p
}

// Thirty providers whose etcd accepts connections and says nothing, with zones that are followed there, and thirty whose Secrets
// cannot be read, hold up nobody: another provider is used, and each of the dead ones changed and forgotten, while all of them wait.
func TestDeadProvidersHoldUpNobody(t *testing.T) {
	const dead = 30
	connected, arrived, release := make(chan struct{}, 1000), make(chan struct{}, 1000), make(chan struct{})
	silent := tcpserver.Start(t, func(c net.Conn) {
		connected <- struct{}{}
		_, _ = io.Copy(io.Discard, c)
	})
	honest := hostileetcd.Start(t, netip.MustParseAddr("127.0.0.1"), func(_ string, _ []byte, send func([]byte) error) error { return send(nil) })
	anywhere := func(netip.Addr) bool { return true }
	b := &Backends{Reader: secretReader{arrived: arrived, release: release}, Gate: outbound.NewGate(anywhere, outbound.Limits{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	providers := make([]*v1beta1.DNSProvider, dead)
	for i := range dead {
		providers[i] = etcdProvider("evil", fmt.Sprint("dead", i), silent, "user")
		go func() {
			backend, err := b.Of(ctx, providers[i])
			if err != nil {
				t.Error(err)
				return
			}
			b.Follow(client.ObjectKey{Namespace: "evil", Name: fmt.Sprint(i)}, "z.test.", providers[i:i+1], func() {})
			_ = backend.Check(ctx, "z.test.")
		}()
		go func() { _, _ = b.Of(ctx, etcdProvider("evil", fmt.Sprint("slow", i), silent, "slow")) }()
	}
	for range dead {
		<-arrived
		<-connected
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		good := etcdProvider("bank", "good", honest, "")
		backend, err := b.Of(ctx, good)
		if err == nil {
			err = backend.Check(ctx, "z.test.")
		}
		if err != nil {
			t.Error(err)
		}
		b.Follow(client.ObjectKey{Namespace: "bank", Name: "z"}, "z.test.", []*v1beta1.DNSProvider{good}, func() {})
		for _, p := range providers {
			changed := p.DeepCopy()
			changed.Generation++
			if _, err := b.Of(ctx, changed); err != nil {
				t.Error(err)
			}
			b.Forget(client.ObjectKeyFromObject(p))
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute): // It waits for what never comes.
		t.Error("another provider waits for dead ones")
	}
	close(release)
}

// The backend of a provider is that of its latest generation, whoever asks.
func TestLatestProviderCounts(t *testing.T) {
	b := &Backends{Reader: secretReader{}}
	old := etcdProvider("team", "corp", netip.MustParseAddrPort("192.0.2.1:2379"), "user")
	next := old.DeepCopy()
	next.Generation++
	first, err := b.Of(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := b.Of(t.Context(), old); again != first {
		t.Error("a provider that has not changed gets another backend")
	}
	second, err := b.Of(t.Context(), next)
	if err != nil || second == first {
		t.Errorf("a provider that has changed keeps its backend: %v", err)
	}
	if late, _ := b.Of(t.Context(), old); late != second {
		t.Error("a former generation replaces the backend")
	}
	anew := old.DeepCopy()
	anew.UID = "another"
	if third, _ := b.Of(t.Context(), anew); third == second {
		t.Error("another provider of the same name has its predecessor's backend")
	}
}

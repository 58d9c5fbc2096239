package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/hostileetcd"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// storeProvider is the manifest of a DNSProvider whose zones are in an etcd, or what poses as one, with replicas that nobody runs.
func storeProvider(name, secret string, endpoints ...netip.AddrPort) string {
	scheme := "http"
	if secret != "" {
		scheme = "https" // Nothing else may get a password.
	}
	var urls []string
	for _, e := range endpoints {
		urls = append(urls, fmt.Sprintf("%q", scheme+"://"+e.String()))
	}
	if secret != "" {
		secret = fmt.Sprintf(", credentialsSecretRef: {name: %s}", secret)
	}
	return fmt.Sprintf(`---
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSProvider
metadata: {name: %s}
spec:
  coreDNS:
    etcd: {endpoints: [%s]%s}
    servers: {addresses: [{address: %s, port: 9}]}
`, name, strings.Join(urls, ", "), secret, endpoints[0].Addr())
}

// hostAddressFor returns the address under which the servers of a tenant reach programs beside the Kubernetes cluster.
func hostAddressFor(n *tenant) netip.Addr {
	n.Helper()
	all, err := kube.Servers(n.Context(), n.client, n.namespace)
	if err != nil {
		n.Fatal(err)
	}
	for _, server := range all {
		return hostAddress(n.T, netip.MustParseAddrPort(server))
	}
	n.Fatal("no server")
	return netip.Addr{}
}

// newServed returns a tenant with a server and a zone, shop.<namespace>.example.
func newServed(t *testing.T) *tenant {
	t.Helper()
	n := newTenant(t, "victim")
	n.apply(bind9Cluster("dns"))
	n.kubectl("wait", "--for=condition=Ready", "bind9cluster/dns", "--timeout=120s")
	n.apply(dnsZone("shop", "shop."+n.namespace+".example", "clusterRef: dns"))
	return n
}

// requireServed changes the tenant's zone again and again, and requires that each change is served soon.
func (n *tenant) requireServed() {
	n.Helper()
	for i := range 10 {
		name, address, began := fmt.Sprint("www", i), fmt.Sprint("192.0.2.", i+1), time.Now()
		n.apply(aRecord(name, "shop", name, address))
		waitServed(n, n.client, n.namespace, name+".shop."+n.namespace+".example", dns.TypeA, address)
		if took := time.Since(began); took > 30*time.Second {
			n.Errorf("a change was served after %s", took)
		}
	}
}

// restartsOfController counts the restarts of all controllers, by pod.
func restartsOfController(ctx context.Context, c client.Client) (map[string]int32, error) {
	var pods corev1.PodList
	err := c.List(ctx, &pods, client.InNamespace("lockstep-system"), client.MatchingLabels{"app.kubernetes.io/component": "controller"})
	restarts := map[string]int32{}
	for _, p := range pods.Items {
		for _, s := range p.Status.ContainerStatuses {
			restarts[string(p.UID)] += s.RestartCount
		}
	}
	if err == nil && len(restarts) == 0 {
		err = errors.New("no controller runs")
	}
	return restarts, err
}

// requireNoRestart returns a function that requires that no controller has ended since.
func requireNoRestart(t *testing.T, c client.Client) func() {
	t.Helper()
	before, err := restartsOfController(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		after, err := restartsOfController(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for pod, n := range before {
			if now, there := after[pod]; !there || now != n {
				t.Errorf("the controller was restarted: %v before, %v after", before, after)
			}
		}
	}
}

// waitProvider waits until the message of one of a provider's conditions has a text.
func (n *tenant) waitProvider(name, text string) {
	n.Helper()
	kube.Eventually(n, kube.Settle, func(context.Context) error {
		out, err := n.try("", "get", "dnsprovider", name, "-o=jsonpath={.status.conditions[*].message}")
		if err != nil || !strings.Contains(out, text) {
			return fmt.Errorf("provider %s says %q, want %q: %w", name, out, text, err)
		}
		return nil
	})
}

// bomb answers with millions of empty key-values, bomb pages with pages without end, and the watch with events that have no key.
func bomb(looks *atomic.Int64) hostileetcd.Answer {
	empty := hostileetcd.Field(2, nil)
	large := []byte(strings.Repeat(string(empty), 1<<20))
	event := append(hostileetcd.Number(2, 0), hostileetcd.Field(11, nil)...)
	return func(method string, _ []byte, send func([]byte) error) error {
		switch n := looks.Add(1); {
		case method == "Watch":
			return errors.Join(send(append(hostileetcd.Number(2, 0), hostileetcd.Number(3, 1)...)), send(event))
		case n%3 == 0:
			return send(hostileetcd.Number(3, 1))
		default:
			return send(large)
		}
	}
}

// An etcd that answers with what is small on the wire and large in memory, with pages without end and with events that etcd's own
// client dies of, costs its own provider. Twenty of them, with zones, cost the others nothing, and the controller does not end.
func TestAttack25EtcdBomb(t *testing.T) {
	kube.Disruptive(t, nil)
	victim, attacker := newServed(t), newTenant(t, "attacker")
	var looks atomic.Int64
	at := hostileetcd.Start(t, hostAddressFor(victim), bomb(&looks))
	requireSame := requireNoRestart(t, victim.client)
	var manifest strings.Builder
	for i := range 20 {
		manifest.WriteString(storeProvider(fmt.Sprint("bomb", i), "", at))
		manifest.WriteString(dnsZone(fmt.Sprint("z", i), fmt.Sprintf("z%d.%s.example", i, attacker.namespace), fmt.Sprintf("providerRefs: [{name: bomb%d}]", i)))
	}
	attacker.apply(manifest.String())
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		if n := looks.Load(); n < 100 {
			return fmt.Errorf("the bomb was looked at %d times", n)
		}
		return nil
	})
	victim.requireServed()
	attacker.waitProvider("bomb0", "etcd: ")
	requireSame()
}

// Providers with credentials at an endpoint that accepts connections and says nothing, each with zones, and changed all the time: no
// pass of others waits while the controller signs in there.
func TestAttack25FrozenConnect(t *testing.T) {
	kube.Disruptive(t, nil)
	victim, attacker := newServed(t), newTenant(t, "attacker")
	var connected atomic.Int64
	at := tcpserver.StartAt(t, hostAddressFor(victim), func(c net.Conn) {
		connected.Add(1)
		_, _ = io.Copy(io.Discard, c)
	})
	requireSame := requireNoRestart(t, victim.client)
	attacker.kubectl("create", "secret", "generic", "etcd", "--from-literal=username=u", "--from-literal=password=p")
	var zones strings.Builder
	zones.WriteString(storeProvider("freeze", "etcd", at))
	for i := range 100 {
		zones.WriteString(dnsZone(fmt.Sprint("f", i), fmt.Sprintf("f%d.%s.example", i, attacker.namespace), "providerRefs: [{name: freeze}]"))
	}
	attacker.apply(zones.String())
	attacker.waitProvider("freeze", "etcd: ")
	if connected.Load() == 0 {
		t.Fatal("nobody has connected")
	}
	ctx, stop := context.WithCancel(t.Context())
	var patching sync.WaitGroup
	patching.Go(func() { // Each patch closes the connection that the zones wait for.
		for i := 0; ctx.Err() == nil; i++ {
			patch := fmt.Sprintf(`{"spec":{"coreDNS":{"etcd":{"prefix":"/x%d"}}}}`, i)
			if out, err := attacker.try("", "patch", "dnsprovider", "freeze", "--type=merge", "-p", patch); err != nil && ctx.Err() == nil {
				t.Errorf("%v: %s", err, out)
				return
			}
		}
	})
	victim.requireServed()
	stop()
	patching.Wait()
	requireSame()
}

// Ten providers of sixteen endpoints each, which take requests and never answer: each provider has one connection, and now and then
// another one that it tries.
func TestAttack25Connections(t *testing.T) {
	kube.Disruptive(t, nil)
	const providers, endpoints = 10, 16
	victim, attacker := newServed(t), newTenant(t, "attacker")
	var counted hostileetcd.Connections
	var addresses []netip.AddrPort
	ended := t.Context().Done()
	for range endpoints {
		addresses = append(addresses, hostileetcd.StartCounted(t, hostAddressFor(victim), &counted, func(string, []byte, func([]byte) error) error {
			<-ended
			return nil
		}))
	}
	var manifest strings.Builder
	for i := range providers {
		manifest.WriteString(storeProvider(fmt.Sprint("c", i), "", addresses...))
	}
	attacker.apply(manifest.String())
	for i := range providers {
		attacker.waitProvider(fmt.Sprint("c", i), "etcd: ")
	}
	victim.requireServed()
	t.Logf("%d providers had at most %d connections", providers, counted.Most())
	if n := counted.Most(); n == 0 || n > 2*providers {
		t.Errorf("%d providers had %d connections", providers, n)
	}
}

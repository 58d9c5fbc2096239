package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/miekg/dns"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/daemon"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// corednsWorld is an etcd with a user, and replicas of CoreDNS that read it, beside the Kubernetes cluster.
type corednsWorld struct {
	t       *testing.T
	program string
	// endpoint is etcd's with TLS, for which authority is the only one; inside is the one without, on loopback.
	endpoint, inside string
	authority        []byte
	client           *clientv3.Client
	etcd             *daemon.Process
	replicas         []corednsReplica
}

type corednsReplica struct {
	addr    netip.AddrPort
	process *daemon.Process
}

const etcdUser, etcdPassword = "lockstep", "in-a-secret"

// startCoreDNS starts an etcd that only lets a user in, and replicas for zones, each with other plugins in front of etcd.
func startCoreDNS(t *testing.T, host netip.Addr, zone string, plugins ...string) *corednsWorld {
	t.Helper()
	w := &corednsWorld{t: t, program: kube.Program(t, "coredns/coredns")}
	w.endpoint, w.inside = "https://"+freePort(t, host).String(), "http://"+freePort(t, netip.MustParseAddr("127.0.0.1")).String()
	certificate, key := w.selfSigned(host)
	clients := w.endpoint + "," + w.inside
	peer := "http://" + freePort(t, netip.MustParseAddr("127.0.0.1")).String()
	w.etcd = w.start("etcd", "--name", "m0", "--data-dir", t.TempDir(), "--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--cert-file", certificate, "--key-file", key,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "m0="+peer, "--log-level", "warn", "--bcrypt-cost", "4")
	w.addUser()
	for i, more := range plugins {
		addr := freePort(t, host)
		corefile := filepath.Join(t.TempDir(), fmt.Sprintf("Corefile%d", i))
		text := fmt.Sprintf(".:%d {\n bind %s\n errors\n %s\n etcd %s {\n path /skydns\n endpoint %s\n credentials %s %s\n }\n}\n",
			addr.Port(), addr.Addr(), more, zone, w.inside, etcdUser, etcdPassword)
		if err := os.WriteFile(corefile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w.replicas = append(w.replicas, corednsReplica{addr, w.start("coredns", "-conf", corefile)})
	}
	for _, r := range w.replicas {
		kube.Eventually(t, kube.Answer, func(ctx context.Context) error {
			reply, err := wire.Query(ctx, r.addr, dns.Fqdn(zone), dns.TypeSOA)
			if err == nil && len(reply.Msg.Answer) == 0 {
				err = errors.New(reply.Msg.String())
			}
			return err
		})
	}
	return w
}

// selfSigned returns the files of a certificate for an address, and of its key.
func (w *corednsWorld) selfSigned(host netip.Addr) (certificate, key string) {
	w.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{host.AsSlice()}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err1 := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	keyDER, err2 := x509.MarshalECPrivateKey(private)
	dir := w.t.TempDir()
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	w.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	err3 := os.WriteFile(certificate, w.authority, 0o600)
	err4 := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		w.t.Fatal(err)
	}
	return certificate, key
}

// addUser has etcd let nobody in but root and the user of the provider.
func (w *corednsWorld) addUser() {
	w.t.Helper()
	connect := func(user, password string) *clientv3.Client {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{w.inside}, Username: user, Password: password, DialTimeout: 30 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := connect("", "")
	kube.Eventually(w.t, kube.Answer, func(ctx context.Context) error { _, err := c.Get(ctx, "ready"); return err })
	ctx := w.t.Context()
	prefix := "/skydns/"
	_, err1 := c.UserAdd(ctx, "root", "root")
	_, err2 := c.UserGrantRole(ctx, "root", "root")
	_, err3 := c.RoleAdd(ctx, "dns")
	_, err4 := c.RoleGrantPermission(ctx, "dns", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))
	_, err5 := c.UserAdd(ctx, etcdUser, etcdPassword)
	_, err6 := c.UserGrantRole(ctx, etcdUser, "dns")
	_, err7 := c.AuthEnable(ctx)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		w.t.Fatal(err)
	}
	w.client = connect("root", "root")
}

// keys returns the keys that etcd has below a path.
func (w *corednsWorld) keys(ctx context.Context, path string) (keys []string, err error) {
	found, err := w.client.Get(ctx, path, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	for _, kv := range found.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys, nil
}

func (w *corednsWorld) addrs() (addrs []netip.AddrPort) {
	for _, r := range w.replicas {
		addrs = append(addrs, r.addr)
	}
	return addrs
}

// start starts the program as etcd or CoreDNS.
func (w *corednsWorld) start(args ...string) *daemon.Process {
	w.t.Helper()
	return daemon.Launch(w.t, daemon.Program{Path: w.program, Args: args})
}

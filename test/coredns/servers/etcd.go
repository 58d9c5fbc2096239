package servers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockstep-dns/lockstep/test/daemon"
	"github.com/lockstep-dns/lockstep/test/named"
)

// EtcdOptions are what differs from the usual.
type EtcdOptions struct {
	// Members is how many there are; 1 if zero.
	Members int
	// TLS has the members take only clients with a certificate of its authority.
	TLS *Certificates
	// Quota is how many bytes the store may have; etcd's default if zero.
	Quota int
}

// Etcd is a cluster of etcd.
type Etcd struct {
	t         testing.TB
	options   EtcdOptions
	Endpoints []string
	members   []*daemon.Process
	// Client is signed in as root, once there are users.
	Client *clientv3.Client
}

// StartEtcd starts a cluster.
func StartEtcd(t testing.TB, o EtcdOptions) *Etcd {
	t.Helper()
	o.Members = max(o.Members, 1)
	e := &Etcd{t: t, options: o}
	scheme := "http"
	if o.TLS != nil {
		scheme = "https"
	}
	clients, peers := make([]netip.AddrPort, o.Members), make([]netip.AddrPort, o.Members)
	var cluster []string
	for i := range o.Members {
		clients[i], peers[i] = named.Reserve(t), named.Reserve(t)
		e.Endpoints = append(e.Endpoints, fmt.Sprintf("%s://%s", scheme, clients[i]))
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, peers[i]))
	}
	for i := range o.Members {
		args := []string{
			"--name", fmt.Sprintf("m%d", i), "--data-dir", t.TempDir(),
			"--listen-client-urls", e.Endpoints[i], "--advertise-client-urls", e.Endpoints[i],
			"--listen-peer-urls", "http://" + peers[i].String(), "--initial-advertise-peer-urls", "http://" + peers[i].String(),
			"--initial-cluster", strings.Join(cluster, ","), "--log-level", "warn", "--bcrypt-cost", "4",
		}
		if o.TLS != nil {
			args = append(args, "--cert-file", o.TLS.ServerCert, "--key-file", o.TLS.ServerKey, "--trusted-ca-file", o.TLS.CA, "--client-cert-auth")
		}
		if o.Quota != 0 {
			args = append(args, "--quota-backend-bytes", fmt.Sprint(o.Quota))
		}
		e.members = append(e.members, launch(t, "etcd", []netip.AddrPort{clients[i], peers[i]}, args...))
	}
	e.Client = e.NewClient("", "")
	e.awaitReady()
	return e
}

// TLSConfig returns the configuration of a client; nil without TLS.
func (e *Etcd) TLSConfig() *tls.Config {
	if e.options.TLS == nil {
		return nil
	}
	return e.options.TLS.Client.Clone()
}

// NewClient returns a client that is closed when the test ends.
func (e *Etcd) NewClient(user, password string) *clientv3.Client {
	e.t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: e.Endpoints, TLS: e.TLSConfig(), Username: user, Password: password, DialTimeout: 30 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = client.Close() })
	return client
}

func (e *Etcd) awaitReady() {
	e.t.Helper()
	Eventually(e.t, "etcd does not answer", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := e.Client.Get(ctx, "ready")
		return err
	})
}

// Restart kills all members, calls meanwhile, and starts them again.
func (e *Etcd) Restart(meanwhile func()) {
	e.t.Helper()
	for _, m := range e.members {
		m.Kill()
	}
	meanwhile()
	for _, m := range e.members {
		m.Start()
	}
	e.awaitReady()
}

// Stop kills a member, and Start starts it again.
func (e *Etcd) Stop(member int) { e.members[member].Kill() }

// Start starts a member that was stopped.
func (e *Etcd) Start(member int) { e.members[member].Start() }

// EnableAuth makes a user root, and one who may read and write below a prefix.
func (e *Etcd) EnableAuth(user, password, prefix string) {
	e.t.Helper()
	ctx := context.Background()
	end := clientv3.GetPrefixRangeEnd(prefix)
	_, err1 := e.Client.UserAdd(ctx, "root", "root")
	_, err2 := e.Client.UserGrantRole(ctx, "root", "root")
	_, err3 := e.Client.RoleAdd(ctx, "dns")
	_, err4 := e.Client.RoleGrantPermission(ctx, "dns", prefix, end, clientv3.PermissionType(clientv3.PermReadWrite))
	_, err5 := e.Client.UserAdd(ctx, user, password)
	_, err6 := e.Client.UserGrantRole(ctx, user, "dns")
	_, err7 := e.Client.AuthEnable(ctx)
	for _, err := range []error{err1, err2, err3, err4, err5, err6, err7} {
		if err != nil {
			e.t.Fatal(err)
		}
	}
	e.Client = e.NewClient("root", "root")
}

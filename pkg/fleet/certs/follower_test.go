package certs

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"
)

type countingListener int

func (c *countingListener) Enqueue() { *c++ }

var serviceSubject = Subject{DNSNames: ServiceNames("a", "b")}

// followerAt returns a Follower whose clock the test holds.
func followerAt(now *time.Time) *Follower {
	f := NewFollower(nil, SecretKey("ns"))
	f.now = func() time.Time { return *now }
	return f
}

func adopt(t *testing.T, f *Follower, s State, now time.Time, subject Subject) {
	t.Helper()
	data, err := s.Issue(now, subject)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.adopt(data); err != nil {
		t.Fatal(err)
	}
}

func TestFollowerWaitsForSecret(t *testing.T) {
	now := epoch
	f := followerAt(&now)
	const waits = "waiting for Secret ns/lockstep-ca, which the fleet manager makes"
	_, errHandshake := f.GetCertificate(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, errClient := f.ClientConfig(ctx)
	for name, err := range map[string]error{"health check": f.Check(nil), "handshake": errHandshake, "client": errClient} {
		if err == nil || !strings.Contains(err.Error(), waits) {
			t.Errorf("%s before the Secret: %v", name, err)
		}
	}
	if cert, key := f.CurrentCertKeyContent(); cert != nil || key != nil {
		t.Error("content before the Secret")
	}
	adopt(t, f, settle(t, State{}, epoch), epoch, serviceSubject)
	if err := f.Check(nil); err != nil {
		t.Errorf("health check after the Secret: %v", err)
	}
	if cert, key := f.CurrentCertKeyContent(); cert == nil || key == nil {
		t.Error("no content after the Secret")
	}
	if config, err := f.ClientConfig(t.Context()); err != nil || config.RootCAs == nil {
		t.Errorf("no authorities after the Secret: %v", err)
	}
}

// A controller that is gone for long is noticed by the readiness of the components, not only by their callers.
func TestFollowerReportsWhatIsOver(t *testing.T) {
	now := epoch
	f := followerAt(&now)
	adopt(t, f, settle(t, State{}, epoch), epoch, serviceSubject)
	for name, c := range map[string]struct {
		at   time.Time
		want bool
	}{
		"the last day":   {epoch.Add(DefaultPolicy.LeafLife - 24*time.Hour), true},
		"over":           {epoch.Add(DefaultPolicy.LeafLife + time.Second), false},
		"clock set back": {epoch.Add(-2 * time.Hour), false},
	} {
		now = c.at
		if err := f.Ready(); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFollowerTakesOver(t *testing.T) {
	now := epoch
	f := followerAt(&now)
	state := settle(t, State{}, epoch)
	adopt(t, f, state, now, serviceSubject)
	var notified countingListener
	f.AddListener(&notified)
	before, err := f.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]map[string][]byte{
		"an empty Secret": nil,
		"no bundle":       {"tls.crt": before.Certificate[0]},
	} {
		if err := f.adopt(data); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if after, err := f.GetCertificate(nil); err != nil || after != before || notified != 0 {
		t.Errorf("an unusable Secret changed something: %v", err)
	}
	adopt(t, f, state, now, serviceSubject)
	if after, err := f.GetCertificate(nil); err != nil || after == before || notified != 1 {
		t.Errorf("a new certificate was not taken over: %v, %d notifications", err, notified)
	}
}

// Handshakes as they are: kube-apiserver verifies the server by the bundle and the Service's DNS name, and a server that asks
// for certificates of clients takes those of clients only.
func TestHandshakes(t *testing.T) {
	now := time.Now()
	state, others := settle(t, State{}, now), settle(t, State{}, now)
	follower := func(s State, subject Subject) *Follower {
		f := followerAt(&now)
		adopt(t, f, s, now, subject)
		return f
	}
	server, client := follower(state, serviceSubject), follower(state, aClient)
	for name, c := range map[string]struct {
		client *Follower
		name   string
		want   string
	}{
		"by its name":           {client, "a.b.svc", ""},
		"by its long name":      {client, "a.b.svc.cluster.local", ""},
		"by another name":       {client, "other.b.svc", "not other.b.svc"},
		"a client of others":    {follower(others, aClient), "a.b.svc", "unknown certificate authority"},
		"a server as a client":  {follower(state, serviceSubject), "a.b.svc", "bad certificate"},
		"a client as a server":  {client, "client", "doesn't contain any IP SANs"},
		"a server of no client": {nil, "a.b.svc", "certificate required"},
	} {
		t.Run(name, func(t *testing.T) {
			serving := server
			if c.name == "client" {
				serving, c.name = client, "127.0.0.1"
			}
			config := &tls.Config{GetCertificate: serving.GetCertificate, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: serving.held.roots}
			clientConfig := &tls.Config{RootCAs: client.held.roots}
			if c.client != nil {
				clientConfig = c.client.held.clientConfig()
				clientConfig.RootCAs = client.held.roots
			}
			clientConfig.ServerName = c.name
			err := handshake(t, config, clientConfig)
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// handshake returns why a client cannot read from a server.
func handshake(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte("hello"))
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.(*tls.Conn).NetConn().(*net.TCPConn).CloseWrite()
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), client)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Read(make([]byte, 5))
	return err
}

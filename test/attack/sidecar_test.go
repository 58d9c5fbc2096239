package attack

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/sidecar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/mtls"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// victim is a sidecar beside a real named, both as they run in a pod, with a zone.
type victim struct {
	bindcar.Address
	authority certs.State
	client    *bindcar.Client // the controller's
	health    netip.AddrPort
}

const victimZone = "bank.example"

func startVictim(t *testing.T) *victim {
	t.Helper()
	pod := namedtest.StartPod(t, v1beta1.RolePrimary, [2]*wire.Key{}, nil)
	ports, err := namedtest.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	loopback := netip.MustParseAddr("127.0.0.1")
	v := &victim{authority: mtls.NewAuthority(t), health: netip.AddrPortFrom(loopback, uint16(ports[0]))}
	v.Address = bindcar.Address{Addr: netip.AddrPortFrom(loopback, uint16(ports[1])), Namespace: "bank", Instance: "bank-primary-0"}
	dir := t.TempDir()
	mtls.WriteFiles(t, dir, mtls.Instance(t, v.authority, v.Namespace, v.Instance))
	o := sidecar.NewOptions()
	o.Listen, o.HealthAddress, o.NoticeAddress = []string{v.Addr.String()}, v.health.String(), pod.NoticeAddr().String()
	o.TLSCertFile, o.TLSKeyFile, o.ClientCAFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
	o.RNDCAddress, o.RNDCKeyFile, o.StatisticsURL = pod.ControlAddr(), pod.Layout.ControlKeyFile, pod.StatisticsURL()
	o.ZonesDir, o.KeyNamesDir = pod.Layout.ZonesDir, pod.Layout.KeyDir
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx); close(done) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	v.client = mtls.Client(t, v.authority, bindcar.ControllerIdentity)
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		select {
		case err := <-done:
			t.Fatalf("the sidecar: %v", err)
		default:
		}
		return v.client.Ready(ctx, v.Address)
	})
	soa := &bindcar.SOA{PrimaryNS: "ns1." + victimZone + ".", AdminEmail: "a@b.example", Serial: 1, Refresh: 1, Retry: 1, Expire: 1, NegativeTTL: 1}
	zone := bindcar.CreateZone{ZoneName: victimZone, ZoneType: bindcar.Primary, UpdateKeyName: pod.UpdateKey.Name, ZoneConfig: bindcar.ZoneConfig{
		TTL: 300, SOA: soa, Records: []bindcar.Record{{Name: "@", Type: "NS", Value: "ns1"}, {Name: "ns1", Type: "A", Value: "192.0.2.1"}},
	}}
	if err := v.client.CreateZone(t.Context(), v.Address, zone); err != nil {
		t.Fatal(err)
	}
	return v
}

// requireUntouched requires that the victim has its zone and no other.
func (v *victim) requireUntouched(t *testing.T) {
	t.Helper()
	list, err := v.client.Zones(t.Context(), v.Address)
	if err != nil || !slices.Equal(list.Zones, []string{victimZone}) || len(list.Items[0].AllowTransfer) > 0 {
		t.Errorf("the victim has %+v, %v", list, err)
	}
}

// program is the attacker's own, in the place of her instance's sidecar: it serves with the certificate of that instance, as
// she can read it in her namespace, and records what it is sent.
type program struct {
	bindcar.Address
	data map[string][]byte

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	// peer is the certificate of the last caller; raw has the bytes of all connections.
	peer *x509.Certificate
	raw  []byte
	// elsewhere is where all requests are redirected to; empty for nowhere.
	elsewhere string
}

// leadTo redirects all requests from now on.
func (p *program) leadTo(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.elsewhere = server
}

func startProgram(t *testing.T, authority certs.State) *program {
	t.Helper()
	p := &program{data: mtls.Instance(t, authority, "evil", "evil-primary-0")}
	certificate, err := tls.X509KeyPair(p.data["tls.crt"], p.data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(p)
	web.Listener = tls.NewListener(recording{web.Listener, p}, &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13,
	})
	web.Start()
	t.Cleanup(web.Close)
	addr := web.Listener.Addr().(*net.TCPAddr).AddrPort()
	p.Address = bindcar.Address{Addr: addr, Namespace: "evil", Instance: "evil-primary-0"}
	return p
}

func (p *program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests, p.bodies = append(p.requests, r), append(p.bodies, string(body))
	if len(r.TLS.PeerCertificates) > 0 {
		p.peer = r.TLS.PeerCertificates[0]
	}
	if p.elsewhere != "" {
		http.Redirect(w, r, p.elsewhere+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		return
	}
	_, _ = w.Write([]byte(`{"success":true}`))
}

// recording keeps the bytes that a listener's connections receive.
type recording struct {
	net.Listener
	program *program
}

func (l recording) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &recordedConn{conn, l.program}, err
}

type recordedConn struct {
	net.Conn
	program *program
}

func (c *recordedConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	c.program.mu.Lock()
	defer c.program.mu.Unlock()
	c.program.raw = append(c.program.raw, into[:n]...)
	return n, err
}

// What the controller sends to the attacker's program opens no other sidecar, and neither does anything that she has.
func TestAttack03Relay(t *testing.T) {
	kube.WithoutCluster(t)
	v := startVictim(t)
	p := startProgram(t, v.authority)
	// The controller works on her instance: it deletes a zone there that has the name of the victim's.
	if err := v.client.DeleteZone(t.Context(), p.Address, victimZone, bindcar.Owner{}); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	requests, peer, raw := p.requests, p.peer, slices.Clone(p.raw)
	p.mu.Unlock()
	if len(requests) == 0 || peer == nil {
		t.Fatal("the program has caught nothing: the refusals would prove nothing")
	}
	for _, r := range requests {
		for _, secret := range []string{"Authorization", "Cookie"} {
			if value := r.Header.Get(secret); value != "" {
				t.Errorf("the controller sends %s %q to whoever runs a sidecar", secret, value)
			}
		}
	}
	own, err := tls.X509KeyPair(p.data["tls.crt"], p.data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		certificate *tls.Certificate
		want        string
	}{
		"what she caught, without a certificate":                    {nil, "certificate required"},
		"with the certificate of her instance":                      {&own, "bad certificate"},
		"with the controller's certificate, and a key of her own":   {&tls.Certificate{Certificate: [][]byte{peer.Raw}, PrivateKey: key}, "error decrypting message"},
		"with a certificate that her instance's key signed for her": {forged(t, own, p.data["tls.crt"]), "unknown certificate authority"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, caught := range requests {
				err := v.replay(t, c.certificate, caught)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s %s: %v, want %s", caught.Method, caught.URL.Path, err, c.want)
				}
			}
		})
	}
	t.Run("the bytes of its connection", func(t *testing.T) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", v.Addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = conn.Write(raw)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		// The sidecar answers the greeting, then the rest makes no sense to it.
		if answer, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(answer), "HTTP/1.1") {
			t.Errorf("answer %q, %v", answer, err)
		}
	})
	t.Run("by passing on the connection itself", func(t *testing.T) {
		through := relay(t, v.Addr)
		through.Namespace, through.Instance = p.Namespace, p.Instance
		var e *bindcar.Error
		err := v.client.DeleteZone(t.Context(), through, victimZone, bindcar.Owner{})
		if !errors.As(err, &e) || e.Reason != status.BindcarUnreachable || !strings.Contains(e.Details, "certificate") {
			t.Errorf("the controller speaks to the victim as to her instance: %v", err)
		}
	})
	v.requireUntouched(t)
}

// A program in the place of a sidecar leads the controller, with the controller's certificate, to the sidecar of somebody else.
func TestAttack03Redirect(t *testing.T) {
	kube.WithoutCluster(t)
	v := startVictim(t)
	p := startProgram(t, v.authority)
	address := v.Addr.Addr().As4()
	name := hex.EncodeToString(address[:]) + strings.TrimPrefix(bindcar.CertificateName(v.Namespace, v.Instance), "*")
	p.leadTo("https://" + net.JoinHostPort(name, strconv.Itoa(int(v.Addr.Port()))))
	everybody := []string{"any"}
	for request, err := range map[string]error{
		"patch":  v.client.PatchZone(t.Context(), p.Address, victimZone, bindcar.PatchZone{AllowTransfer: &everybody}),
		"create": v.client.CreateZone(t.Context(), p.Address, bindcar.CreateZone{ZoneName: "shop." + victimZone, ZoneType: bindcar.Primary}),
		"delete": v.client.DeleteZone(t.Context(), p.Address, victimZone, bindcar.Owner{}),
	} {
		if e, ok := errors.AsType[*bindcar.Error](err); !ok || e.Code != http.StatusTemporaryRedirect {
			t.Errorf("%s: %v", request, err)
		}
	}
	v.requireUntouched(t)
}

// forged returns a certificate of a client that an instance's key has signed.
func forged(t *testing.T, instance tls.Certificate, chain []byte) *tls.Certificate {
	t.Helper()
	signer, ok := instance.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatalf("a key of type %T", instance.PrivateKey)
	}
	leaf, err := (&certs.Authority{Cert: instance.Leaf, Key: signer}).Mint(time.Now(), time.Hour, certs.Subject{Identity: bindcar.ControllerIdentity})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(append(leaf.CertPEM, chain...), leaf.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

// replay sends a caught request to the victim with a certificate. It returns an error unless there is a response.
func (v *victim) replay(t *testing.T, certificate *tls.Certificate, caught *http.Request) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(v.authority.Bundle())
	config := &tls.Config{RootCAs: roots, ServerName: "x" + strings.TrimPrefix(bindcar.CertificateName(v.Namespace, v.Instance), "*")}
	if certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", v.Addr.String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	request, err := http.NewRequestWithContext(t.Context(), caught.Method, "https://victim"+caught.URL.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = caught.Header.Clone()
	_ = request.Write(conn) // the refusal may come first
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	t.Errorf("the victim answers %s", response.Status)
	return nil
}

// relay passes connections on to a server, byte by byte.
func relay(t *testing.T, to netip.AddrPort) bindcar.Address {
	t.Helper()
	return bindcar.Address{Addr: tcpserver.Start(t, func(from net.Conn) {
		onward, err := new(net.Dialer).DialContext(context.Background(), "tcp", to.String())
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(onward, from); _ = onward.Close() }()
		_, _ = io.Copy(from, onward)
	})}
}

// Hundreds of connections that never authenticate, from the addresses of a few pods, and new ones all the time, keep neither the
// controller nor the kubelet from a sidecar.
func TestAttack13Junk(t *testing.T) {
	kube.WithoutCluster(t)
	v := startVictim(t)
	foreign := mtls.Client(t, mtls.NewAuthority(t), bindcar.ControllerIdentity)
	ctx, stop := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	t.Cleanup(attackers.Wait)
	t.Cleanup(stop)
	junk := []string{"", "\x16", "\x16\x03\x01\x02\x00\x01\x00", "GET /api/v1/zones HTTP/1.1\r\n", strings.Repeat("\xff", 1000)}
	var opened sync.WaitGroup
	for i := range 400 {
		opened.Add(1)
		first := sync.OnceFunc(opened.Done)
		attackers.Go(func() {
			for ctx.Err() == nil {
				hold(ctx, i, v.Addr, junk[i%len(junk)], first)
			}
		})
	}
	for range 4 {
		attackers.Go(func() {
			for ctx.Err() == nil {
				if _, err := foreign.Zones(ctx, v.Address); err == nil {
					t.Error("a client of another authority is served")
				}
			}
		})
	}
	opened.Wait()
	for range 30 {
		// A client of its own has no connection yet.
		if _, err := mtls.Client(t, v.authority, bindcar.ControllerIdentity).Zones(t.Context(), v.Address); err != nil {
			t.Errorf("the controller is kept out: %v", err)
		}
		response, err := http.Get("http://" + v.health.String() + bindcar.PathPrefix + "/health") //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
			t.Errorf("the kubelet is answered %s", response.Status)
		}
	}
	v.requireUntouched(t)
}

// hold opens a connection from one of eight addresses, sends junk, and keeps it until the server or the context ends it.
func hold(ctx context.Context, i int, to netip.AddrPort, junk string, opened func()) {
	defer opened()
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i%8))}
	conn, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", to.String())
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = conn.Write([]byte(junk))
	opened()
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}

package bindcar_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/test/mtls"
)

// manyZones are more than fit into one piece of a response.
const manyZones = 5000

// secured is a server with the certificate of an instance, and how often it was asked something, over how many connections.
type secured struct {
	bindcar.Address
	asked, connections atomic.Int32
	// redirect answers in place of the server, if it is not nil.
	redirect http.HandlerFunc
}

// serveTLS serves with an instance's certificate, and takes callers whom the authority clients has issued a certificate.
func serveTLS(t *testing.T, authority, clients certs.State, namespace, instance string) *secured {
	t.Helper()
	data := mtls.Instance(t, authority, namespace, instance)
	certificate, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := mtls.Caller(t, clients, bindcar.ControllerIdentity)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &secured{}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if s.redirect != nil {
			s.redirect(w, r)
			return
		}
		response := bindcar.ZoneList{}
		if strings.HasSuffix(r.URL.Path, "/zones") && r.Method == http.MethodGet {
			response.Zones = slices.Repeat([]string{"example.com"}, manyZones)
		}
		_ = json.NewEncoder(w).Encode(response)
	}))
	web.TLS = &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: verifier.RootCAs,
	}
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	web.StartTLS()
	t.Cleanup(web.Close)
	s.Address = addressOf(web.Listener.Addr())
	return s
}

func addressOf(addr net.Addr) bindcar.Address {
	return bindcar.Address{Addr: netip.MustParseAddrPort(addr.String()), Namespace: "dns", Instance: "dns-primary-0"}
}

// TestVerification: nobody is asked anything but the instance that is meant. The error names nothing of the certificate of somebody else.
func TestVerification(t *testing.T) {
	ours, others := mtls.NewAuthority(t), mtls.NewAuthority(t)
	const notOfThis = "the certificate there is not of this instance"
	cases := map[string]struct {
		trusted             certs.State
		namespace, instance string
		details             string // empty if it is verified
	}{
		"as it should be":         {ours, "dns", "dns-primary-0", ""},
		"another authority":       {others, "dns", "dns-primary-0", "the certificate there is of another authority"},
		"another instance's":      {ours, "dns", "dns-primary-1", notOfThis},
		"of another namespace":    {ours, "team", "dns-primary-0", notOfThis},
		"part of the name":        {ours, "dns", "primary-0", notOfThis},
		"a name below the name's": {ours, "dns", "x.dns-primary-0", notOfThis},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := serveTLS(t, ours, c.trusted, c.namespace, c.instance)
			_, err := mtls.Client(t, c.trusted, bindcar.ControllerIdentity).Zones(shortly(t), s.Address)
			if (c.details == "") != (err == nil) {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				return
			}
			if e, ok := errors.AsType[*bindcar.Error](err); !ok || e.Reason != status.BindcarUnreachable || e.Details != c.details {
				t.Errorf("got %#v", err)
			}
			if s.asked.Load() != 0 {
				t.Error("the server was asked")
			}
		})
	}
}

// TestRedirectsAreNotFollowed: a sidecar leads none of our requests, with our certificate, to the sidecar of somebody else.
func TestRedirectsAreNotFollowed(t *testing.T) {
	ours := mtls.NewAuthority(t)
	victim := serveTLS(t, ours, ours, "dns", "dns-primary-0")
	victim.Addr = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), victim.Addr.Port())
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { victim.asked.Add(1) }))
	t.Cleanup(plain.Close)
	name := "7f000001.dns-primary-0.dns.bindcar.internal:" + strconv.Itoa(int(victim.Addr.Port()))
	for to, target := range map[string]string{"a sidecar": "https://" + name, "another service": plain.URL} {
		for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			t.Run(fmt.Sprintf("%d to %s", code, to), func(t *testing.T) {
				hostile := serveTLS(t, ours, ours, "evil", "evil-primary-0")
				hostile.Namespace, hostile.Instance = "evil", "evil-primary-0"
				hostile.redirect = func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, target+r.URL.RequestURI(), code)
				}
				client := mtls.Client(t, ours, bindcar.ControllerIdentity)
				_, list := client.Zones(shortly(t), hostile.Address)
				_, zone := client.Zone(shortly(t), hostile.Address, "bank.example")
				_, command := client.Command(shortly(t), hostile.Address, "bank.example", "freeze")
				for request, err := range map[string]error{
					"list": list, "zone": zone, "command": command,
					"create": client.CreateZone(shortly(t), hostile.Address, bindcar.CreateZone{}),
					"patch":  client.PatchZone(shortly(t), hostile.Address, "bank.example", bindcar.PatchZone{}),
					"delete": client.DeleteZone(shortly(t), hostile.Address, "bank.example", bindcar.Owner{}),
					"stream": client.ReadNotifications(shortly(t), hostile.Address, func(bindcar.Notification) {}),
				} {
					if e, ok := errors.AsType[*bindcar.Error](err); !ok || e.Code != code {
						t.Errorf("%s: %v", request, err)
					}
				}
				if n := victim.asked.Swap(0); n > 0 {
					t.Errorf("%d requests were led to %s", n, to)
				}
			})
		}
	}
}

// TestRefusedCertificate: a sidecar that does not know our authority says so. It may learn of it without anybody's help.
func TestRefusedCertificate(t *testing.T) {
	ours, others := mtls.NewAuthority(t), mtls.NewAuthority(t)
	s := serveTLS(t, ours, others, "dns", "dns-primary-0")
	var e *bindcar.Error
	_, err := mtls.Client(t, ours, bindcar.ControllerIdentity).Zones(shortly(t), s.Address)
	if !errors.As(err, &e) || e.Reason != status.BindcarAuthFailed || e.Message != "does not accept our certificate" || !e.Transient() {
		t.Errorf("got %#v", err)
	}
}

// TestConnectionsAreKept: requests one after another take one handshake.
func TestConnectionsAreKept(t *testing.T) {
	ours := mtls.NewAuthority(t)
	s := serveTLS(t, ours, ours, "dns", "dns-primary-0")
	client := mtls.Client(t, ours, bindcar.ControllerIdentity)
	for range 5 {
		list, err1 := client.Zones(shortly(t), s.Address)
		_, err2 := client.Zone(shortly(t), s.Address, "example.com")
		err3 := client.CreateZone(shortly(t), s.Address, bindcar.CreateZone{})
		err4 := client.PatchZone(shortly(t), s.Address, "example.com", bindcar.PatchZone{})
		err5 := client.DeleteZone(shortly(t), s.Address, "example.com", bindcar.Owner{})
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil || len(list.Zones) != manyZones {
			t.Fatal(len(list.Zones), err)
		}
	}
	if got := s.connections.Load(); got != 1 {
		t.Errorf("25 requests over %d connections", got)
	}
}

// TestNoPlainText: a server without TLS gets nothing from a client that wants it.
func TestNoPlainText(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1)
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} })}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	client := mtls.Client(t, mtls.NewAuthority(t), bindcar.ControllerIdentity)
	if _, err := client.Zones(shortly(t), addressOf(listener.Addr())); err == nil || len(asked) > 0 {
		t.Errorf("got %v", err)
	}
}

// TestNoCertificate: without a certificate of its own a client connects to nobody.
func TestNoCertificate(t *testing.T) {
	ours := mtls.NewAuthority(t)
	s := serveTLS(t, ours, ours, "dns", "dns-primary-0")
	none := bindcar.NewClient(bindcar.ClientOptions{TLS: func(context.Context) (*tls.Config, error) { return nil, errors.New("no certificate yet") }})
	var e *bindcar.Error
	if _, err := none.Zones(shortly(t), s.Address); !errors.As(err, &e) || e.Reason != status.BindcarUnreachable || s.connections.Load() != 0 {
		t.Errorf("got %v", err)
	}
}

// TestSidecarsAddress: what may not be connected to is not connected to, whoever says that a sidecar is there.
func TestSidecarsAddress(t *testing.T) {
	ours := mtls.NewAuthority(t)
	s := serveTLS(t, ours, ours, "dns", "dns-primary-0")
	for _, tls := range []func(context.Context) (*tls.Config, error){mtls.Caller(t, ours, bindcar.ControllerIdentity), nil} {
		client := bindcar.NewClient(bindcar.ClientOptions{TLS: tls, Gate: outbound.NewGate(nil, outbound.Limits{})})
		var e *bindcar.Error
		if _, err := client.Zones(shortly(t), s.Address); !errors.As(err, &e) || !strings.Contains(e.Details, "may not be used") || s.connections.Load() != 0 {
			t.Errorf("got %v, and %d connections", err, s.connections.Load())
		}
	}
}

func shortly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

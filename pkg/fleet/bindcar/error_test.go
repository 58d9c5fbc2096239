package bindcar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// TestCodes: what a real HTTP server answers becomes the condition's reason and message.
func TestCodes(t *testing.T) {
	cases := map[int]struct {
		reason, message string
		transient       bool
	}{
		400: {status.BindcarBadRequest, "was sent an invalid request to Bindcar API (400)", false},
		401: {status.BindcarAuthFailed, "reports that Bindcar authentication failed", false},
		403: {status.BindcarAuthFailed, "reports that Bindcar authentication failed", false},
		404: {status.ZoneNotFound, "reports zone or resource not found in BIND9 (404)", false},
		409: {status.BindcarUnreachable, "already has the zone (409)", false},
		418: {status.BindcarUnreachable, "gave an unexpected HTTP error from Bindcar (418)", false},
		429: {status.BindcarUnreachable, "gave an unexpected HTTP error from Bindcar (429)", true},
		500: {status.BindcarInternalError, "reports a Bindcar API internal error (500)", true},
		501: {status.BindcarNotImplemented, "reports operation not supported by Bindcar (501)", false},
		502: {status.GatewayError, "has a gateway error reaching Bindcar (502)", true},
		503: {status.GatewayError, "has a gateway error reaching Bindcar (503)", true},
		504: {status.GatewayError, "has a gateway error reaching Bindcar (504)", true},
	}
	for code, c := range cases {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			// A gateway's own page is no JSON.
			for _, body := range []string{`{"error":"title","details":"the sidecar's words"}`, "<html>no JSON</html>"} {
				web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(code)
					_, _ = w.Write([]byte(body))
				}))
				defer web.Close()
				_, err := NewClient(ClientOptions{}).Zones(testContext(t), serverAt(web.URL))
				if e, ok := errors.AsType[*Error](err); !ok || e.Code != code || e.Reason != c.reason || e.Message != c.message || e.Transient() != c.transient {
					t.Errorf("%s: %#v", body, err)
				}
			}
		})
	}
}

// TestNoConnection: whatever keeps an answer from coming, the sidecar is unreachable, and it may help to try again.
func TestNoConnection(t *testing.T) {
	stopping := make(chan struct{})
	defer close(stopping)
	servers := map[string]http.HandlerFunc{
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"hangs up in the middle": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"zones":`))
		},
		"does not answer": func(http.ResponseWriter, *http.Request) { <-stopping },
	}
	at := map[string]Address{}
	for name, handler := range servers {
		web := httptest.NewServer(handler)
		t.Cleanup(web.CloseClientConnections)
		at[name] = serverAt(web.URL)
	}
	refused := httptest.NewServer(http.NotFoundHandler())
	refused.Close()
	at["is not there"] = serverAt(refused.URL)
	for name, server := range at {
		t.Run(name, func(t *testing.T) {
			_, err := NewClient(ClientOptions{Timeout: 300 * time.Millisecond}).Zones(testContext(t), server)
			if e, ok := errors.AsType[*Error](err); !ok || e.Code != 0 || e.Reason != status.BindcarUnreachable || e.Message != "cannot connect to Bindcar API" || !e.Transient() {
				t.Errorf("got %#v", err)
			}
		})
	}
}

// TestNoJSON: an answer that says success in words we do not have is the sidecar's fault.
func TestNoJSON(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("fine")) }))
	defer web.Close()
	_, err := NewClient(ClientOptions{}).Zones(testContext(t), serverAt(web.URL))
	if e, ok := errors.AsType[*Error](err); !ok || e.Reason != status.BindcarInternalError {
		t.Errorf("got %#v", err)
	}
}

// TestPublicSidecar: the sidecar of the same name says 500 when a zone that it should delete is not there, and 409 when one
// that it should add is.
func TestPublicSidecar(t *testing.T) {
	mux := http.NewServeMux()
	answer := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	mux.HandleFunc("POST /api/v1/zones", answer(409, `{"error":"Zone already exists","details":"there"}`))
	mux.HandleFunc("DELETE /api/v1/zones/{name}", answer(500, `{"error":"RNDC command failed"}`))
	mux.HandleFunc("GET /api/v1/zones/missing.example", answer(404, `{"error":"Zone not found"}`))
	mux.HandleFunc("GET /api/v1/zones/there.example", answer(200, `{"name":"there.example","zoneType":"primary","serial":7}`))
	web := httptest.NewServer(mux)
	defer web.Close()
	client, server := NewClient(ClientOptions{}), serverAt(web.URL)
	if err := client.CreateZone(testContext(t), server, CreateZone{ZoneName: "there.example"}); !IsExists(err) {
		t.Errorf("create: %v", err)
	}
	if err := client.DeleteZone(testContext(t), server, "missing.example", Owner{}); !IsNotFound(err) {
		t.Errorf("delete of a missing zone: %v", err)
	}
	if err := client.DeleteZone(testContext(t), server, "there.example", Owner{}); !hasCode(err, 500) {
		t.Errorf("delete that fails: %v", err)
	}
}

// serverAt is the sidecar of an instance that listens at a URL without a path.
func serverAt(url string) Address {
	_, address, _ := strings.Cut(url, "://")
	return Address{Addr: netip.MustParseAddrPort(address), Namespace: "dns", Instance: "dns-primary-0"}
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

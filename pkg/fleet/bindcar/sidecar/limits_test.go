package sidecar

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/notify"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/statistics"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
	"github.com/lockstep-dns/lockstep/test/mtls"
)

// TestWrongControlKey: a sidecar that named does not let in says so, and asking again does not help.
func TestWrongControlKey(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httperror.WriteError(w, r, fmt.Errorf("listing zones: %w", rndc.ErrAuth))
	}))
	defer web.Close()
	_, err := bindcar.NewClient(bindcar.ClientOptions{}).Zones(testContext(t), serverAt(web.URL))
	if e, ok := errors.AsType[*bindcar.Error](err); !ok || e.Reason != status.RNDCAuthenticationFailed || e.Message != "cannot authenticate to its named" || e.Transient() {
		t.Errorf("%#v", err)
	}
}

// TestRequestRate: more requests than --request-rate are answered 429, and those that keep to it are not.
func TestRequestRate(t *testing.T) {
	server := limitedServer(5)
	authority := mtls.NewAuthority(t)
	web := serve(t, authority, server.rootHandler())
	defer web.Close()
	client, codes := mtls.Client(t, authority, bindcar.ControllerIdentity), map[bool]int{}
	for range 50 {
		_, err := client.Zones(testContext(t), serverAt(web.URL))
		codes[hasCode(err, http.StatusTooManyRequests)]++
		if e, ok := errors.AsType[*bindcar.Error](err); hasCode(err, http.StatusTooManyRequests) && (!ok || !e.Transient()) {
			t.Fatalf("got %v", err)
		}
	}
	if codes[true] == 0 || codes[false] < 5 {
		t.Errorf("%d limited, %d served", codes[true], codes[false])
	}
}

func limitedServer(perSecond int) *server {
	return &server{
		limiter: newLimiter(perSecond), metrics: newMetrics(), notifications: &notify.Streamer{},
		statistics: statistics.Channel{URL: "http://127.0.0.1:1"},
	}
}

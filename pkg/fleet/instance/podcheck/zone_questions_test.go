package podcheck

import (
	"context"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/named"
)

// TestServedToOthersOnly: a zone that named does not answer for from here is served if it answers for the key.
func TestServedToOthersOnly(t *testing.T) {
	stranger := &wire.Key{Name: "other.", Algorithm: "hmac-sha256.", Secret: "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcg=="}
	server := named.Start(t, named.Options{Zones: []named.Zone{
		{Name: "open.test.", Records: "www A 192.0.2.7"},
		{Name: "office.test.", Records: "www A 192.0.2.7", Extra: `allow-query { key "transfer."; 192.0.2.0/24; };`},
	}, NoWait: true}) // It does not answer strangers that it is ready.
	for name, tc := range map[string]struct {
		zone string
		key  *wire.Key
		want bool
	}{
		"open":                     {"open.test.", nil, true},
		"others only":              {"office.test.", &server.Transfer, true},
		"others only, no key":      {"office.test.", nil, false},
		"others only, another key": {"office.test.", stranger, false},
		"none":                     {"none.test.", &server.Transfer, false},
	} {
		t.Run(name, func(t *testing.T) {
			peer := observe.Peer{Addr: server.Addr, Namespace: "dns"}
			dns := observe.New(observe.Options{})
			for !dns.Serial(t.Context(), peer, "open.test.", nil).Authoritative {
				time.Sleep(10 * time.Millisecond) // until named has started
			}
			q := zoneQuestions{dns: dns, server: peer, key: func(context.Context) *wire.Key { return tc.key }}
			if got := q.isServed(t.Context(), tc.zone); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

package bindcar

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
)

// Connections with sidecars are charged to the namespace of their instance: those of one that answers nothing keep none from sidecars of
// another namespace, and its own limit is named. An address that nobody may name is not connected to.
func TestConnectionsOfSidecars(t *testing.T) {
	const limit = 3
	hold, held := make(chan struct{}), make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		held <- struct{}{}
		<-hold
	}))
	t.Cleanup(hanging.Close)
	honest := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(honest.Close)
	at := func(server *httptest.Server, namespace string) Address {
		return Address{Addr: netip.MustParseAddrPort(server.Listener.Addr().String()), Namespace: namespace, Instance: "web"}
	}
	client := NewClient(ClientOptions{Gate: outbound.NewGate(netip.Addr.IsValid, outbound.Limits{SidecarConnections: limit})})
	var hangs sync.WaitGroup
	t.Cleanup(hangs.Wait)
	t.Cleanup(sync.OnceFunc(func() { close(hold) }))
	for range limit {
		hangs.Go(func() {
			_ = client.CheckDS(context.WithoutCancel(t.Context()), at(hanging, "guests"), "a.test", CheckDS{})
		})
		<-held
	}
	if err := client.CheckDS(t.Context(), at(honest, "dns"), "a.test", CheckDS{}); err != nil {
		t.Errorf("a sidecar of another namespace: %v", err)
	}
	_, err := ClientOptions{Timeout: 1}.dial(context.WithValue(t.Context(), accountKey{}, client.gate.Sidecar("guests", netip.IPv6Unspecified())), "tcp", honest.Listener.Addr().String())
	if !errors.Is(err, outbound.ErrLimit) || !errors.Is(err, errNoConnection) || !strings.Contains(err.Error(), "namespace guests has 3 connections") {
		t.Errorf("one connection more: %v", err)
	}

	strict := NewClient(ClientOptions{Gate: outbound.NewGate(nil, outbound.Limits{})})
	if err := strict.Ready(t.Context(), at(honest, "dns")); !errors.Is(err, outbound.ErrForbidden) {
		t.Errorf("a sidecar on loopback: %v", err)
	}
}

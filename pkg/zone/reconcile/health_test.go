package reconcile

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/liveness"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// TestHealthCheckFailsWhilePassesHang: the health check that the kubelet asks fails when the passes of two namespaces hang, and passes again
// when one has ended. The manager is the controller's, without anything to reconcile; only the patience is short.
func TestHealthCheckFailsWhilePassesHang(t *testing.T) {
	free, err := bind.FreeAddress(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	address := free.String()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://192.0.2.1"}, ctrl.Options{
		HealthProbeBindAddress: address, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	due := func() map[types.NamespacedName]time.Time { return nil }
	watchdog := liveness.NewWatchdog(due, time.Now)
	watchdog.Timeout, watchdog.SingleNamespaceTimeout = 200*time.Millisecond, time.Hour
	if err := addWatchdog(mgr, prometheus.NewRegistry(), watchdog); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	release := map[string]chan struct{}{"bank": make(chan struct{}), "shop": make(chan struct{})}
	passes := watchdog.Watch(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		select {
		case <-release[req.Namespace]:
		case <-ctx.Done():
		}
		return ctrl.Result{}, nil
	}))
	waitHealth(t, address, http.StatusOK)
	for namespace := range release {
		running.Go(func() {
			_, _ = passes.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "zone"}})
		})
	}
	waitHealth(t, address, http.StatusInternalServerError)
	close(release["bank"])
	waitHealth(t, address, http.StatusOK)
}

// waitHealth waits until the health check answers with a code.
func waitHealth(t *testing.T, address string, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var got string
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			text, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode == want {
				tick.Stop()
				return
			}
			got = fmt.Sprint(response.Status, ": ", string(text))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the health check answers %q, want %d", got, want)
		}
	}
}

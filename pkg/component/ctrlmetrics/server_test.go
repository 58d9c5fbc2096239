package ctrlmetrics

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	base "k8s.io/component-base/metrics"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lockstep-dns/lockstep/pkg/component"
)

// runner is a manager that runs one server, and knows its address.
type runner struct {
	*testing.T
	address string
}

func (r *runner) Add(server manager.Runnable) error {
	r.address = server.(*manager.Server).Listener.Addr().String()
	go func() { _ = server.Start(r.Context()) }()
	return nil
}

// Managers serve the version, and the metrics that were declared, also while somebody holds connections open.
func TestServe(t *testing.T) {
	const name = "lockstep_test_declared"
	component.DeclareMetrics(base.NewGauge(&base.GaugeOpts{Name: name, Help: "A test.", StabilityLevel: base.ALPHA}))
	if err := component.RegisterMetrics(); err != nil {
		t.Fatal(err)
	}
	none := &runner{T: t}
	if err := Serve(t.Context(), none, "0"); err != nil || none.address != "" {
		t.Errorf("%v, %q", err, none.address)
	}
	mgr := &runner{T: t}
	if err := Serve(t.Context(), mgr, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var held []net.Conn
	for range maxConnections + 1 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", mgr.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		held = append(held, conn)
	}
	_ = held[0].SetReadDeadline(time.Now().Add(headerTimeout / 2))
	if _, err := held[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest of too many connections is open: %v", err)
	}
	for path, want := range map[string]string{"/metrics": "\n" + name + " 0\n", component.VersionPath: `"gitVersion"`} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+mgr.address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %s, %v, no %q in %d bytes", path, answer.Status, err, want, len(body))
		}
	}
}

package sidecar

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/bindcar/httperror"
)

// readinessAge is how old readiness may be: anybody may ask, as often as they like, without a load on named.
const readinessAge = 500 * time.Millisecond

// readiness is whether named answered on its control channel a moment ago.
type readiness struct {
	ask func(context.Context) error

	mu  sync.Mutex
	err error
	at  time.Time
}

func (r *readiness) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= readinessAge {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		r.err = r.ask(ctx)
		r.at = time.Now()
	}
	return r.err
}

// healthHandler serves the kubelet's probes, which have no certificate: health and readiness, and nothing else.
func (s *server) healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+bindcar.PathPrefix+"/health", func(w http.ResponseWriter, _ *http.Request) {
		respondSuccess(w, http.StatusOK, "healthy", "")
	})
	mux.HandleFunc("GET "+bindcar.PathPrefix+"/ready", s.getReadiness)
	return mux
}

// getReadiness reports whether named answers on its control channel.
func (s *server) getReadiness(w http.ResponseWriter, _ *http.Request) {
	if err := s.readiness.check(); err != nil { //nolint:contextcheck // Several requests share an answer.
		klog.V(2).InfoS("not ready", "reason", err.Error())
		httperror.WriteJSON(w, http.StatusServiceUnavailable, bindcar.Failure{Error: "named does not answer"})
		return
	}
	respondSuccess(w, http.StatusOK, "named answers", "")
}

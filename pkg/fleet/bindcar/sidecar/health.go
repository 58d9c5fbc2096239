package sidecar

import (
	"context"
	"net/http"
	"regexp"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
)

// readinessAge is how old readiness may be: anybody may ask, as often as they like, without a load on named.
const readinessAge = 500 * time.Millisecond

// readiness is whether named answered on its control channel a moment ago.
type readiness struct {
	// ask returns named's version.
	ask func(context.Context) (string, error)

	mu      sync.Mutex
	version string
	err     error
	at      time.Time
}

func (r *readiness) check() (version string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= readinessAge {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		r.version, r.err = r.ask(ctx)
		r.at = time.Now()
	}
	return r.version, r.err
}

// healthHandler serves the kubelet's probes, which have no certificate: health and readiness, and nothing else.
func (s *server) healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+bindcar.PathPrefix+"/health", func(w http.ResponseWriter, _ *http.Request) {
		respondSuccess(w, http.StatusOK, "healthy", "")
	})
	mux.HandleFunc("GET "+bindcar.PathPrefix+"/ready", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := s.readiness.check(); err != nil { //nolint:contextcheck // Several requests share an answer.
			klog.V(2).InfoS("not ready", "reason", err.Error())
			httperror.WriteJSON(w, http.StatusServiceUnavailable, bindcar.Failure{Error: "named does not answer"})
			return
		}
		respondSuccess(w, http.StatusOK, "named answers", "")
	})
	return mux
}

// getReadiness answers those who have a certificate: why named does not answer on its control channel, or its version.
func (s *server) getReadiness(w http.ResponseWriter, r *http.Request) {
	version, err := s.readiness.check() //nolint:contextcheck // Several requests share an answer.
	if err != nil {
		httperror.WriteError(w, r, err)
		return
	}
	httperror.WriteJSON(w, http.StatusOK, bindcar.Readiness{Answer: bindcar.Answer{Success: true, Message: "named answers"}, Version: version})
}

// askVersion asks named for its version on its control channel.
func (s *server) askVersion(ctx context.Context) (string, error) {
	text, err := s.control.Command(ctx, "status")
	if found := versionLine.FindStringSubmatch(text); found != nil {
		return found[1], err
	}
	return "", err
}

// versionLine of the output of rndc status, for example "version: BIND 9.20.15-1~deb13u1-Debian (Stable Release) <id:1>".
var versionLine = regexp.MustCompile(`(?m)^version: BIND (\S+)`)

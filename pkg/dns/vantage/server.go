package vantage

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/time/rate"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
)

const (
	// maxRequests is how many requests are under way.
	maxRequests = 16
	// maxConnections is how many questions are under way.
	maxConnections = 128
)

// Server asks name servers for whoever has a client certificate with the caller's identity.
type Server struct {
	caller   string
	ports    []int
	deadline time.Duration
	gate     *outbound.Gate
	rate     *rate.Limiter
	requests chan struct{}
}

// newServer returns a Server of some options. gate decides which addresses are asked.
func newServer(o *Options, gate *outbound.Gate) *Server {
	return &Server{
		caller: o.caller, ports: o.Ports, deadline: o.Deadline, gate: gate,
		rate: rate.NewLimiter(rate.Limit(o.QuestionRate), max(o.QuestionRate, maxQuestions)), requests: make(chan struct{}, maxRequests),
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case identityOf(r.TLS) != s.caller:
		http.Error(w, "the certificate does not permit this request", http.StatusForbidden)
		return
	case r.URL.Path != askPath:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodPost:
		http.Error(w, "POST", http.StatusMethodNotAllowed)
		return
	}
	select {
	case s.requests <- struct{}{}:
		defer func() { <-s.requests }()
	default:
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	var q request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&q); err != nil {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return
	}
	if _, ok := dns.IsDomainName(q.Zone); !ok || dns.CanonicalName(q.Zone) != q.Zone || len(q.Questions) > maxQuestions {
		http.Error(w, "the request is not about one zone at a few addresses", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(response{Answers: s.askAll(r.Context(), q)}) // The caller has gone.
}

// identityOf is the identity of a caller whose certificate was verified.
func identityOf(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 {
		return ""
	}
	leaf := state.VerifiedChains[0][0]
	if len(leaf.URIs) != 1 || time.Now().After(leaf.NotAfter) {
		return ""
	}
	return leaf.URIs[0].String()
}

func (s *Server) askAll(ctx context.Context, q request) []answer {
	ctx = outbound.WithAccount(ctx, s.gate.Account("vantage", "the API server", maxConnections))
	answers := make([]answer, len(q.Questions))
	var wg sync.WaitGroup
	for i, question := range q.Questions {
		wg.Go(func() { answers[i] = s.ask(ctx, q.Zone, question) })
	}
	wg.Wait()
	return answers
}

func (s *Server) ask(ctx context.Context, zone string, q Question) answer {
	switch {
	case !q.Address.IsValid():
		return answer{Failure: failureForbidden}
	case !slices.Contains(s.ports, int(q.Address.Port())):
		return answer{Failure: failurePort}
	case !s.rate.Allow():
		return answer{Failure: failureLimit}
	}
	return newAnswer(observe.AskWho(ctx, q.Address, zone, q.TCP, s.deadline))
}

package bindcar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/named"
)

// server is the sidecar's state: connections, locks, what named told last of each zone, and a copy of what is on disk.
type server struct {
	options Options
	control *named.Control
	auth    *authenticator
	limiter *rate.Limiter
	metrics *metrics
	// mutating holds the zones that are being changed.
	mutating     keyedMutex
	descriptions descriptionCache
	// keyStore keeps the keys of signed zones; keptKeys is what it has by now.
	keyStore func() (keyStore, error)
	keptKeys keptKeys

	notices *noticeLog
	// heartbeat and reviewEvery are the paces of a stream of notices; stopping ends when all streams have to.
	heartbeat, reviewEvery time.Duration
	stopping               context.Context
	stopStreams            context.CancelFunc
}

func newServer(options Options) (*server, error) {
	review := options.reviewer
	if review == nil {
		var err error
		if review, err = inCluster(); err != nil {
			return nil, err
		}
	}
	key, err := named.ReadControlKey(options.RNDCKeyFile)
	if err != nil {
		return nil, err
	}
	keys := options.keyStore
	if keys == nil {
		keys = sync.OnceValues(inClusterKeys)
	}
	stopping, stopStreams := context.WithCancel(context.Background())
	s := &server{
		options:   options,
		control:   named.NewControl(options.RNDCAddress, key),
		auth:      newAuthenticator(review, options.AllowedServiceAccounts, options.NoticeReaders),
		limiter:   newLimiter(options.RequestRate),
		metrics:   newMetrics(),
		keyStore:  keys,
		notices:   newNoticeLog(maxNotices),
		heartbeat: heartbeat, reviewEvery: goodFor,
		stopping: stopping, stopStreams: stopStreams,
	}
	s.metrics.registry.MustRegister(&namedMetrics{read: s.statistics})
	return s, nil
}

// newLimiter lets through so many requests a second, and as many at once.
func newLimiter(perSecond int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), perSecond)
}

func (s *server) close() {
	s.stopStreams()
	_ = s.control.Close()
}

// handler serves health, readiness and metrics to anybody, and all else to allowed accounts.
func (s *server) handler() http.Handler {
	api := http.NewServeMux()
	route := func(pattern string, h func(http.ResponseWriter, *http.Request) error) {
		method, path, _ := strings.Cut(pattern, " ")
		api.HandleFunc(method+" "+apiPrefix+path, func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r); err != nil {
				respondError(w, r, err)
			}
		})
	}
	route("GET /zones", s.listZones)
	route("POST /zones", s.createZone)
	route("GET /zones/{name}", s.getZone)
	route("PATCH /zones/{name}", s.patchZone)
	route("DELETE /zones/{name}", s.deleteZone)
	route("GET /zones/{name}/status", s.zoneStatus)
	for _, command := range []string{"reload", "freeze", "thaw", "notify", "retransfer"} {
		route("POST /zones/{name}/"+command, s.zoneCommand(command))
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		route(method+" /zones/{name}/records", notImplemented)
	}
	route("GET /server/status", s.serverStatus)
	route("GET /statistics", s.getStatistics)
	route("GET /server/keys", s.serverKeys)

	root := http.NewServeMux()
	root.HandleFunc("GET "+apiPrefix+"/health", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, Answer{Success: true, Message: "healthy"})
	})
	root.HandleFunc("GET "+apiPrefix+"/ready", s.ready)
	root.Handle("GET /metrics", s.metrics.handler())
	// Apart from the routes whose duration is measured: a stream has none worth measuring.
	root.Handle("GET "+apiPrefix+"/notices", s.limited(s.authenticated(mayListen, http.HandlerFunc(s.streamNotices))))
	root.Handle("/", s.limited(s.authenticated(mayControl, s.metrics.count(api))))
	return root
}

func (s *server) limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.limiter.Allow() {
			respondError(w, r, failure(http.StatusTooManyRequests, "too many requests", "slow down"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) authenticated(needed right, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.auth.check(r, needed); err != nil {
			respondError(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ready tells whether named answers on its control channel.
func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.control.Command(ctx, "status"); err != nil {
		klog.FromContext(ctx).V(2).Info("not ready", "reason", err.Error())
		respond(w, http.StatusServiceUnavailable, Failure{Error: "named does not answer", Details: err.Error()})
		return
	}
	respond(w, http.StatusOK, Answer{Success: true, Message: "named answers"})
}

func (s *server) serverStatus(w http.ResponseWriter, r *http.Request) error {
	text, err := s.control.Command(r.Context(), "status")
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, Answer{Success: true, Message: "server status", Details: text})
	return nil
}

func notImplemented(http.ResponseWriter, *http.Request) error {
	return failure(http.StatusNotImplemented, "not implemented", "records are changed by dynamic update (RFC 2136)")
}

func badRequest(field string, err error) *httpFailure {
	return failure(http.StatusBadRequest, "bad request", fmt.Sprintf("%s: %v", field, err))
}

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed) || isEOF(err)
}

// keyedMutex locks names one by one.
type keyedMutex struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// lock waits until nobody holds name and returns the function that lets go of it.
func (m *keyedMutex) lock(ctx context.Context, name string) (unlock func(), err error) {
	for {
		m.mu.Lock()
		if m.held == nil {
			m.held = map[string]chan struct{}{}
		}
		other, busy := m.held[name]
		if !busy {
			done := make(chan struct{})
			m.held[name] = done
			m.mu.Unlock()
			return func() {
				m.mu.Lock()
				delete(m.held, name)
				m.mu.Unlock()
				close(done)
			}, nil
		}
		m.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

package sidecar

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/notify"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/signingkeys"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/statistics"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// server handles the requests of the API.
type server struct {
	control       *rndc.Client
	readiness     readiness
	limiter       *rate.Limiter
	metrics       *metrics
	zones         *zonefile.Dir
	statistics    statistics.Channel
	tsigKeys      *tsigKeys
	signingKeys   *signingkeys.Keeper
	notifications *notify.Streamer
	// noticeAddress is what the clauses of zones notify, beside other servers.
	noticeAddress string
	// leftDefaultSource has, by zone, when it last went on to transfer from a source of its own.
	leftDefaultSource sync.Map
	transfers         *transferWatch
	// settle has the reconciler look at all zones.
	settle       chan struct{}
	closeStreams context.CancelFunc
}

func newServer(options Options) (*server, error) {
	key, err := rndc.ReadKey(options.RNDCKeyFile)
	if err != nil {
		return nil, err
	}
	control := rndc.NewClient(options.RNDCAddress, key)
	s := &server{
		control:       control,
		limiter:       newLimiter(options.RequestRate),
		metrics:       newMetrics(),
		zones:         &zonefile.Dir{Path: options.ZonesDir},
		statistics:    statistics.Channel{URL: options.StatisticsURL},
		tsigKeys:      &tsigKeys{options.KeyNamesDir, control, options.DNSPort},
		noticeAddress: options.NoticeAddress,
		settle:        make(chan struct{}, 1),
	}
	s.transfers = &transferWatch{list: s.statistics.Transfers}
	s.readiness.ask = s.askVersion
	s.signingKeys = signingkeys.NewKeeper(s.zones, signingkeys.InCluster)
	shutdown, closeStreams := context.WithCancel(context.Background())
	s.closeStreams = closeStreams
	s.notifications = &notify.Streamer{
		Log: notify.NewLog(notify.MaxZones), HeartbeatInterval: bindcar.HeartbeatInterval, Open: s.metrics.streams, Shutdown: shutdown,
	}
	s.metrics.registry.RawMustRegister(&statistics.Collector{Read: s.statistics.Read})
	return s, nil
}

// newLimiter admits so many requests per second, and as many at once.
func newLimiter(perSecond int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), perSecond)
}

func (s *server) close() {
	s.closeStreams()
	_ = s.control.Close()
}

// listenForNotify opens the sockets of the NOTIFY listener.
func (s *server) listenForNotify(ctx context.Context) (*notify.Listener, error) {
	return notify.Listen(ctx, s.noticeAddress, s.notifications.Log, s.lookUpSerial, s.metrics.notifies)
}

// handlerFunc is a handler that leaves errors to its caller.
type handlerFunc func(http.ResponseWriter, *http.Request) error

// rootHandler serves each caller what it may use: controller and fleet manager everything, the others what their names say.
func (s *server) rootHandler() http.Handler {
	root := http.NewServeMux()
	handle := func(pattern string, handler http.Handler, readers ...string) {
		root.Handle(pattern, requireCaller(s.limitRate(handler), append(readers, bindcar.FleetIdentity, bindcar.ControllerIdentity)...))
	}
	handle("GET "+bindcar.PathPrefix+"/ready", http.HandlerFunc(s.getReadiness), bindcar.APIServerIdentity, bindcar.MetricsIdentity)
	handle("GET /metrics", s.metrics.handler(), bindcar.MetricsIdentity)
	handle("GET "+component.VersionPath, http.HandlerFunc(component.ServeVersion), bindcar.APIServerIdentity, bindcar.MetricsIdentity)
	// Apart from the routes whose duration is measured: that of a stream means nothing.
	handle("GET "+bindcar.PathPrefix+"/notices", s.notifications, bindcar.APIServerIdentity)
	handle("/", s.metrics.instrument(s.apiRoutes()))
	return root
}

func (s *server) apiRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	route := func(pattern string, handle handlerFunc) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+bindcar.PathPrefix+path, func(w http.ResponseWriter, r *http.Request) {
			if err := handle(w, r); err != nil {
				httperror.WriteError(w, r, err)
			}
		})
	}
	route("GET /zones", s.listZones)
	route("POST /zones", s.createZone)
	route("GET /zones/{name}", s.getZone)
	route("PATCH /zones/{name}", s.patchZone)
	route("DELETE /zones/{name}", s.deleteZone)
	route("GET /zones/{name}/status", s.getZoneStatus)
	for _, command := range []string{"reload", "freeze", "thaw", "notify"} {
		route("POST /zones/{name}/"+command, s.runZoneCommand(command))
	}
	route("POST /zones/{name}/retransfer", s.retransferZone)
	route("POST /zones/{name}/checkds", s.checkDS)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		route(method+" /zones/{name}/records", refuseRecords)
	}
	route("GET /server/status", s.getServerStatus)
	route("GET /statistics", s.getStatistics)
	route("GET /server/keys", s.getServerKeys)
	return mux
}

func (s *server) limitRate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.limiter.Allow() {
			httperror.WriteError(w, r, httperror.New(http.StatusTooManyRequests, "too many requests", "slow down"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func respondSuccess(w http.ResponseWriter, code int, message, details string) {
	httperror.WriteJSON(w, code, bindcar.Answer{Success: true, Message: message, Details: details})
}

func (s *server) getServerStatus(w http.ResponseWriter, r *http.Request) error {
	text, err := s.control.Command(r.Context(), "status")
	if err != nil {
		return err
	}
	respondSuccess(w, http.StatusOK, "server status", text)
	return nil
}

func (s *server) getStatistics(w http.ResponseWriter, r *http.Request) error {
	stats, err := s.statistics.Read(r.Context())
	if err != nil {
		return err
	}
	httperror.WriteJSON(w, http.StatusOK, stats)
	return nil
}

func refuseRecords(http.ResponseWriter, *http.Request) error {
	return httperror.New(http.StatusNotImplemented, "not implemented", "records are changed by dynamic update (RFC 2136)")
}

// newHealthServer returns a server whose connections last for one request.
func newHealthServer(ctx context.Context, handler http.Handler) *http.Server {
	server := newHTTPServer(ctx, handler)
	server.ReadTimeout, server.WriteTimeout, server.MaxHeaderBytes = handshakeTimeout, handshakeTimeout, 4<<10
	server.SetKeepAlivesEnabled(false)
	return server
}

func newHTTPServer(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
}

func serveHTTP(ctx context.Context, listener net.Listener, server *http.Server) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		stopped <- server.Shutdown(grace)
	})
	err := server.Serve(listener)
	if !stop() && errors.Is(err, http.ErrServerClosed) {
		return <-stopped
	}
	return err
}

package notify

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
)

// writeTimeout is how long a reader may leave a full connection as it is.
const writeTimeout = 10 * time.Second

// Streamer serves GET /notices: a log as JSON lines, until the request's context or Shutdown ends.
type Streamer struct {
	Log *Log
	// HeartbeatInterval is how often a line is sent without news.
	HeartbeatInterval time.Duration
	// Shutdown ends when all streams have to.
	Shutdown context.Context
	// Open counts the open streams.
	Open metrics.GaugeMetric
}

// ServeHTTP implements http.Handler.
func (s *Streamer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The server's timeouts are those of a request; a stream has its own.
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		httperror.WriteError(w, r, err)
		return
	}
	s.Open.Inc()
	defer s.Open.Dec()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	lines := json.NewEncoder(w)
	s.stream(r, func(notices ...bindcar.Notification) error {
		if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		for _, notice := range notices {
			if err := lines.Encode(notice); err != nil {
				return err
			}
		}
		return control.Flush()
	})
}

// stream sends what is new, and a heartbeat when nothing is.
func (s *Streamer) stream(r *http.Request, send func(...bindcar.Notification) error) {
	position := s.Log.endPosition()
	if send(bindcar.Notification{Lost: true, At: time.Now()}) != nil {
		return
	}
	heartbeat := time.NewTicker(s.HeartbeatInterval)
	defer heartbeat.Stop()
	for {
		notices, next, added := s.Log.readAfter(position)
		if position = next; len(notices) > 0 && send(notices...) != nil {
			return
		}
		select {
		case <-added:
		case <-heartbeat.C:
			if send(bindcar.Notification{At: time.Now()}) != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-s.Shutdown.Done():
			return
		}
	}
}

package bindcar

import (
	"encoding/json"
	"net/http"
	"time"
)

const (
	// noticeWriteTimeout is how long a reader may leave a full connection as it is.
	noticeWriteTimeout = 10 * time.Second
	// unreviewed is how long a stream goes on while nobody can say whether its reader may still listen.
	unreviewed = 5 * time.Minute
)

// streamNotices sends notices as JSON lines until the reader goes, the server stops, or the reader's token is no longer
// good.
func (s *server) streamNotices(w http.ResponseWriter, r *http.Request) {
	// The server's timeouts are those of a request; a stream has its own.
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		respondError(w, r, err)
		return
	}
	s.metrics.streams.Inc()
	defer s.metrics.streams.Dec()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	lines := json.NewEncoder(w)
	s.follow(r, func(notices ...Notice) error {
		if err := control.SetWriteDeadline(time.Now().Add(noticeWriteTimeout)); err != nil {
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

// follow sends what is new, and a line now and then when nothing is.
func (s *server) follow(r *http.Request, send func(...Notice) error) {
	position := s.notices.end()
	if send(Notice{Lost: true, At: time.Now()}) != nil {
		return
	}
	beat := time.NewTicker(s.heartbeat)
	defer beat.Stop()
	review := time.NewTicker(s.reviewEvery)
	defer review.Stop()
	reviewed := time.Now()
	for {
		notices, next, news := s.notices.after(position)
		if position = next; len(notices) > 0 && send(notices...) != nil {
			return
		}
		select {
		case <-news:
		case <-beat.C:
			if send(Notice{At: time.Now()}) != nil {
				return
			}
		case <-review.C:
			if !s.mayGoOn(r, &reviewed) {
				return
			}
		case <-r.Context().Done():
			return
		case <-s.stopping.Done():
			return
		}
	}
}

// mayGoOn checks the reader's token again, so that an account that was withdrawn hears no more than one made later.
func (s *server) mayGoOn(r *http.Request, reviewed *time.Time) bool {
	err := s.auth.check(r, mayListen)
	if err == nil {
		*reviewed = time.Now()
		return true
	}
	code := failureOf(err).code
	refused := code == http.StatusUnauthorized || code == http.StatusForbidden
	return !refused && time.Since(*reviewed) < unreviewed
}

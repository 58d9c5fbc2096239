package bindcar

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-dns/lockstep/pkg/declared/status/reason"
)

// errStreamSilent ends a stream whose sidecar vanished without closing the connection.
var errStreamSilent = errors.New("the notification stream fell silent")

// ReadNotifications calls fn, on the caller's goroutine, for every notification of the server, beginning with one that has Lost set,
// and returns when the stream ends: it never returns nil, and the error wraps io.EOF when the sidecar closed the stream in
// good order. While fn is busy the sidecar keeps the latest notification of each zone; so it does where it sends more in a second than any
// server has. IsNotSupported reports a sidecar without notifications. FollowNotifications reopens the stream.
func (c *Client) ReadNotifications(ctx context.Context, server Address, fn func(Notification)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(c.maxSilence, func() { cancel(errStreamSilent) })
	defer watchdog.Stop()
	body, err := c.openStream(ctx, server)
	if err == nil {
		defer func() { _ = body.Close() }()
		err = c.readStream(ctx, body, watchdog, fn)
	}
	if cause := context.Cause(ctx); cause != nil {
		return unreachable(cause) // How the connection ends after that says nothing.
	}
	return err
}

func (c *Client) openStream(ctx context.Context, server Address) (io.ReadCloser, error) {
	response, err := c.doRequest(ctx, c.streams, http.MethodGet, server, "/notices", nil)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }()
	err = decodeResponse(server.Namespace, response, nil)
	switch {
	case hasCode(err, http.StatusNotFound):
		return nil, &Error{Code: http.StatusNotFound, Reason: reason.BindcarNotImplemented, Message: "has no notifications (404)"}
	case err == nil:
		err = newError(response.StatusCode, Failure{})
	}
	return nil, err
}

// Bounds of a stream, far above what a sidecar sends: the bytes of a line, and how many lines are read in a second, after a burst. named sends
// a thousand NOTIFYs in a second at most. What has Lost set makes its reader look at all zones, and counts as many lines: one in a second.
const (
	maxLineLength = 4 << 10
	maxLineRate   = 2000
	maxLineBurst  = 5 * maxLineRate
	lostLines     = maxLineRate
)

func (c *Client) readStream(ctx context.Context, body io.Reader, watchdog *time.Timer, fn func(Notification)) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLineLength)
	turns := rate.NewLimiter(maxLineRate, maxLineBurst)
	for lines.Scan() {
		watchdog.Stop()
		var notice Notification
		if err := json.Unmarshal(lines.Bytes(), &notice); err != nil {
			return unreachable(err)
		}
		cost := 1
		if notice.Lost {
			cost = lostLines
		}
		if err := turns.WaitN(ctx, cost); err != nil {
			return unreachable(err)
		}
		if !notice.isHeartbeat() {
			fn(notice)
		}
		watchdog.Reset(c.maxSilence)
	}
	if err := lines.Err(); err != nil {
		return unreachable(err)
	}
	return unreachable(io.EOF)
}

// maxReconnectDelay bounds the delay between two attempts to open a notification stream.
const maxReconnectDelay = 10 * time.Second

var reconnectBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: math.MaxInt, Cap: maxReconnectDelay}

// NotificationHandler receives what comes from the notification stream of one server. Its methods are called one at a
// time.
type NotificationHandler interface {
	// HandleNotification is called for every notification; the first of each stream has Lost set.
	HandleNotification(context.Context, Notification)
	// HandleStreamClosed is called when a stream has ended or could not be opened. The next attempt begins after it has
	// returned. IsNotSupported(err) reports a sidecar without notifications.
	HandleStreamClosed(ctx context.Context, err error)
}

// FollowNotifications keeps a notification stream open, with backoff, until ctx ends. open reads one stream to its end, as
// Client.ReadNotifications does. A stream that lasted resets the backoff.
func FollowNotifications(ctx context.Context, open func(context.Context, func(Notification)) error, handler NotificationHandler) {
	for backoff := reconnectBackoff; ; {
		opened := time.Now()
		err := open(ctx, func(n Notification) { handler.HandleNotification(ctx, n) })
		if ctx.Err() != nil {
			return
		}
		handler.HandleStreamClosed(ctx, err)
		if time.Since(opened) > maxReconnectDelay {
			backoff = reconnectBackoff
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff.Step()):
		}
	}
}

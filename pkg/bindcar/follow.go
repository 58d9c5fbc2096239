package bindcar

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// maxReconnectDelay bounds the delay between two attempts to open a notification stream.
const maxReconnectDelay = 10 * time.Second

var reconnectBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: math.MaxInt, Cap: maxReconnectDelay}

// NotificationHandler receives what comes from the notification stream of one server. Its methods are called one at a
// time.
type NotificationHandler interface {
	// HandleNotification is called for every notification; the first of each stream has Lost set.
	HandleNotification(context.Context, Notice)
	// HandleStreamClosed is called when a stream has ended or could not be opened. The next attempt begins after it has
	// returned. IsNotSupported(err) reports a sidecar without notifications.
	HandleStreamClosed(ctx context.Context, err error)
}

// FollowNotifications keeps a notification stream open, with backoff, until ctx ends. open reads one stream to its end, as
// Client.Notices does. A stream that lasted resets the backoff.
func FollowNotifications(ctx context.Context, open func(context.Context, func(Notice)) error, handler NotificationHandler) {
	for backoff := reconnectBackoff; ; {
		opened := time.Now()
		err := open(ctx, func(n Notice) { handler.HandleNotification(ctx, n) })
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

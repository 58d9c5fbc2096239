package refresh

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// NotificationOpener reads the notification stream of one server to its end, as bindcar.Client.ReadNotifications does.
type NotificationOpener func(ctx context.Context, server Peer, fn func(bindcar.Notification)) error

// Peer is a server with a notification stream: where it answers DNS, and the Bind9Instance that it is part of.
type Peer struct {
	Addr                netip.AddrPort
	Namespace, Instance string
}

func peerOf(s observe.Server) Peer { return Peer{s.Addr, s.Namespace, s.Instance} }

// notification says that a zone on a server may have changed; an empty zone stands for all.
type notification struct {
	server Peer
	zone   string
}

// notificationStreams hold one stream to each server of which a tracker follows a zone, for all trackers together and for as
// long as one does.
type notificationStreams struct {
	open NotificationOpener

	mu      sync.Mutex
	streams map[Peer]*notificationStream
}

type notificationStream struct {
	owner    *notificationStreams
	server   Peer
	cancel   context.CancelFunc
	trackers map[*tracker]struct{}
	// live is true from the first notification to the end of the stream: meanwhile every change is notified.
	live bool
	// asked is when a tracker last asked the server for all of them, silent whether it was silent.
	asked  time.Time
	silent bool
}

// followServer notifies a tracker of what changes on a server, from now on if the stream is live.
func (n *notificationStreams) followServer(t *tracker, server Peer) {
	if n.open == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.streams[server]
	if s == nil {
		// The stream outlives the tracker that opens it.
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.ctx))
		s = &notificationStream{owner: n, server: server, cancel: cancel, trackers: map[*tracker]struct{}{}}
		n.streams[server] = s
		open := func(ctx context.Context, fn func(bindcar.Notification)) error { return n.open(ctx, server, fn) }
		go bindcar.FollowNotifications(ctx, open, s)
	}
	s.trackers[t] = struct{}{}
}

// keepOnly ends a tracker's interest in all servers but some.
func (n *notificationStreams) keepOnly(t *tracker, needed map[Peer]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for server, s := range n.streams {
		if needed[server] {
			continue
		}
		if delete(s.trackers, t); len(s.trackers) == 0 {
			s.cancel()
			delete(n.streams, server)
		}
	}
}

// liveServers are the servers that notify of every change at present.
func (n *notificationStreams) liveServers() map[Peer]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	live := map[Peer]bool{}
	for server, s := range n.streams {
		if s.live {
			live[server] = true
		}
	}
	return live
}

// claim reports whether a tracker is to ask a server to see that it is alive: no other one has, for an interval.
func (n *notificationStreams) claim(server Peer, now time.Time, interval time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.streams[server]
	if s == nil || now.Sub(s.asked) >= interval*3/4 { // Timers are not exact.
		if s != nil {
			s.asked = now
		}
		return true
	}
	return false
}

// noteSilence has all trackers of a server but the one that has found it silent, or answering again, find out for their zones.
func (n *notificationStreams) noteSilence(found *tracker, server Peer, silent bool) {
	n.mu.Lock()
	s := n.streams[server]
	if s == nil || s.silent == silent {
		n.mu.Unlock()
		return
	}
	s.silent = silent
	trackers := slices.Collect(maps.Keys(s.trackers))
	n.mu.Unlock()
	for _, t := range trackers {
		if t != found {
			t.addNews(func(n *news) { n.notified[notification{server, ""}] = struct{}{} })
		}
	}
}

// HandleNotification implements bindcar.NotificationHandler.
func (s *notificationStream) HandleNotification(_ context.Context, n bindcar.Notification) {
	s.notifyTrackers(n.Zone, true)
}

// HandleStreamClosed implements bindcar.NotificationHandler. Until the next stream the server is polled, so that a closed
// stream is no error.
func (s *notificationStream) HandleStreamClosed(ctx context.Context, err error) {
	s.notifyTrackers("", false) // What ended the stream may be news in itself.
	klog.FromContext(ctx).V(2).Info("Notification stream closed; reconnecting", "server", s.server.Addr, "reason", err.Error())
}

func (s *notificationStream) notifyTrackers(zone string, live bool) {
	s.owner.mu.Lock()
	was := s.live
	s.live = live
	trackers := slices.Collect(maps.Keys(s.trackers))
	s.owner.mu.Unlock()
	if !was && !live {
		return // It has never begun: nothing has changed.
	}
	for _, t := range trackers {
		t.addNews(func(n *news) { n.notified[notification{s.server, zone}] = struct{}{} })
	}
}

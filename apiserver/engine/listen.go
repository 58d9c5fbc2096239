package engine

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/observe"
)

// Notices tells of new serials on a server as bindcar.Client does: fn is called for each notice, first for one that says
// Lost, until the stream ends with an error.
type Notices func(ctx context.Context, server Peer, fn func(bindcar.Notice)) error

// Peer is a server to listen to: where it answers DNS, and the Bind9Instance that it is part of.
type Peer struct {
	Addr                netip.AddrPort
	Namespace, Instance string
}

func peerOf(s observe.Server) Peer { return Peer{s.Addr, s.Namespace, s.Instance} }

// listeners hold one stream of notices to each server of which a tracker follows a zone, for all trackers together and for
// as long as one does.
type listeners struct {
	open Notices

	mu      sync.Mutex
	streams map[Peer]*stream
}

type stream struct {
	cancel   context.CancelFunc
	trackers map[*tracker]struct{}
	// live is true from the first notice to the end of the stream: no change goes by untold meanwhile.
	live bool
}

// join has a tracker told of what changes on a server, from now on if the stream is live.
func (l *listeners) join(t *tracker, server Peer) {
	if l.open == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[server]
	if s == nil {
		// The stream outlives the tracker that opens it.
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.ctx))
		s = &stream{cancel: cancel, trackers: map[*tracker]struct{}{}}
		l.streams[server] = s
		open := func(ctx context.Context, fn func(bindcar.Notice)) error { return l.open(ctx, server, fn) }
		go bindcar.FollowNotifications(ctx, open, follower{l, server, s})
	}
	s.trackers[t] = struct{}{}
}

// keep ends a tracker's interest in all servers but some.
func (l *listeners) keep(t *tracker, needed map[Peer]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for server, s := range l.streams {
		if needed[server] {
			continue
		}
		if delete(s.trackers, t); len(s.trackers) == 0 {
			s.cancel()
			delete(l.streams, server)
		}
	}
}

// live are the servers that tell of every change at present.
func (l *listeners) live() map[Peer]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	live := make(map[Peer]bool, len(l.streams))
	for server, s := range l.streams {
		live[server] = s.live
	}
	return live
}

// follower handles the notifications of one server.
type follower struct {
	*listeners
	server Peer
	stream *stream
}

// HandleNotification implements bindcar.NotificationHandler.
func (f follower) HandleNotification(_ context.Context, n bindcar.Notice) {
	f.tell(f.server, f.stream, n, true)
}

// HandleStreamClosed implements bindcar.NotificationHandler. Until the next stream the server is asked for each zone in
// turn: the end of one is no error worth more than a line for whoever looks into it.
func (f follower) HandleStreamClosed(ctx context.Context, err error) {
	// What ended the stream may be news in itself.
	f.tell(f.server, f.stream, bindcar.Notice{Lost: true}, false)
	klog.FromContext(ctx).V(2).Info("notification stream closed; reconnecting", "server", f.server.Addr, "reason", err.Error())
}

func (l *listeners) tell(server Peer, s *stream, n bindcar.Notice, live bool) {
	l.mu.Lock()
	was := s.live
	s.live = live
	trackers := slices.Collect(maps.Keys(s.trackers))
	l.mu.Unlock()
	if !was && !live {
		return // It has never begun: nothing has changed.
	}
	for _, t := range trackers {
		t.hear(notice{server, n.Zone})
	}
}

// notice says that a zone on a server may have changed; an empty zone stands for all.
type notice struct {
	server Peer
	zone   string
}

// hear makes the tracker ask a server again.
func (t *tracker) hear(n notice) {
	t.mu.Lock()
	t.noticed[n] = struct{}{}
	t.mu.Unlock()
	t.wake()
}

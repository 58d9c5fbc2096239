package engine

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

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

// A stream that ends is opened again, at first soon.
const (
	firstReopen = 200 * time.Millisecond
	lastReopen  = 10 * time.Second
)

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
		go l.follow(ctx, server, s)
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

// follow listens to a server until nobody wants to know any more. While it cannot, the server is asked for each zone in
// turn: a stream's end is no error worth more than a line for whoever looks into it.
func (l *listeners) follow(ctx context.Context, server Peer, s *stream) {
	for pause := firstReopen; ctx.Err() == nil; pause = min(2*pause, lastReopen) {
		opened := time.Now()
		err := l.open(ctx, server, func(n bindcar.Notice) { l.tell(server, s, n, true) })
		if ctx.Err() != nil {
			return
		}
		// What ended the stream may be news in itself.
		l.tell(server, s, bindcar.Notice{Lost: true}, false)
		klog.FromContext(ctx).V(2).Info("no notices for a moment", "server", server.Addr, "reason", err.Error())
		if time.Since(opened) > lastReopen {
			pause = firstReopen
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
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

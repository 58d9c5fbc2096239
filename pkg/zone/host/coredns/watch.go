package coredns

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

// The client's own watcher trusts etcd: an event without a key, or a watch that is canceled twice, ends the process, and events that
// are announced as fragments are collected without end. All that is needed here is that something has happened.

// newsInterval is how soon after another a change of a zone is told.
const newsInterval = 100 * time.Millisecond

// What a stream of watches may send: a message counts as leastMessage bytes at least.
const (
	timePerByte  = 20 * time.Nanosecond
	leastMessage = 1 << 10
)

// Watch implements host.Backend. A watch begins with what comes next, and says so when it has begun: nothing is missed by one that
// ended, for whatever reason, since the zone is read again after the next one has begun.
func (b *Backend) Watch(ctx context.Context, zone string, changed func()) {
	for wait := time.Second; ctx.Err() == nil && !b.isClosed(); wait = min(2*wait, 30*time.Second) {
		if b.follow(ctx, zone, changed) {
			wait = time.Second
		}
		select {
		case <-b.ended.Done():
			return
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// follow calls changed until the watch ends. It reports whether it had begun.
func (b *Backend) follow(ctx context.Context, zone string, changed func()) (began bool) {
	path := b.layoutOf(zone).pathOf(zone)
	s := b.joinWatches() //nolint:contextcheck // of the stream, which others use as well
	defer b.leaveWatches(s)
	w := s.add(path+"/", path+"0")
	defer s.remove(w)
	for {
		select {
		case <-w.news:
			began = true
			changed()
			pause(ctx, newsInterval)
		case <-w.ended:
			return began
		case <-s.done:
			return began
		case <-ctx.Done():
			return began
		}
	}
}

// watches are the watches of all zones, on one stream.
type watches struct {
	users int // Backend.mu guards it.
	end   context.CancelFunc
	done  chan struct{} // closed when the stream has ended

	mu sync.Mutex
	// requests are still to be sent; wake says that there are some.
	requests []*etcdserverpb.WatchRequest
	wake     chan struct{}
	// asked are the watches that etcd has not answered yet, in the order in which it will.
	asked []*watch
	begun map[int64]*watch
}

// watch is that of one zone.
type watch struct {
	news  chan struct{} // has one when something has happened, or the watch has begun
	ended chan struct{}
	id    int64
	gone  bool // nobody waits for it any more
}

// joinWatches opens the stream of watches if there is none.
func (b *Backend) joinWatches() *watches {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watches == nil {
		ctx, end := context.WithCancel(b.ended)
		s := &watches{end: end, done: make(chan struct{}), wake: make(chan struct{}, 1), begun: map[int64]*watch{}}
		b.watches = s
		go func() {
			_ = s.run(ctx, b) // Each zone begins a new watch, with a pause.
			end()
			b.mu.Lock()
			if b.watches == s {
				b.watches = nil
			}
			b.mu.Unlock()
			close(s.done)
		}()
	}
	b.watches.users++
	return b.watches
}

// leaveWatches ends the stream if nobody uses it any more.
func (b *Backend) leaveWatches(s *watches) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	s.end()
	if b.watches == s {
		b.watches = nil
	}
}

// run opens the stream and reads it until it ends.
func (s *watches) run(ctx context.Context, b *Backend) error {
	client, err := b.connect(ctx)
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, client); err != nil {
		return err
	}
	stream, err := client.ActiveConnection().NewStream(clientv3.WithRequireLeader(ctx), &etcdserverpb.Watch_ServiceDesc.Streams[0],
		etcdserverpb.Watch_Watch_FullMethodName, grpc.MaxCallRecvMsgSize(maxEncoded))
	if err != nil {
		return err
	}
	go s.send(stream)
	for {
		var n notice
		if err := stream.RecvMsg(&n); err != nil {
			return err
		}
		s.take(n)
		pause(ctx, time.Duration(max(n.size, leastMessage))*timePerByte) // Flow control has etcd wait.
	}
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// send sends requests until the stream ends.
func (s *watches) send(stream grpc.ClientStream) {
	for {
		s.mu.Lock()
		requests := s.requests
		s.requests = nil
		s.mu.Unlock()
		for _, r := range requests {
			if stream.SendMsg(r) != nil {
				return
			}
		}
		select {
		case <-s.wake:
		case <-stream.Context().Done():
			return
		}
	}
}

// request has a request sent. s.mu is held.
func (s *watches) request(r *etcdserverpb.WatchRequest) {
	s.requests = append(s.requests, r)
	signal(s.wake)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add asks for a watch of the keys from one to another.
func (s *watches) add(from, to string) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &watch{news: make(chan struct{}, 1), ended: make(chan struct{}), id: -1}
	s.asked = append(s.asked, w)
	s.request(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
		CreateRequest: &etcdserverpb.WatchCreateRequest{Key: []byte(from), RangeEnd: []byte(to)},
	}})
	return w
}

// remove ends a watch.
func (s *watches) remove(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.gone = true
	if s.begun[w.id] == w {
		s.cancel(w.id)
	}
}

// cancel has etcd end a watch. s.mu is held.
func (s *watches) cancel(id int64) {
	delete(s.begun, id)
	s.request(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CancelRequest{
		CancelRequest: &etcdserverpb.WatchCancelRequest{WatchId: id},
	}})
}

// take handles what etcd says.
func (s *watches) take(n notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.begun[n.id]
	if n.created {
		if len(s.asked) == 0 {
			return
		}
		w, s.asked = s.asked[0], s.asked[1:]
	}
	switch {
	case w == nil:
	case n.canceled:
		delete(s.begun, n.id)
		close(w.ended) // w is in neither list any more.
	case n.created && w.gone:
		s.cancel(n.id)
	default:
		if n.created {
			w.id, s.begun[n.id] = n.id, w
		}
		signal(w.news)
	}
}

// notice is all that is decoded of a response to a watch: which one it is of, and whether that begins or ends.
type notice struct {
	id                int64
	created, canceled bool
	size              int // of the response
}

var errNoNotice = errors.New("etcd sends something else than responses to a watch")

// decode reads an etcdserverpb.WatchResponse.
func (n *notice) decode(raw []byte) error {
	*n = notice{size: len(raw)}
	for len(raw) > 0 {
		number, kind, size := protowire.ConsumeField(raw)
		if size < 0 {
			return errNoNotice
		}
		if kind == protowire.VarintType {
			_, _, tag := protowire.ConsumeTag(raw)
			value, _ := protowire.ConsumeVarint(raw[tag:])
			switch int(number) {
			case 2:
				n.id = int64(value) //nolint:gosec // as protobuf does
			case 3:
				n.created = value != 0
			case 4:
				n.canceled = value != 0
			}
		}
		raw = raw[size:]
	}
	return nil
}

package coredns

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
)

// MaxConnections is how many connections a Backend has at most: one, and what is tried or probed beside it.
const MaxConnections = 4

// reconnect is how soon a connection that was lost is tried again: gRPC's own two minutes would be the end of many a pass.
var reconnect = grpc.ConnectParams{
	Backoff: backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}, MinConnectTimeout: 3 * time.Second,
}

// callConfig has one endpoint connected instead of all of them, as the client would do, and bounds answers that are always small.
const callConfig = `{
 "loadBalancingConfig": [{"pick_first": {}}],
 "methodConfig": [{"name": [{"service": "etcdserverpb.KV", "method": "Txn"}, {"service": "etcdserverpb.Auth"}], "maxResponseMessageBytes": 65536}]
}`

// idleTimeout is when a connection is closed that nobody uses. Each provider is looked at every five seconds.
const idleTimeout = 30 * time.Second

// errClosed is what was under way when the connection was closed. Whoever asks for the provider's backend again gets another one.
var errClosed = fmt.Errorf("the connection was closed: %w", context.Canceled)

// link is a client that is being made, which takes as long as etcd takes to sign it in, or that is there.
type link struct {
	ready  chan struct{} // closed when the other fields are set
	client *clientv3.Client
	err    error
	end    context.CancelFunc
}

// connect signs in if there are credentials, once for all who wait; each of them waits for as long as its context lasts, and holds no
// lock meanwhile.
func (b *Backend) connect(ctx context.Context) (*clientv3.Client, error) {
	l := b.currentLink() //nolint:contextcheck // of the connection, which outlives the call
	if l == nil {
		return nil, errClosed
	}
	select {
	case <-l.ready:
		return l.client, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// currentLink begins a link if there is none. It is nil after Close.
func (b *Backend) currentLink() *link {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended.Err() != nil {
		return nil
	}
	if b.link == nil {
		ctx, end := context.WithCancel(b.ended)
		b.link = &link{ready: make(chan struct{}), end: end}
		go b.open(ctx, b.link, b.links)
		b.links++
	}
	return b.link
}

// open makes the client of a link, and closes it when the context ends. The n-th one begins with another endpoint than the one before.
func (b *Backend) open(ctx context.Context, l *link, n int) {
	endpoints := b.options.Endpoints
	if first := n % max(len(endpoints), 1); first > 0 {
		endpoints = slices.Concat(endpoints[first:], endpoints[:first])
	}
	l.client, l.err = clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: endpoints, TLS: b.options.TLS, Username: b.options.Username, Password: b.options.Password,
		DialTimeout: b.options.Timeout, DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: b.options.Timeout,
		MaxCallRecvMsgSize: maxEncoded, MaxUnaryRetries: 4, BackoffWaitBetween: 50 * time.Millisecond, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(b.dial), grpc.WithConnectParams(reconnect), grpc.WithIdleTimeout(idleTimeout),
			grpc.WithDisableServiceConfig(), grpc.WithDefaultServiceConfig(callConfig), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newCodec())),
			grpc.WithMaxHeaderListSize(maxSmall), grpc.WithInitialWindowSize(1 << 20), grpc.WithInitialConnWindowSize(1 << 20),
		},
	})
	close(l.ready)
	if l.err != nil {
		b.discard(l)
		return
	}
	<-ctx.Done()
	_ = l.client.Close()
}

// discard ends a link. The next use begins another one.
func (b *Backend) discard(l *link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.end()
	if b.link == l {
		b.link = nil
	}
}

// discardClient ends the link of a client: the member of etcd that it is connected to does not answer, and another one may.
func (b *Backend) discardClient(client *clientv3.Client) {
	b.mu.Lock()
	l := b.link
	b.mu.Unlock()
	if l == nil || len(b.options.Endpoints) < 2 {
		return
	}
	select {
	case <-l.ready:
		if l.client == client {
			b.discard(l)
		}
	default:
	}
}

// dial connects for the account of the provider.
func (b *Backend) dial(ctx context.Context, address string) (net.Conn, error) {
	return b.options.Account.Dial(ctx, "tcp", address)
}

// awaitReady waits for the connection of a client.
func awaitReady(ctx context.Context, client *clientv3.Client) error {
	conn := client.ActiveConnection()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if conn.Connect(); !conn.WaitForStateChange(ctx, state) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Close implements host.Backend. It does not wait.
func (b *Backend) Close() error {
	b.end()
	return nil
}

func (b *Backend) isClosed() bool { return b.ended.Err() != nil }

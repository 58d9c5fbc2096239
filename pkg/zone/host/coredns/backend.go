package coredns

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// defaultPrefix is the plugin's own.
const defaultPrefix = "/skydns"

// pageSize is how many keys a read asks for at once.
const pageSize = 2000

// reconnect is how soon a connection that was lost is tried again: gRPC's own two minutes would be the end of many a pass.
var reconnect = grpc.ConnectParams{
	Backoff: backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}, MinConnectTimeout: 3 * time.Second,
}

// maxTransactions is how many transactions of one Apply are under way at a time.
const maxTransactions = 16

// Options of a Backend.
type Options struct {
	// Endpoints are etcd's URLs.
	Endpoints []string
	// Prefix is the path that CoreDNS has for its plugin; /skydns if empty.
	Prefix string
	// Owner is whose our values are: of other owners' values none is changed.
	Owner string
	// TLS is how etcd is reached by https.
	TLS *tls.Config
	// Username and Password are empty if etcd asks for none.
	Username, Password string
	// Permit reports whether an address may be connected to; nil permits all.
	Permit func(netip.Addr) bool
	// Timeout of one request; 10 seconds if zero.
	Timeout time.Duration
	// MaxBytes is how much one zone may have in etcd; 64 MiB if zero.
	MaxBytes int
}

// Backend is zones in etcd. It implements host.Backend.
type Backend struct {
	options Options
	mu      sync.Mutex
	client  *clientv3.Client
	closed  bool
	// expected has an *expectation by name for each zone that was changed and has not been read since.
	expected sync.Map
}

// errTooLarge is a zone that takes more memory than it may.
var errTooLarge = errors.New("there is more below the zone's key than may be read")

var errClosed = errors.New("the connection was closed")

var _ host.Backend = (*Backend)(nil)

// New returns a Backend. It connects when it is used.
func New(o Options) *Backend {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	o.Prefix = strings.TrimSuffix(path.Join("/", o.Prefix), "/")
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 20
	}
	return &Backend{options: o}
}

// connect returns the client. It signs in if there are credentials.
func (b *Backend) connect() (*clientv3.Client, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, errClosed
	case b.client != nil:
		return b.client, nil
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: b.options.Endpoints, TLS: b.options.TLS, Username: b.options.Username, Password: b.options.Password,
		DialTimeout: b.options.Timeout, DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: b.options.Timeout,
		MaxCallRecvMsgSize: b.options.MaxBytes, DialOptions: []grpc.DialOption{grpc.WithContextDialer(b.dial), grpc.WithConnectParams(reconnect)},
		MaxUnaryRetries: 4, BackoffWaitBetween: 50 * time.Millisecond, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, err
	}
	b.client = client
	return client, nil
}

// dial connects to an address that is permitted, whatever a host name leads to.
func (b *Backend) dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err == nil && b.options.Permit != nil && !b.options.Permit(at.Addr().Unmap()) {
			return fmt.Errorf("the address %s may not be used: loopback, link-local, multicast and unspecified ones may not", at.Addr())
		}
		return err
	}}
	return dialer.DialContext(ctx, "tcp", address)
}

// Close implements host.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed = true; b.client == nil {
		return nil
	}
	err := b.client.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (b *Backend) layoutOf(zone string) layout {
	return layout{prefix: b.options.Prefix, owner: b.options.Owner, zone: zone}
}

// version is what an observation was made from.
type version struct {
	snapshot *snapshot
	ours     names
}

// Check implements host.Backend.
func (b *Backend) Check(ctx context.Context, zone string) error {
	client, err := b.connect()
	if err == nil {
		path := b.layoutOf(zone).pathOf(zone)
		_, err = b.get(ctx, client, path+"/", clientv3.WithRange(path+"0"), clientv3.WithLimit(1))
	}
	return b.explain(ctx, err)
}

// Observe implements host.Backend. What it reads is of one revision.
func (b *Backend) Observe(ctx context.Context, zone string) (host.Observation, error) {
	client, err := b.connect()
	if err != nil {
		return host.Observation{}, fmt.Errorf("connecting to etcd: %w", b.explain(ctx, err))
	}
	s, err := b.read(ctx, client, zone, pageSize)
	if errors.Is(err, rpctypes.ErrCompacted) { // The revision of the first page is gone.
		s, err = b.read(ctx, client, zone, 0)
	}
	if err != nil {
		return host.Observation{}, fmt.Errorf("reading zone %s from etcd: %w", zone, b.explain(ctx, err))
	}
	found, _ := b.expected.LoadAndDelete(zone)
	expected, _ := found.(*expectation)
	c := expected.contentOf(s)
	return host.Observation{
		Content: c, Version: version{s, c.ours},
		Ours: func(key rrset.Key) bool { _, ours := c.ours.get(key.Name, key.Type); return ours },
	}, nil
}

// read decodes a page while the next one is on its way.
func (b *Backend) read(ctx context.Context, client *clientv3.Client, zone string, limit int64) (*snapshot, error) {
	s := &snapshot{layout: b.layoutOf(zone)}
	from, end := s.pathOf(zone)+"/", s.pathOf(zone)+"0"
	var decoding sync.WaitGroup
	defer decoding.Wait()
	var pages [][]entry
	for bytes := 0; ; {
		page, err := b.get(ctx, client, from, clientv3.WithRange(end), clientv3.WithLimit(limit), clientv3.WithRev(s.revision))
		if err != nil {
			return nil, err
		}
		s.revision = max(s.revision, page.Header.GetRevision())
		for _, kv := range page.Kvs {
			if bytes += len(kv.Key) + len(kv.Value); bytes > b.options.MaxBytes {
				return nil, errTooLarge
			}
		}
		entries := make([]entry, len(page.Kvs))
		pages = append(pages, entries)
		decoding.Go(func() {
			for i, kv := range page.Kvs {
				entries[i] = newEntry(string(kv.Key), kv.Value, kv.ModRevision)
			}
		})
		if !page.More || len(page.Kvs) == 0 {
			decoding.Wait()
			s.entries = slices.Concat(pages...)
			return s, nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

func (b *Backend) get(ctx context.Context, client *clientv3.Client, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), b.options.Timeout)
	defer cancel()
	return client.Get(ctx, key, options...)
}

// Apply implements host.Backend. A transaction whose condition fails, or whose reply is lost, ends it. A name of more than 128
// values changes in several transactions: what is written comes before what is deleted.
func (b *Backend) Apply(ctx context.Context, zone string, changes plan.Changes, seen host.Observation) (host.Result, error) {
	from, ok := seen.Version.(version)
	if !ok || from.snapshot.layout != b.layoutOf(zone) {
		return host.Result{}, fmt.Errorf("zone %s: the observation is not of this zone", zone)
	}
	p := from.snapshot.plan(changes, from.ours)
	result := host.Result{Refused: p.refused}
	client, err := b.connect()
	if err != nil {
		return result, fmt.Errorf("connecting to etcd: %w", b.explain(ctx, err))
	}
	expected := expect(from.snapshot, p.want)
	group, ctx := errgroup.WithContext(ctx)
	if group.SetLimit(maxTransactions); p.ordered {
		group.SetLimit(1)
	}
	for _, some := range p.transactions {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return b.commit(ctx, client, some)
		})
	}
	if err := group.Wait(); err != nil {
		return result, fmt.Errorf("writing zone %s to etcd: %w", zone, err)
	}
	b.expected.Store(zone, expected)
	return result, nil
}

func (b *Backend) commit(ctx context.Context, client *clientv3.Client, some transaction) error {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), b.options.Timeout)
	defer cancel()
	reply, err := client.Txn(ctx).If(some.compares()...).Then(some.operations()...).Commit()
	var failure *host.Error
	switch {
	case err == nil && !reply.Succeeded:
		return host.ErrConflict
	case err == nil:
		return nil
	case errors.As(failureOf(err), &failure) && !failure.Temporary:
		return failure
	}
	return fmt.Errorf("%w: %w", host.ErrUnknown, failureOf(err))
}

// Unsupported implements host.Backend.
func (b *Backend) Unsupported(zone string, want plan.Content) map[rrset.Key]string {
	return Unsupported(zone, want)
}

// Watch implements host.Backend. A watch begins with what comes next, and says so when it has begun: nothing is missed by one that
// ended, for whatever reason, since the zone is read again after the next one has begun.
func (b *Backend) Watch(ctx context.Context, zone string, changed func()) {
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, 30*time.Second) {
		client, err := b.connect()
		if errors.Is(err, errClosed) {
			return
		}
		if err == nil && b.follow(ctx, client, zone, changed) {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// follow calls changed until the watch ends. It reports whether it had begun.
func (b *Backend) follow(ctx context.Context, client *clientv3.Client, zone string, changed func()) (began bool) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	path := b.layoutOf(zone).pathOf(zone)
	for reply := range client.Watch(ctx, path+"/", clientv3.WithRange(path+"0"), clientv3.WithCreatedNotify()) {
		if reply.Err() != nil {
			return began
		}
		began = true
		changed()
	}
	return began
}

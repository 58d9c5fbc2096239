package coredns

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// defaultPrefix is the plugin's own.
const defaultPrefix = "/skydns"

// readTimeout is for reading a zone, however many pages it has.
const readTimeout = time.Minute

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
	// Account has the provider's connections, requests and memory; nil has no limits.
	Account *outbound.Account
	// Timeout of one request; 10 seconds if zero.
	Timeout time.Duration
	// MaxBytes is how much memory one zone may take; 128 MiB if zero.
	MaxBytes int64
}

// Backend is zones in etcd. It implements host.Backend.
type Backend struct {
	options Options
	// ended is over after Close, which calls end.
	ended context.Context //nolint:containedctx // that of the connection, not of a call
	end   context.CancelFunc

	// mu guards what follows. Nobody waits for etcd while holding it.
	mu      sync.Mutex
	link    *link
	links   int // how many there were
	watches *watches

	// expected has an *expectation by name for each zone that was changed and has not been read since.
	expected sync.Map
}

var _ host.Backend = (*Backend)(nil)

// New returns a Backend that connects when it is used.
func New(o Options) *Backend {
	o.Prefix = strings.TrimSuffix(path.Join("/", cmp.Or(o.Prefix, defaultPrefix)), "/")
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 128 << 20
	}
	b := &Backend{options: o}
	b.ended, b.end = context.WithCancel(context.Background())
	return b
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
	client, err := b.connect(ctx)
	if err == nil {
		path := b.layoutOf(zone).pathOf(zone)
		_, err = b.get(ctx, client, path+"/", clientv3.WithRange(path+"0"), clientv3.WithLimit(1))
	}
	return b.explain(ctx, client, err)
}

// Observe implements host.Backend. What it reads is of one revision.
func (b *Backend) Observe(ctx context.Context, zone string) (host.Observation, error) {
	found, _ := b.expected.LoadAndDelete(zone)
	ctx, cancel := context.WithTimeoutCause(ctx, readTimeout, errTooSlow)
	defer cancel()
	client, err := b.connect(ctx)
	if err != nil {
		return host.Observation{}, fmt.Errorf("connecting to etcd: %w", b.explain(ctx, client, err))
	}
	memory := b.options.Account.Reserve(b.options.MaxBytes)
	s, err := b.readZone(ctx, client, zone, memory)
	var c *content
	if err == nil {
		expected, _ := found.(*expectation)
		c, err = expected.contentOf(s)
	}
	if err != nil {
		memory.Release()
		if errors.Is(context.Cause(ctx), errTooSlow) { // The client says that some request took too long.
			err = errTooSlow
		}
		return host.Observation{}, fmt.Errorf("reading zone %s from etcd: %w", zone, b.explain(ctx, client, err))
	}
	return host.Observation{
		Content: c, Version: version{s, c.ours},
		Ours:    func(key rrset.Key) bool { _, ours := c.ours.get(key.Name, key.Type); return ours },
		Release: memory.Release,
	}, nil
}

func (b *Backend) get(ctx context.Context, client *clientv3.Client, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), b.options.Timeout)
	defer cancel()
	if err := awaitReady(ctx, client); err != nil { // What etcd does not answer takes none of the requests of others.
		return nil, err
	}
	done, err := b.options.Account.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
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
	client, err := b.connect(ctx)
	if err != nil {
		return result, fmt.Errorf("connecting to etcd: %w", b.explain(ctx, client, err))
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

package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/lockstep-dns/lockstep/pkg/share"
)

// Limits bound what the objects of one namespace can use. Zero values mean the defaults.
type Limits struct {
	// Connections are those of one namespace that are open at the same time. Default: 128.
	Connections int
	// SidecarConnections are those with the sidecars of one namespace's instances that are open at the same time. Default: 1024.
	SidecarConnections int
	// Requests are those of one namespace under way at the same time whose answers are decoded in one piece; one object gets half
	// of them, and all namespaces together four times as many. Default: 8.
	Requests int
	// Bytes are the memory of all answers that are in use. One namespace gets half of it. Default: 256 MiB.
	Bytes int64
	// Networks are where nothing may be that objects of tenants name. Servers of instances may: these are in the networks of pods.
	Networks Networks
}

// Gate counts what tenants use. It is safe for concurrent use.
type Gate struct {
	// permit reports whether an address may be connected to.
	permit func(netip.Addr) bool
	limits Limits
	// All are counted by namespace, and by object.
	connections, sidecars, requests queues
	// bytes are the memory of answers, by namespace.
	bytes *share.Pool
}

// NewGate fills in the defaults of l. A nil permit means Permits.
func NewGate(permit func(netip.Addr) bool, l Limits) *Gate {
	if permit == nil {
		permit = Permits
	}
	if l.Connections <= 0 {
		l.Connections = 128
	}
	if l.SidecarConnections <= 0 {
		l.SidecarConnections = 1024
	}
	if l.Requests <= 0 {
		l.Requests = 8
	}
	if l.Bytes <= 0 {
		l.Bytes = 256 << 20
	}
	return &Gate{permit: permit, limits: l, bytes: share.NewPool(l.Bytes, l.Bytes/2)}
}

// Permits reports whether an object of a tenant may name an address. A nil Gate permits what Permits permits.
func (g *Gate) Permits(a netip.Addr) bool {
	if g == nil {
		return Permits(a)
	}
	return g.permit(a.Unmap()) && !g.limits.Networks.contain(a)
}

// Forbidden describes the addresses that Permits refuses, for messages.
func (g *Gate) Forbidden() string {
	if g == nil || len(g.limits.Networks) == 0 {
		return Forbidden
	}
	return forbiddenWithNetworks
}

// Account makes the account of an object that names servers, which has at most so many connections at the same time; name may stand for
// all objects of the namespace. A nil Gate has nil Accounts.
func (g *Gate) Account(namespace, name string, connections int) *Account {
	if g == nil {
		return nil
	}
	return &Account{
		gate: g, namespace: namespace, name: name,
		open: &g.connections, connections: connections, most: g.limits.Connections,
	}
}

// maxSidecarConnections is how many connections with one sidecar there are at the same time: more than zones are worked on at a server.
const maxSidecarConnections = 128

// Sidecar makes the account of a sidecar of a namespace's instances. What is connected to the namespace's DNSProviders is counted apart: a
// namespace of servers has a notification stream with each of its sidecars.
func (g *Gate) Sidecar(namespace string, at netip.Addr) *Account {
	if g == nil {
		return nil
	}
	return &Account{
		gate: g, namespace: namespace, name: "the sidecar at " + at.String(), ours: true,
		open: &g.sidecars, connections: maxSidecarConnections, most: g.limits.SidecarConnections,
	}
}

// Instances makes the account of the DNS servers of a namespace's instances. Their addresses are checked. Their connections are not counted:
// whoever holds a turn at a server that several namespaces use must not wait for a connection, and these turns bound them.
func (g *Gate) Instances(namespace string) *Account {
	if g == nil {
		return nil
	}
	return &Account{gate: g, namespace: namespace, name: "instances", ours: true}
}

// Account is what one object of a tenant uses. A nil Account has no limits: it is for objects of administrators, and tests.
type Account struct {
	gate            *Gate
	namespace, name string
	// ours are servers of instances, which may be in networks where nothing may be that tenants name.
	ours bool
	// open counts connections, unless it is nil. connections are those that the object may have, most those of its namespace.
	open              *queues
	connections, most int
}

// permits reports whether the object may be at an address.
func (a *Account) permits(at netip.Addr) bool {
	if a.ours {
		return a.gate.permit(at.Unmap())
	}
	return a.gate.Permits(at)
}

// Begin waits until the object may begin another request. The caller calls done when the answer is decoded.
func (a *Account) Begin(ctx context.Context) (done func(), err error) {
	if a == nil {
		return func() {}, nil
	}
	q, limit := &a.gate.requests, a.gate.limits.Requests
	leave, err := a.enter(ctx, q, "requests under way", max(limit/2, 1), limit)
	if err != nil {
		return nil, err
	}
	if err := q.enter(ctx, everybody, 4*limit); err != nil {
		leave()
		return nil, fmt.Errorf("all namespaces together have %d requests under way: %w: %w", 4*limit, ErrLimit, err)
	}
	return sync.OnceFunc(func() {
		q.leave(everybody)
		leave()
	}), nil
}

// everybody is the key of all namespaces together: no namespace has such a name.
const everybody = ""

// The context ended while there was as much as there may be: ErrOwnLimit of the object itself, ErrLimit of others as well.
var (
	ErrOwnLimit = errors.New("that is its limit, and none has ended")
	ErrLimit    = errors.New("that is the limit, and none has ended")
)

// IsLimit recognizes the error of a limit of ours, whatever ended the wait.
func IsLimit(err error) bool { return errors.Is(err, ErrOwnLimit) || errors.Is(err, ErrLimit) }

// object is the key of the account among queues.
func (a *Account) object() string { return a.namespace + "/" + a.name }

// enter waits for a place of the object and one of the namespace, in this order: an object that uses all of its own keeps none of
// the namespace's from others while it waits.
func (a *Account) enter(ctx context.Context, q *queues, what string, own, all int) (leave func(), err error) {
	object := a.object()
	if err := q.enter(ctx, object, own); err != nil {
		return nil, fmt.Errorf("%s of namespace %s has %d %s: %w: %w", a.name, a.namespace, own, what, ErrOwnLimit, err)
	}
	if err := q.enter(ctx, a.namespace, all); err != nil {
		q.leave(object)
		return nil, fmt.Errorf("namespace %s has %d %s: %w: %w", a.namespace, all, what, ErrLimit, err)
	}
	return sync.OnceFunc(func() {
		q.leave(a.namespace)
		q.leave(object)
	}), nil
}

// Reserve begins a reservation without memory that grows to at most so many bytes.
func (a *Account) Reserve(most int64) *Reservation { return &Reservation{account: a, most: most} }

// Reservation is the memory of one answer. It is safe for concurrent use. A nil Reservation has no limit.
type Reservation struct {
	account *Account
	most    int64

	mu    sync.Mutex
	bytes int64
}

// TooLargeError is an answer that takes more memory than is left for it.
type TooLargeError struct {
	// What has the limit, for example "one zone" or "namespace team-a".
	What  string
	Limit int64
	// Shared is true if others use up the limit as well, so that it may pass.
	Shared bool
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the data takes more memory than the %d MiB that %s may have", e.Limit>>20, e.What)
}

// Add takes memory. It does not wait. The error is a *TooLargeError.
func (r *Reservation) Add(bytes int64) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+bytes > r.most {
		return &TooLargeError{What: "one zone", Limit: r.most}
	}
	if r.account != nil {
		if err := r.account.gate.take(r.account.namespace, bytes); err != nil {
			return err
		}
	}
	r.bytes += bytes
	return nil
}

// Release gives all memory back.
func (r *Reservation) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.account != nil {
		r.account.gate.bytes.Add(r.account.namespace, -r.bytes)
	}
	r.bytes = 0
}

func (g *Gate) take(namespace string, bytes int64) error {
	switch err := g.bytes.Take(namespace, bytes); {
	case err == nil:
		return nil
	case errors.Is(err, share.ErrShare):
		return &TooLargeError{What: "namespace " + namespace, Limit: g.bytes.Share(), Shared: true}
	default:
		return &TooLargeError{What: "all namespaces together", Limit: g.limits.Bytes, Shared: true}
	}
}

// queues are places by key, each with a queue of those who wait for one.
type queues struct {
	mu    sync.Mutex
	byKey map[string]*queue
}

type queue struct {
	places chan struct{}
	users  int // those who have a place or wait for one
}

// enter waits for one of the places of a key, of which there are so many.
func (q *queues) enter(ctx context.Context, key string, places int) error {
	q.mu.Lock()
	of := q.byKey[key]
	if of == nil {
		if q.byKey == nil {
			q.byKey = map[string]*queue{}
		}
		of = &queue{places: make(chan struct{}, places)}
		q.byKey[key] = of
	}
	of.users++
	q.mu.Unlock()
	select {
	case of.places <- struct{}{}:
		return nil
	default:
	}
	select {
	case of.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		q.drop(key, of)
		return context.Cause(ctx)
	}
}

func (q *queues) leave(key string) {
	q.mu.Lock()
	of := q.byKey[key]
	q.mu.Unlock()
	<-of.places
	q.drop(key, of)
}

// isCrowded reports whether more than half of the places of a key are taken or waited for.
func (q *queues) isCrowded(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.byKey[key]
	return of != nil && 2*of.users > cap(of.places)
}

func (q *queues) drop(key string, of *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if of.users--; of.users == 0 {
		delete(q.byKey, key)
	}
}

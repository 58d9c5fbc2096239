package dnsprovider

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/kinds"
)

// secretsAge is how long a provider's Secrets are not read again.
const secretsAge = 30 * time.Second

// Backends has a connection to each provider that is no DNS server, and watches zones there. It is safe for concurrent
// use. Nobody reads a Secret, connects or waits for a provider while holding its lock: every pass takes it.
type Backends struct {
	// Reader reads Secrets, one at a time and by name, and the endpoints of a Service.
	Reader client.Reader
	// Gate counts what the providers of each namespace use; nil counts nothing.
	Gate *outbound.Gate
	// Kinds are the kinds of backends; those of package kinds if nil.
	Kinds []host.BackendKind

	mu   sync.Mutex
	open map[client.ObjectKey]*connection
}

// connection is one, and what it was made from.
type connection struct {
	backend    host.Backend
	uid        types.UID
	generation int64
	// secrets are the versions of the Secrets, which were read, or are being read, at the time read.
	secrets string
	read    time.Time
	// watched are the zones that are watched, each with what ends that.
	watched map[client.ObjectKey]context.CancelFunc
}

// Takes reports whether a provider has a backend.
func (b *Backends) Takes(p *v1beta1.DNSProvider) bool { return b.kindOf(p) != nil }

func (b *Backends) kindOf(p *v1beta1.DNSProvider) host.BackendKind {
	all := b.Kinds
	if all == nil {
		all = kinds.Backends
	}
	for _, kind := range all {
		if kind.Takes(p) {
			return kind
		}
	}
	return nil
}

// Of is the backend of a provider, for which Takes must hold. When the provider or its Secrets have changed, that is another one. It does
// not connect.
func (b *Backends) Of(ctx context.Context, p *v1beta1.DNSProvider) (host.Backend, error) {
	began := time.Now()
	if known := b.current(p, began); known != nil {
		return known, nil
	}
	open, secrets, err := b.kindOf(p).Read(ctx, p, host.ProviderAccess{Secret: b.readSecret, Gate: b.Gate})
	b.mu.Lock()
	defer b.mu.Unlock()
	key := client.ObjectKeyFromObject(p)
	known := b.open[key]
	switch {
	case err != nil:
		if known != nil {
			known.read = time.Time{} // The next pass reads them.
		}
		return nil, err
	case known != nil && known.uid == p.UID && (known.generation > p.Generation || known.generation == p.Generation && (known.secrets == secrets || known.read.After(began))):
		return known.backend, nil // Somebody else was faster.
	}
	b.drop(key)
	if b.open == nil {
		b.open = map[client.ObjectKey]*connection{}
	}
	b.open[key] = &connection{
		backend: open(), uid: p.UID, generation: p.Generation, secrets: secrets, read: began, watched: map[client.ObjectKey]context.CancelFunc{},
	}
	return b.open[key].backend, nil
}

// current is the backend of a provider if it need not be made anew; nil if the Secrets have to be read. One caller reads them while the
// others go on with what there is.
func (b *Backends) current(p *v1beta1.DNSProvider, now time.Time) host.Backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.open[client.ObjectKeyFromObject(p)]
	if known == nil || known.uid != p.UID || known.generation < p.Generation {
		return nil
	}
	if now.Sub(known.read) >= secretsAge {
		known.read = now
		return nil
	}
	return known.backend
}

// drop ends a connection, and by that its watches. It does not wait. b.mu is held.
func (b *Backends) drop(key client.ObjectKey) {
	known := b.open[key]
	if known == nil {
		return
	}
	_ = known.backend.Close() // What is under way there fails, and is tried again with the next one.
	delete(b.open, key)
}

// Forget closes the connection to a provider that is gone, unless a zone is followed there: what it has there may have to go first.
func (b *Backends) Forget(key client.ObjectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.open[key]; known != nil && len(known.watched) == 0 {
		b.drop(key)
	}
}

// Followed is the backend of a provider, which may be gone, at which a zone is followed; nil if it is not.
func (b *Backends) Followed(zone, at client.ObjectKey) host.Backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.open[at]; known != nil && known.watched[zone] != nil {
		return known.backend
	}
	return nil
}

// Follow has changed called whenever somebody may have changed a zone with some providers, and no longer with others. A
// connection that nobody needs any more is closed.
func (b *Backends) Follow(zone client.ObjectKey, name string, in []*v1beta1.DNSProvider, changed func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, known := range b.open {
		end, watched := known.watched[zone]
		switch follow := slices.ContainsFunc(in, func(p *v1beta1.DNSProvider) bool { return client.ObjectKeyFromObject(p) == key }); {
		case follow && !watched:
			ctx, cancel := context.WithCancel(context.Background())
			known.watched[zone] = cancel
			go func() {
				defer cancel()
				if known.backend.Watch(ctx, name, changed); ctx.Err() == nil {
					changed() // There is another connection now, which nobody watches yet.
				}
			}()
		case !follow && watched:
			end()
			if delete(known.watched, zone); len(known.watched) == 0 {
				b.drop(key)
			}
		}
	}
}

// readSecret reads a Secret of a provider; entries are those that it needs, for the error.
func (b *Backends) readSecret(ctx context.Context, p *v1beta1.DNSProvider, name, entries string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: p.Namespace, Name: name}
	if err := b.Reader.Get(ctx, key, secret); err != nil {
		return nil, host.Unusable(errors.New(secretProblem(name, entries, err)))
	}
	return secret, nil
}

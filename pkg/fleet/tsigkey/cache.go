// Package tsigkey caches the TSIG keys that a component signs with. Each key is one Secret, which is read by name: the
// cache never lists or watches Secrets, so a component needs no more rights than the keys that it uses.
package tsigkey

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

const (
	// failureAge is how long a failed read is remembered.
	failureAge = 2 * time.Second
	// readTimeout bounds one read, which goes on when its caller gives up: others may wait for it.
	readTimeout = 5 * time.Second
)

// ReadFunc reads the key in a Secret.
type ReadFunc func(context.Context, types.NamespacedName) (*wire.Key, error)

// Cache holds keys by their Secrets. It is safe for concurrent use.
type Cache struct {
	read    ReadFunc
	maxAge  time.Duration
	grace   time.Duration
	entries *cache.Expiring
	// last are the keys that were read last, each for grace longer than its entry.
	last  *cache.Expiring
	reads singleflight.Group
}

type cachedKey struct {
	key *wire.Key
	err error
}

// NewCache returns a cache that reads a key again when it is older than maxAge. A key that was replaced stays valid for named.KeyGrace;
// maxAge and the longest use of a key must end within it. A key that cannot be read again is used for grace longer, unless a server
// refuses it.
func NewCache(read ReadFunc, maxAge, grace time.Duration) *Cache {
	return &Cache{read: read, maxAge: maxAge, grace: grace, entries: cache.NewExpiring(), last: cache.NewExpiring()}
}

// Get reads the key in a Secret. Concurrent callers share one read, and for a short while its failure.
func (c *Cache) Get(ctx context.Context, secret types.NamespacedName) (*wire.Key, error) {
	if cached, ok := c.entries.Get(secret); ok {
		return cached.(cachedKey).key, cached.(cachedKey).err
	}
	done := c.reads.DoChan(secret.String(), func() (any, error) {
		key, err := c.readKey(context.WithoutCancel(ctx), secret)
		return key, err
	})
	select {
	case result := <-done:
		return result.Val.(*wire.Key), result.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Cache) readKey(ctx context.Context, secret types.NamespacedName) (*wire.Key, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	key, err := c.read(ctx, secret)
	if err == nil {
		c.Set(secret, key)
		return key, nil
	}
	result := c.lastKey(secret, err)
	if _, known := c.entries.Get(secret); !known {
		c.entries.Set(secret, result, failureAge)
	}
	return result.key, result.err
}

// lastKey is the key that was read last if it may still be used, else the error.
func (c *Cache) lastKey(secret types.NamespacedName, err error) cachedKey {
	if last, ok := c.last.Get(secret); ok {
		return cachedKey{key: last.(*wire.Key)}
	}
	return cachedKey{err: err}
}

// Set caches a key that the caller knows to be in a Secret.
func (c *Cache) Set(secret types.NamespacedName, key *wire.Key) {
	c.entries.Set(secret, cachedKey{key: key}, c.maxAge)
	if c.grace > 0 {
		c.last.Set(secret, key, c.maxAge+c.grace)
	}
}

// Invalidate makes the next Get read a Secret again if the cache still holds this key: a server refused it.
func (c *Cache) Invalidate(secret types.NamespacedName, refused *wire.Key) {
	if cached, ok := c.entries.Get(secret); ok && cached.(cachedKey).key == refused {
		c.entries.Delete(secret)
		c.last.Delete(secret)
	}
}

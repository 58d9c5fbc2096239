package keyrotation

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// keyLifetime is how long a key stays in the cache: a fraction of named.KeyGrace, during which a key that was replaced is
// still accepted.
const keyLifetime = 30 * time.Second

// Cache has the keys to sign with, and the key rings that this process maintains. It is safe for concurrent use.
type Cache struct {
	*tsigkey.Cache
	mu sync.Mutex
	// rings are those that this process maintains, by their Secrets.
	rings map[client.ObjectKey]cachedRing
}

type cachedRing struct {
	named.Keyring
	owner types.UID
	at    time.Time
}

// NewCache returns an empty cache, which reads keys from their Secrets, one at a time and by name.
func NewCache(reader client.Reader) *Cache {
	read := func(ctx context.Context, name client.ObjectKey) (*wire.Key, error) {
		secret := &corev1.Secret{}
		if err := reader.Get(ctx, name, secret); err != nil {
			return nil, fmt.Errorf("reading the TSIG key: %w", tsigkey.Unreadable(name.Name, err))
		}
		return named.KeyFromSecret(secret)
	}
	return &Cache{Cache: tsigkey.NewCache(read, keyLifetime, 0), rings: map[client.ObjectKey]cachedRing{}}
}

// setRing stores what a ring is now.
func (c *Cache) setRing(name client.ObjectKey, owner types.UID, ring named.Keyring) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rings[name] = cachedRing{ring, owner, time.Now()}
	c.Set(name, ring.Active())
}

// ringOf is what the same owner stored, unless that was long ago: somebody else may have changed the Secret.
func (c *Cache) ringOf(name client.ObjectKey, owner types.UID) (named.Keyring, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.rings[name]
	return known.Keyring, ok && known.owner == owner && time.Since(known.at) < apply.RereadAfter
}

// LastRing is the ring in a Secret as it was stored last; the zero value when it never was.
func (c *Cache) LastRing(name client.ObjectKey) named.Keyring {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rings[name].Keyring
}

// UpdateKey reads the key that signs updates to an instance's servers.
func (c *Cache) UpdateKey(ctx context.Context, i *v1beta1.Bind9Instance) (*wire.Key, error) {
	return c.Get(ctx, UpdateKeySecret(i))
}

// TransferKey reads the key that signs transfers from an instance's servers.
func (c *Cache) TransferKey(ctx context.Context, i *v1beta1.Bind9Instance) (*wire.Key, error) {
	return c.Get(ctx, TransferKeySecret(i))
}

// UpdateKeySecret is the Secret of the key ring that an instance's update key is in.
func UpdateKeySecret(i *v1beta1.Bind9Instance) client.ObjectKey {
	return client.ObjectKey{Namespace: i.Namespace, Name: named.UpdateKeySecretName(i)}
}

// TransferKeySecret is the Secret of the key ring that an instance's transfer key is in.
func TransferKeySecret(i *v1beta1.Bind9Instance) client.ObjectKey {
	return client.ObjectKey{Namespace: i.Namespace, Name: named.TransferKeySecretName(i)}
}

package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// keyLife is how long a key that was read stays good without a look at its Secret: a fraction of named.KeyGrace, during
// which a key that was replaced is still accepted.
const keyLife = 30 * time.Second

// keyring has the keys to sign with, and the key rings that this process maintains.
type keyring struct {
	*tsigkey.Cache
	mu sync.Mutex
	// rings are those that this process keeps, by the Secrets that they are in.
	rings map[client.ObjectKey]keptRing
}

type keptRing struct {
	named.Keyring
	owner types.UID
	at    time.Time
}

// newKeyring returns a key ring that reads keys from their Secrets, one at a time and by name.
func newKeyring(reader client.Reader) *keyring {
	read := func(ctx context.Context, name client.ObjectKey) (*wire.Key, error) {
		secret := &corev1.Secret{}
		if err := reader.Get(ctx, name, secret); err != nil {
			return nil, fmt.Errorf("reading the TSIG key: %w", err)
		}
		return named.KeyFromSecret(secret)
	}
	return &keyring{Cache: tsigkey.NewCache(read, keyLife), rings: map[client.ObjectKey]keptRing{}}
}

// put notes what a ring is now.
func (k *keyring) put(name client.ObjectKey, owner types.UID, ring named.Keyring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rings[name] = keptRing{ring, owner, time.Now()}
	k.Set(name, ring.Active())
}

// ring is what the same owner put, unless it is long ago: somebody else may have changed the Secret.
func (k *keyring) ring(name client.ObjectKey, owner types.UID) (named.Keyring, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, ok := k.rings[name]
	return kept.Keyring, ok && kept.owner == owner && time.Since(kept.at) < named.KeyGrace
}

// last is the ring in a Secret as it was put last; the zero value when it never was.
func (k *keyring) last(name client.ObjectKey) named.Keyring {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rings[name].Keyring
}

func updateKeySecret(i *v1beta1.Bind9Instance) client.ObjectKey {
	return client.ObjectKey{Namespace: i.Namespace, Name: named.UpdateKeySecretName(i)}
}

func transferKeySecret(i *v1beta1.Bind9Instance) client.ObjectKey {
	return client.ObjectKey{Namespace: i.Namespace, Name: named.TransferKeySecretName(i)}
}

// update and transfer are the keys of an instance's servers.
func (k *keyring) update(ctx context.Context, i *v1beta1.Bind9Instance) (*wire.Key, error) {
	return k.Get(ctx, updateKeySecret(i))
}

func (k *keyring) transfer(ctx context.Context, i *v1beta1.Bind9Instance) (*wire.Key, error) {
	return k.Get(ctx, transferKeySecret(i))
}

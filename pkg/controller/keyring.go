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
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// keyLife is how long a key that was read stays good without a look at its Secret: a fraction of named.KeyGrace, during
// which a key that was replaced is still accepted.
const keyLife = 30 * time.Second

// keyring has the keys to sign with, from Secrets that are read one at a time and by name. Who changes one puts it in.
type keyring struct {
	reader client.Reader
	mu     sync.Mutex
	keys   map[client.ObjectKey]readKey
	// rings are those that this process keeps, by the Secrets that they are in.
	rings map[client.ObjectKey]keptRing
}

type readKey struct {
	key *wire.Key
	at  time.Time
}

type keptRing struct {
	named.Keyring
	owner types.UID
	at    time.Time
}

// put notes what a ring is now.
func (k *keyring) put(name client.ObjectKey, owner types.UID, ring named.Keyring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		k.keys = map[client.ObjectKey]readKey{}
	}
	if k.rings == nil {
		k.rings = map[client.ObjectKey]keptRing{}
	}
	k.rings[name] = keptRing{ring, owner, time.Now()}
	k.keys[name] = readKey{ring.Active(), time.Now()}
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

// update and transfer are the keys of an instance's servers.
func (k *keyring) update(ctx context.Context, i *v1beta1.Bind9Instance) (*wire.Key, error) {
	return k.get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: named.UpdateKeySecretName(i)})
}

func (k *keyring) transfer(ctx context.Context, i *v1beta1.Bind9Instance) (*wire.Key, error) {
	return k.get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: named.TransferKeySecretName(i)})
}

// forget makes the next use read the instance's keys anew: a server did not know one of them.
func (k *keyring) forget(i *v1beta1.Bind9Instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.keys, client.ObjectKey{Namespace: i.Namespace, Name: named.UpdateKeySecretName(i)})
	delete(k.keys, client.ObjectKey{Namespace: i.Namespace, Name: named.TransferKeySecretName(i)})
}

func (k *keyring) get(ctx context.Context, name client.ObjectKey) (*wire.Key, error) {
	k.mu.Lock()
	known, ok := k.keys[name]
	k.mu.Unlock()
	if ok && time.Since(known.at) < keyLife {
		return known.key, nil
	}
	secret := &corev1.Secret{}
	if err := k.reader.Get(ctx, name, secret); err != nil {
		return nil, fmt.Errorf("reading the TSIG key: %w", err)
	}
	key, err := named.KeyFromSecret(secret)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		k.keys = map[client.ObjectKey]readKey{}
	}
	k.keys[name] = readKey{key, time.Now()}
	return key, nil
}

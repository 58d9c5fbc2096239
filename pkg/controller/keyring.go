package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// keyLife is how long a key that was read stays good without a look at its Secret.
const keyLife = 30 * time.Second

// keyring reads TSIG keys from Secrets, one at a time and by name: the controller watches no Secrets, so that it holds
// none but those it uses.
type keyring struct {
	reader client.Reader
	mu     sync.Mutex
	keys   map[client.ObjectKey]readKey
}

type readKey struct {
	key *wire.Key
	at  time.Time
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

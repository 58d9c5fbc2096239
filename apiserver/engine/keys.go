package engine

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// How long a transfer key, or the failure to read it, is kept. A key that is replaced stays good for named.KeyGrace.
const (
	keyFor   = time.Minute
	noKeyFor = 2 * time.Second
)

// keys reads transfer keys: each is one Secret that this server may get by name, and no other.
type keys struct {
	read func(context.Context, types.NamespacedName) (*wire.Key, error)
	now  func() time.Time

	mu   sync.Mutex
	kept map[types.NamespacedName]*keptKey
}

type keptKey struct {
	ready chan struct{} // closed when key and until are set
	key   *wire.Key     // nil when it could not be read
	until time.Time
}

func newKeys(read func(context.Context, types.NamespacedName) (*wire.Key, error)) *keys {
	return &keys{read: read, now: time.Now, kept: map[types.NamespacedName]*keptKey{}}
}

// secrets reads keys from the cluster.
func secrets(client kubernetes.Interface) func(context.Context, types.NamespacedName) (*wire.Key, error) {
	return func(ctx context.Context, name types.NamespacedName) (*wire.Key, error) {
		secret, err := client.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("getting Secret %s: %w", name, err)
		}
		return named.KeyFromSecret(secret)
	}
}

// get gives the key in a Secret; nil when there is none to be had, so that transfers are tried without one and the
// server's refusal shows up in the answer.
func (k *keys) get(ctx context.Context, secret types.NamespacedName) *wire.Key {
	k.mu.Lock()
	kept := k.kept[secret]
	if now := k.now(); kept == nil || kept.expired(now) {
		maps.DeleteFunc(k.kept, func(_ types.NamespacedName, other *keptKey) bool { return other.expired(now) })
		kept = &keptKey{ready: make(chan struct{})}
		k.kept[secret] = kept
		go k.fetch(context.WithoutCancel(ctx), secret, kept)
	}
	k.mu.Unlock()
	select {
	case <-kept.ready:
		return kept.key
	case <-ctx.Done():
		return nil
	}
}

func (k *keptKey) expired(now time.Time) bool {
	select {
	case <-k.ready:
		return now.After(k.until)
	default:
		return false
	}
}

func (k *keys) fetch(ctx context.Context, secret types.NamespacedName, kept *keptKey) {
	defer close(kept.ready)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	key, err := k.read(ctx, secret)
	if err != nil {
		kept.until = k.now().Add(noKeyFor)
		klog.FromContext(ctx).Error(err, "Cannot read a transfer key; the servers that need it will refuse transfers", "secret", secret)
		return
	}
	kept.key, kept.until = key, k.now().Add(keyFor)
}

// doubt makes the next get read the Secret again: a server refused the key.
func (k *keys) doubt(secret types.NamespacedName, key *wire.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.kept[secret]
	if kept == nil {
		return
	}
	select {
	case <-kept.ready:
		if kept.key == key {
			delete(k.kept, secret)
		}
	default:
	}
}

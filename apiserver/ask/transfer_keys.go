package ask

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
)

// keyMaxAge is how long a transfer key is used before its Secret is read again. A key that is replaced stays good for
// named.KeyGrace.
const keyMaxAge = time.Minute

// ReadKeys reads transfer keys from the Kubernetes cluster at config: each is one Secret that this server may get by name, and no other.
// Without its key a transfer is tried all the same, so that the server's refusal shows up in the answer.
func ReadKeys(config *rest.Config) (tsigkey.ReadFunc, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for transfer keys: %w", err)
	}
	return func(ctx context.Context, name types.NamespacedName) (key *wire.Key, err error) {
		secret, err := client.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if err == nil {
			key, err = named.KeyFromSecret(secret)
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot read a transfer key; the servers that need it will refuse transfers", "secret", name)
		}
		return key, err
	}, nil
}

// transferKey reads the key, in a Secret, that questions to a server are signed with; nil if none can be read. It is not ok if ctx ended
// first: others would share what is asked without a key.
func (a *Asker) transferKey(ctx context.Context, secret types.NamespacedName) (key *wire.Key, ok bool) {
	if secret.Name == "" {
		return nil, true
	}
	key, _ = a.keys.Get(ctx, secret)
	return key, key != nil || ctx.Err() == nil
}

// dropRefusedKey has a key read anew that a server did not accept.
func (a *Asker) dropRefusedKey(secret types.NamespacedName, key *wire.Key, o observe.Observation) {
	if we, ok := errors.AsType[*wire.Error](o.Err); key != nil && ok && we.TSIGError != 0 {
		a.keys.Invalidate(secret, key)
	}
}

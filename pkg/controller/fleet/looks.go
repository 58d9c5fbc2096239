package fleet

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/controller/apply"
)

// No event reports that a Secret or a ConfigMap is gone, that a certificate is due, or that a sidecar fails: instances and
// clusters are looked at now and then, the more often the fewer instances there are: so many a second of all, but each at least
// every 15 seconds. At the least interval, what was read at the last look is read again.
const (
	looksPerSecond  = 50
	minLookInterval = 2 * apply.RereadAfter
	maxLookInterval = 15 * time.Second
)

// LookInterval returns how soon an instance or a cluster is looked at again that nothing happens to.
func LookInterval(ctx context.Context, c client.Reader) time.Duration {
	instances, err := ListInstances(ctx, c)
	if err != nil {
		return maxLookInterval
	}
	return lookIntervalOf(len(instances))
}

func lookIntervalOf(instances int) time.Duration {
	return min(max(time.Duration(instances)*time.Second/looksPerSecond, minLookInterval), maxLookInterval)
}

package inventory

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// No event reports that a Secret or a ConfigMap is gone, that a certificate is due, or that a sidecar fails: instances and
// clusters are looked at now and then, the more often the fewer instances there are: so many a second of all, but each at least
// every 15 seconds. At the least interval, what was read at the last look is read again.
//
// A look has named, the sidecar and the fleet manager list all zones of each pod, some 30 µs for each (`-bench List ./pkg/fleet/bindcar/sidecar`). The more zones an instance
// has, the longer is between two looks, whether an event asks for one or none.
const (
	looksPerSecond  = 50
	minLookInterval = 2 * apply.RereadAfter
	maxLookInterval = 15 * time.Second
	pausePerZone    = time.Millisecond
)

// LookInterval is how soon an instance with so many zones, or a cluster, is looked at again that nothing happens to.
func LookInterval(ctx context.Context, c client.Reader, zones int) time.Duration {
	instances, err := ListInstances(ctx, c)
	if err != nil {
		return maxLookInterval
	}
	return lookIntervalOf(len(instances), zones)
}

func lookIntervalOf(instances, zones int) time.Duration {
	byInstances, byZones := time.Duration(instances)*time.Second/looksPerSecond, time.Duration(zones)*pausePerZone
	return min(max(byInstances, byZones, minLookInterval), maxLookInterval)
}

// DebounceFor is how long events about zones are gathered into one look at an instance that has so many.
func DebounceFor(zones int) time.Duration {
	return min(max(time.Duration(zones)*pausePerZone, Debounce), maxLookInterval)
}

// Timeouts are how long an object may go without progress before its status asks for a person.
type Timeouts struct {
	// Instance is for an instance or a cluster that comes no nearer to being ready.
	Instance time.Duration
	// Key is for one that waits for a Secret.
	Key time.Duration
}

// For is how long what an error says is missing may take to appear.
func (t Timeouts) For(err error) time.Duration {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		if d := answer.Status().Details; d != nil && d.Kind == "secrets" {
			return t.Key
		}
	}
	return t.Instance
}

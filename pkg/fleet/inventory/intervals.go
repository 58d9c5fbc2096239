package inventory

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// Instances and clusters are checked now and then, because no event reports that a Secret or a ConfigMap is gone, that a certificate is due,
// or that a sidecar fails: a limited number in a second, but each at least every 15 seconds. A check reads again what the one before read.
//
// In a check, named, the sidecar and the fleet manager list all zones of each pod, at some 30 µs a zone (-bench List
// ./pkg/fleet/bindcar/sidecar). The more zones an instance has, the longer are the pauses between its checks.
const (
	checksPerSecond  = 50
	minCheckInterval = 2 * apply.RereadAfter
	maxCheckInterval = 15 * time.Second
	pausePerZone     = time.Millisecond
)

// CheckInterval is how soon an instance with that many zones, or a cluster, is checked again without an event.
func CheckInterval(ctx context.Context, c client.Reader, zones int) time.Duration {
	instances, err := ListInstances(ctx, c)
	if err != nil {
		return maxCheckInterval
	}
	return checkIntervalOf(len(instances), zones)
}

func checkIntervalOf(instances, zones int) time.Duration {
	byInstances, byZones := time.Duration(instances)*time.Second/checksPerSecond, time.Duration(zones)*pausePerZone
	return min(max(byInstances, byZones, minCheckInterval), maxCheckInterval)
}

// DebounceFor is how long events about zones are gathered for one check of an instance with that many zones.
func DebounceFor(zones int) time.Duration {
	return min(max(time.Duration(zones)*pausePerZone, Debounce), maxCheckInterval)
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

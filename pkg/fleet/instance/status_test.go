package instance

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// The list of zones alone waits, the longer the more there are; what people look at does not wait for it.
func TestWriteInterval(t *testing.T) {
	instance := func(zones int, reason string) v1beta1.Bind9InstanceStatus {
		return v1beta1.Bind9InstanceStatus{
			ZonesCount: int32(zones), Zones: make([]v1beta1.ZoneReference, zones),
			Conditions: []metav1.Condition{{Type: status.Ready, Reason: reason}},
		}
	}
	for name, c := range map[string]struct {
		last, next v1beta1.Bind9InstanceStatus
		want       time.Duration
	}{
		"a few zones":          {instance(1, status.AllReady), instance(2, status.AllReady), apply.StatusInterval},
		"five hundred":         {instance(499, status.AllReady), instance(500, status.AllReady), 5 * time.Second},
		"a thousand":           {instance(999, status.AllReady), instance(1000, status.AllReady), apply.ListInterval},
		"a condition, as well": {instance(999, status.AllReady), instance(1000, status.NotReady), apply.StatusInterval},
	} {
		if got := writeInterval(c.last, c.next); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

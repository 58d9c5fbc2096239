package instance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// recordingQueue records what is added to it.
type recordingQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []string
	after []time.Duration
}

func (q *recordingQueue) AddAfter(request reconcile.Request, after time.Duration) {
	q.added, q.after = append(q.added, request.String()), append(q.after, after)
}

// An instance looks at its pods again when the status of a zone says that they got it or lost it, and not for other news.
func TestZoneArrived(t *testing.T) {
	on := func(states ...v1beta1.ZoneInstanceStatus) *v1beta1.DNSZone {
		zone := &v1beta1.DNSZone{}
		for i, state := range states {
			zone.Status.Bind9Instances = append(zone.Status.Bind9Instances, v1beta1.ZoneInstance{Namespace: "dns", Name: string(rune('a' + i)), Status: state})
		}
		return zone
	}
	const claimed, configured, failed = v1beta1.ZoneClaimed, v1beta1.ZoneConfigured, v1beta1.ZoneFailed
	said := on(configured)
	said.Status.Bind9Instances[0].Message = "news"
	for name, c := range map[string]struct {
		before, after *v1beta1.DNSZone
		want          []string
	}{
		"a new zone":         {on(), on(claimed), []string{"dns/a"}},
		"one server has it":  {on(claimed, claimed), on(configured, claimed), []string{"dns/a"}},
		"one server lost it": {on(configured, configured), on(configured, failed), []string{"dns/b"}},
		"another message":    {on(configured), said, nil},
	} {
		t.Run(name, func(t *testing.T) {
			q := &recordingQueue{}
			new(zoneCounts).arrived().Update(t.Context(), event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}, q)
			if diff := cmp.Diff(c.want, q.added); diff != "" {
				t.Errorf("reconciled (-want +got):\n%s", diff)
			}
		})
	}
}

// The more zones an instance has, the more of them one look is about.
func TestZonesArriveTogether(t *testing.T) {
	counts := &zoneCounts{}
	counts.Store(client.ObjectKey{Namespace: "dns", Name: "a"}, 2000)
	zone := &v1beta1.DNSZone{}
	zone.Status.Bind9Instances = []v1beta1.ZoneInstance{{Namespace: "dns", Name: "a", Status: v1beta1.ZoneClaimed}}
	q := &recordingQueue{}
	counts.arrived().Update(t.Context(), event.UpdateEvent{ObjectOld: &v1beta1.DNSZone{}, ObjectNew: zone}, q)
	zone.Status.Bind9Instances[0].Name = "b"
	counts.arrived().Update(t.Context(), event.UpdateEvent{ObjectOld: &v1beta1.DNSZone{}, ObjectNew: zone}, q)
	if diff := cmp.Diff([]time.Duration{2 * time.Second, 100 * time.Millisecond}, q.after); diff != "" {
		t.Errorf("pauses before the looks (-want +got):\n%s", diff)
	}
}

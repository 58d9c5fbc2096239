package controller

import (
	"net/netip"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

func TestHolderOf(t *testing.T) {
	zone := func(name, dnsName string) *v1beta1.DNSZone {
		z := &v1beta1.DNSZone{}
		z.Name, z.UID, z.Spec.ZoneName = name, types.UID(name), dnsName
		return z
	}
	zones := []*v1beta1.DNSZone{zone("one", "one.example"), zone("two", "two.example")}
	for name, c := range map[string]struct {
		ref       string
		finalizer bool
		stamp     string
		want      string
	}{
		"nothing is known": {},
		"a stamp alone is admission's, nothing is out yet": {stamp: "one.example"},
		"marked, and the status could not be written":      {stamp: "one.example", finalizer: true, want: "one"},
		"the status is what counts":                        {ref: "two", stamp: "one.example", finalizer: true, want: "two"},
		"the metadata is free already, the status is not":  {ref: "two", want: "two"},
		"the zone is gone":                                 {ref: "three", stamp: "one.example", finalizer: true},
	} {
		t.Run(name, func(t *testing.T) {
			record := &v1beta1.ARecord{}
			if c.ref != "" {
				record.Status.ZoneRef = &v1beta1.ZoneReference{Name: c.ref}
			}
			if c.finalizer {
				record.Finalizers = []string{v1beta1.Finalizer}
			}
			if c.stamp != "" {
				record.Annotations = map[string]string{v1beta1.ZoneAnnotation: c.stamp}
			}
			got := ""
			if z := holderOf(record, zones); z != nil {
				got = z.Name
			}
			if got != c.want {
				t.Errorf("the holder is %q, want %q", got, c.want)
			}
		})
	}
}

func TestPauseGrowsWhileAServerIsBehindAndStartsAnew(t *testing.T) {
	r := &zoneReconciler{backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstPause, refusePause)}
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "zone"}}
	behind := syncevent.SyncCompleted{Servers: []syncevent.ServerOutcome{{Server: observe.Server{Addr: netip.MustParseAddrPort("192.0.2.1:53")}}}}
	last := time.Duration(0)
	for range 20 {
		p := r.pause(request, behind)
		if p < last || p > refusePause || (last < refusePause/2 && p == last) {
			t.Fatalf("a pause of %s after one of %s", p, last)
		}
		last = p
	}
	noAddress := syncevent.SyncCompleted{Servers: []syncevent.ServerOutcome{{}}}
	if p := r.pause(request, noAddress); p != idlePause {
		t.Errorf("a pod without an address is looked at again after %s: an event tells of it", p)
	}
	if p := r.pause(request, behind); p != firstPause {
		t.Errorf("the first pause is %s, want %s", p, firstPause)
	}
	refused := syncevent.SyncCompleted{Unprogrammed: map[rrset.Key]status.Verdict{{Name: "x."}: {}}}
	if p := r.pause(request, refused); p != refusePause {
		t.Errorf("a refused RRset is tried again after %s, want %s", p, refusePause)
	}
}

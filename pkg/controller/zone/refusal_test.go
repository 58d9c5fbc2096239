package zone

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// named holds 100 types at a name, and refuses one more until somebody takes one away.
func TestWhatWasRefusedIsServedSoonAfterItBecamePossible(t *testing.T) {
	var full strings.Builder
	fmt.Fprintln(&full, "full A 192.0.2.1")
	for n := range 99 {
		fmt.Fprintf(&full, "full TYPE%d \\# 1 00\n", 65280+n)
	}
	r := newRig(t, 1, bind.Zone{Records: full.String()})
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval)
	now := time.Now()
	r.now = func() time.Time { return now }
	text := &v1beta1.TXTRecord{ObjectMeta: r.a("text", 1, "192.0.2.1").ObjectMeta}
	text.Spec.Name, text.Spec.Text = "full", []string{"hello"}
	r.zones.Set(text)
	key := rrset.Key{Name: "full." + rigZone, Type: dns.TypeTXT}
	p := r.pass()
	if _, refused := p.event.Unprogrammed[key]; !refused {
		t.Fatal("the server takes a name's 101st type: the test needs another refusal")
	}
	r.byHand(0, "full", "")
	for began := now; ; p = r.pass() {
		if _, refused := p.event.Unprogrammed[key]; !refused {
			break
		}
		if now.Sub(began) > 4*time.Second {
			t.Fatalf("after %s it is still not served: %v", now.Sub(began), p.event.Unprogrammed)
		}
		now = now.Add(requeueAfter(p, backoff, fleet.RequestFor(r.zone)))
	}
}

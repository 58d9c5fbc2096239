package zone

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

func TestPauseGrowsWhileAServerIsBehindAndStartsAnew(t *testing.T) {
	r := &zoneReconciler{backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstPause, lastPause)}
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "zone"}}
	behind := syncevent.SyncCompleted{Servers: []syncevent.ServerOutcome{{Server: observe.Server{Addr: netip.MustParseAddrPort("192.0.2.1:53")}}}}
	last := time.Duration(0)
	for range 20 {
		p := r.pause(request, behind)
		if p < last*9/10 || p > lastPause*11/10 || (last < lastPause/2 && p < last*3/2) {
			t.Fatalf("a pause of %s after one of %s", p, last)
		}
		last = p
	}
	noAddress := syncevent.SyncCompleted{Servers: []syncevent.ServerOutcome{{}}}
	if p := r.pause(request, noAddress); !about(p, idlePause) {
		t.Errorf("a pod without an address is looked at again after %s: an event tells of it", p)
	}
	if p := r.pause(request, behind); !about(p, firstPause) {
		t.Errorf("the first pause is %s, want %s", p, firstPause)
	}
	refused := syncevent.SyncCompleted{Unprogrammed: map[rrset.Key]status.Verdict{{Name: "x."}: {}}}
	if p := r.pause(request, refused); !about(p, refusePause) {
		t.Errorf("a refused RRset is tried again after %s, want %s", p, refusePause)
	}
	behind.Servers[0].Err = fmt.Errorf("programming: %w", &wire.Error{Op: "update", TSIGError: dns.RcodeBadKey})
	if p := r.pause(request, behind); !about(p, refusePause) {
		t.Errorf("a server that does not know our key is asked again after %s, want %s", p, refusePause)
	}
}

func about(p, want time.Duration) bool { return p >= want*9/10 && p <= want*11/10 }

func TestASecondaryThatDoesNotMoveTransfersAnewNowAndThen(t *testing.T) {
	began := time.Unix(1000, 0)
	s := &secondaryState{}
	var done []string
	for at := time.Duration(0); at < 3*time.Minute; at += 500 * time.Millisecond {
		if s.next(7, false, began.Add(at)) == transferAnew {
			done = append(done, at.String())
		}
		if got, want := s.failing(began.Add(at)), at >= transferPatience; got != want {
			t.Fatalf("after %s: failing is %v", at, got)
		}
	}
	if diff := cmp.Diff([]string{"2s", "32s", "1m32s"}, done); diff != "" {
		t.Errorf("transfers (-want +got):\n%s", diff)
	}
	now := began.Add(time.Hour)
	if got := s.next(8, false, now); got != notifyIt || s.failing(now) {
		t.Errorf("one that has moved is treated as before: %v", got)
	}
	if got := s.next(20, true, now); got != transferAnew {
		t.Errorf("one that is ahead is not told to transfer the zone: %v", got)
	}
	if got := s.next(20, true, now.Add(time.Second)); got != waitForIt {
		t.Errorf("one that is ahead is told again at once: %v", got)
	}
}

package reconcile

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

func TestPauseGrowsWhileAServerIsBehindAndStartsAnew(t *testing.T) {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval)
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "zone"}}
	behind := statuswriter.SyncCompleted{Servers: []statuswriter.ServerOutcome{{Server: observe.Server{Addr: netip.MustParseAddrPort("192.0.2.1:53")}}}}
	last := time.Duration(0)
	for range 20 {
		p := pauseAfter(behind, backoff, request)
		if p < last*9/10 || p > lastInterval*11/10 || (last < lastInterval/2 && p < last*3/2) {
			t.Fatalf("a pause of %s after one of %s", p, last)
		}
		last = p
	}
	noAddress := statuswriter.SyncCompleted{Servers: []statuswriter.ServerOutcome{{}}}
	if p := pauseAfter(noAddress, backoff, request); !about(p, idleInterval) {
		t.Errorf("a pod without an address is looked at again after %s: an event tells of it", p)
	}
	if p := pauseAfter(behind, backoff, request); !about(p, firstInterval) {
		t.Errorf("the first pause is %s, want %s", p, firstInterval)
	}
	refused := statuswriter.SyncCompleted{Unprogrammed: map[rrset.Key]status.Verdict{{Name: "x."}: {}}}
	if p := pauseAfter(refused, backoff, request); !about(p, content.RefusalPause) {
		t.Errorf("a refused RRset is tried again after %s, want %s", p, content.RefusalPause)
	}
	secondary := statuswriter.SyncCompleted{Servers: []statuswriter.ServerOutcome{{Server: observe.Server{Addr: behind.Servers[0].Addr, Role: observe.Secondary}}}}
	if p := pauseAfter(secondary, backoff, request); !about(p, idleInterval) {
		t.Errorf("a secondary is looked at again after %s although no primary says what it should have", p)
	}
	secondary.SerialKnown = true
	if p := pauseAfter(secondary, backoff, request); !about(p, firstInterval) {
		t.Errorf("a secondary that is behind serial %d is looked at again after %s, want %s", secondary.Serial, p, firstInterval)
	}
	backoff.Forget(request)
	behind.Servers[0].Err = fmt.Errorf("programming: %w", &wire.Error{Op: "update", TSIGError: dns.RcodeBadKey})
	if p := pauseAfter(behind, backoff, request); !about(p, content.RefusalPause) {
		t.Errorf("a server that does not know our key is asked again after %s, want %s", p, content.RefusalPause)
	}
}

// A zone that is not signed yet because the Secret for its keys is missing is looked at again soon.
func TestUnsignedZoneComesAgainSoon(t *testing.T) {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval)
	if got := requeueAfter(passResult{reconciled: reconciled{remark: "no Secret"}}, backoff, ctrl.Request{}); !about(got, firstInterval) {
		t.Errorf("the next pass is after %s", got)
	}
	if got := requeueAfter(passResult{}, backoff, ctrl.Request{}); !about(got, idleInterval) {
		t.Errorf("a zone at rest is looked at after %s", got)
	}
}

func about(p, want time.Duration) bool { return p >= want*9/10 && p <= want*11/10 }

// What a server refused is tried again before the zone's own interval is over, unless the server is away.
func TestRefusedRRsetsShortenTheInterval(t *testing.T) {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval)
	now := time.Unix(1000, 0)
	key := rrset.Key{Name: "www.example.test.", Type: dns.TypeA}
	result := passResult{event: statuswriter.SyncCompleted{At: now}, reconciled: reconciled{Result: primary.Result{Primaries: []primary.State{{Known: &content.Primary{}}}}}}
	q := &result.Primaries[0]
	q.Known.Refused(map[rrset.Key]error{key: errors.New("REFUSED")}, plan.Changes{Create: []rrset.RRset{{Key: key}}}, now)
	if got := requeueAfter(result, backoff, ctrl.Request{}); got != time.Second {
		t.Errorf("the next pass is after %s", got)
	}
	q.Err = errors.New("no reply")
	if got := requeueAfter(result, backoff, ctrl.Request{}); !about(got, idleInterval) {
		t.Errorf("a server that is away is to be tried after %s", got)
	}
}

// The pauses grow while many objects change, and begin anew after a while.
func TestPausesGrowWithABulk(t *testing.T) {
	var s zoneState
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, want := range []time.Duration{bulkPause, 2 * bulkPause, lastBulkPause, lastBulkPause, lastBulkPause, bulkPause} {
		if now = now.Add(max(0, s.bulkWait(now)) + bulkPause); i == 5 {
			now = now.Add(2 * lastBulkPause)
		}
		s.noteBulk(bulkSize-1, now)
		if got := s.bulkWait(now); got > 0 {
			t.Errorf("a change of little after bulk %d waits for %s", i, got)
		}
		s.noteBulk(bulkSize, now)
		if got := s.bulkWait(now); got != want {
			t.Errorf("the pause after bulk %d is %s, want %s", i, got, want)
		}
	}
}

// Passes over a zone in which many objects change do not follow each other at once; what changes a little never waits.
func TestAPauseAfterABulk(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r.zone)}
	// Without a client it cannot do a pass.
	next := &reconciler{edges: r.edges}
	next.kube = nil
	wait := func(after time.Duration, p passResult) time.Duration {
		next.states.Store(request.NamespacedName, r.states.stateOf(r.zone))
		next.now = func() time.Time { return p.event.At.Add(after) }
		result, err := next.Reconcile(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	for n := range bulkSize {
		r.zones.Set(numbered(n, 1))
	}
	bulk := r.pass()
	if got := wait(bulkPause/4, bulk); got != bulkPause*3/4 {
		t.Errorf("the next pass waits for %s", got)
	}
	r.zones.Set(numbered(0, 2))
	single := r.pass()
	if got := r.states.stateOf(r.zone).bulkWait(bulk.event.At.Add(bulkPause)); got > 0 {
		t.Errorf("a change waits for %s after its time", got)
	}
	if !r.states.stateOf(r.zone).bulkEnded.Equal(bulk.event.At) || single.event.Changes.Len() != 1 {
		t.Errorf("%d changes count as a bulk", single.event.Changes.Len())
	}
}

// The first order to transfer comes when its time has, whatever the backoff.
func TestFirstOrderComesInTime(t *testing.T) {
	now := time.Unix(1000, 0)
	waiting, ordered := &host.Follower{}, &host.Follower{}
	waiting.NextStep(7, false, now)
	ordered.NextStep(20, true, now)
	state := func(s *host.Follower) *zoneState {
		return &zoneState{secondaries: map[types.NamespacedName]*host.Follower{{}: s}}
	}
	for name, c := range map[string]struct {
		*host.Follower
		after, want time.Duration
	}{
		"in sync":            {&host.Follower{}, 0, idleInterval},
		"just notified":      {waiting, 0, 2 * time.Second},
		"a moment later":     {waiting, 2*time.Second - time.Millisecond, firstInterval},
		"a little late":      {waiting, 2*time.Second + time.Second, firstInterval},
		"it did not answer":  {waiting, 4 * time.Second, idleInterval},
		"ordered to already": {ordered, 0, idleInterval},
	} {
		if got := state(c.Follower).untilTransfer(now.Add(c.after)); got != c.want {
			t.Errorf("%s: the next pass is after %s, want %s", name, got, c.want)
		}
	}
}

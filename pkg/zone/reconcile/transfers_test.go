package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestASecondaryThatDoesNotMoveTransfersAnewNowAndThen(t *testing.T) {
	began := time.Unix(1000, 0)
	s := &secondaryState{}
	var done []string
	for at := time.Duration(0); at < 3*time.Minute; at += 500 * time.Millisecond {
		if s.nextStep(7, false, began.Add(at)) == retransfer {
			done = append(done, at.String())
		}
		if got, want := s.isFailing(began.Add(at)), at >= transferGrace; got != want {
			t.Fatalf("after %s: failing is %v", at, got)
		}
	}
	want := []string{"2s", "4s", "6s", "8s", "10s", "12.5s", "16s", "20s", "25s", "31.5s", "39.5s", "49.5s", "1m2s", "1m17.5s", "1m37s", "2m1.5s", "2m32s"}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("transfers (-want +got):\n%s", diff)
	}
	now := began.Add(time.Hour)
	if got := s.nextStep(8, false, now); got != sendNotify || s.isFailing(now) {
		t.Errorf("one that has moved is treated as before: %v", got)
	}
	if got := s.nextStep(20, true, now); got != retransfer {
		t.Errorf("one that is ahead is not asked to transfer the zone: %v", got)
	}
	if got := s.nextStep(20, true, now.Add(time.Second)); got != waitForTransfer {
		t.Errorf("one that is ahead is told again at once: %v", got)
	}
}

// An order that the server could not follow, because it reaches no primary, is repeated soon and not less and less often.
func TestAnOrderThatWasNotFollowedIsRepeatedSoon(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &secondaryState{}
	for s.nextStep(7, false, now) != retransfer {
		now = now.Add(time.Second)
	}
	for range 5 {
		s.orderAgain(now)
		if got := s.nextStep(7, false, now.Add(transferGrace/2)); got == retransfer || !s.isFailing(now) {
			t.Errorf("at once: %v, failing %v", got, s.isFailing(now))
		}
		if now = now.Add(transferGrace); s.nextStep(7, false, now) != retransfer {
			t.Errorf("it is not repeated after %s", transferGrace)
		}
	}
	if got := s.retryAt.Sub(now); got != now.Sub(s.since)/transferShare {
		t.Errorf("the next pause is %s", got)
	}
}

// The first order to transfer comes when its time has, whatever the backoff.
func TestFirstOrderComesInTime(t *testing.T) {
	now := time.Unix(1000, 0)
	waiting, ordered := &secondaryState{}, &secondaryState{}
	waiting.nextStep(7, false, now)
	ordered.nextStep(20, true, now)
	state := func(s *secondaryState) *zoneState {
		return &zoneState{secondaries: map[types.NamespacedName]*secondaryState{{}: s}}
	}
	for name, c := range map[string]struct {
		*secondaryState
		after, want time.Duration
	}{
		"in sync":            {&secondaryState{}, 0, idleInterval},
		"just notified":      {waiting, 0, transferGrace},
		"a moment later":     {waiting, transferGrace - time.Millisecond, firstInterval},
		"a little late":      {waiting, transferGrace + time.Second, firstInterval},
		"it did not answer":  {waiting, 2 * transferGrace, idleInterval},
		"ordered to already": {ordered, 0, idleInterval},
	} {
		if got := state(c.secondaryState).untilTransfer(now.Add(c.after)); got != c.want {
			t.Errorf("%s: the next pass is after %s, want %s", name, got, c.want)
		}
	}
}

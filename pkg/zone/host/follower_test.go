package host

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestASecondaryThatDoesNotMoveTransfersAnewNowAndThen(t *testing.T) {
	began := time.Unix(1000, 0)
	s := &Follower{}
	var done []string
	for at := time.Duration(0); at < 3*time.Minute; at += 500 * time.Millisecond {
		if s.NextStep(7, false, began.Add(at)) == Retransfer {
			done = append(done, at.String())
		}
		if got, want := s.IsFailing(began.Add(at)), at >= transferGrace; got != want {
			t.Fatalf("after %s: failing is %v", at, got)
		}
	}
	want := []string{"2s", "4s", "6s", "8s", "10s", "12.5s", "16s", "20s", "25s", "31.5s", "39.5s", "49.5s", "1m2s", "1m17.5s", "1m37s", "2m1.5s", "2m32s"}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("transfers (-want +got):\n%s", diff)
	}
	now := began.Add(time.Hour)
	if got := s.NextStep(8, false, now); got != SendNotify || s.IsFailing(now) {
		t.Errorf("one that has moved is treated as before: %v", got)
	}
	if got := s.NextStep(20, true, now); got != Retransfer {
		t.Errorf("one that is ahead is not asked to transfer the zone: %v", got)
	}
	if got := s.NextStep(20, true, now.Add(time.Second)); got != WaitForTransfer {
		t.Errorf("one that is ahead is told again at once: %v", got)
	}
}

// An order that the server could not follow, because it reaches no primary, is repeated soon and not less and less often.
func TestAnOrderThatWasNotFollowedIsRepeatedSoon(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &Follower{}
	for s.NextStep(7, false, now) != Retransfer {
		now = now.Add(time.Second)
	}
	for range 5 {
		s.OrderAgain(now)
		if got := s.NextStep(7, false, now.Add(transferGrace/2)); got == Retransfer || !s.IsFailing(now) {
			t.Errorf("at once: %v, failing %v", got, s.IsFailing(now))
		}
		if now = now.Add(transferGrace); s.NextStep(7, false, now) != Retransfer {
			t.Errorf("it is not repeated after %s", transferGrace)
		}
	}
	if got := s.retryAt.Sub(now); got != now.Sub(s.since)/transferShare {
		t.Errorf("the next pause is %s", got)
	}
}

// It is said once of each serial that a secondary has got it, whichever that is.
func TestASecondaryHasGotASerial(t *testing.T) {
	s := &Follower{}
	for i, step := range []struct {
		serial      uint32
		transferred bool
	}{{4294967295, false}, {0, true}, {0, false}, {1, true}, {1, false}} {
		if got := s.NoteCurrent(step.serial); got != step.transferred {
			t.Errorf("step %d, serial %d: transferred is %v", i, step.serial, got)
		}
	}
}

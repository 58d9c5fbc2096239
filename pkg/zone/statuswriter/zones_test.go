package statuswriter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// paced is a zone whose status is written by an outbox at the pace of early.
type paced struct {
	*statusQueue
	zoneOutcome
	began  time.Time
	writes []write
}

// write is one status: which pass it tells of, and when.
type write struct {
	Serial uint32
	At     time.Duration
}

func newPaced(t *testing.T) *paced {
	p := &paced{began: time.Now()}
	p.statusQueue = newStatusQueue(func(context.Context, source.ObjectKey, statusTask) (time.Duration, error) {
		v := status.ZoneVerdictsOf(zoneFacts(p.latest))
		if wait := p.writeDelay(v, time.Now()); wait > 0 {
			return wait, nil
		}
		p.writes = append(p.writes, write{p.latest.Serial, time.Since(p.began)})
		p.verdicts, p.generation, p.written, p.unwritten = v, p.latest.Zone.Generation, time.Now(), time.Time{}
		return 0, nil
	}, func(int) {})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.run(ctx, 1) }()
	t.Cleanup(func() { stop(); <-done })
	return p
}

// sleep waits for so long, and until the outbox has done all that was due by then.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// pass tells of a pass that ended with a serial.
func (p *paced) pass(serial uint32, change func(*SyncCompleted)) {
	e := SyncCompleted{Zone: &v1beta1.DNSZone{}, Serial: serial, Servers: []ServerOutcome{{Current: true}}, Programmed: status.True(status.ReconcileSucceeded, "")}
	e.Zone.Generation = 1
	if change != nil {
		change(&e)
	}
	if p.latest = e; p.unwritten.IsZero() {
		p.unwritten = time.Now()
	}
	p.add(statusTask{zone: client.ObjectKey{Name: "main"}}, 0, key("zone"))
	synctest.Wait()
}

func TestZoneStatusIsWrittenOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced(t)
		for serial := range uint32(25) {
			p.pass(serial+1, nil)
			sleep(90 * time.Millisecond)
		}
		sleep(time.Minute)
		want := []write{{1, 0}, {12, time.Second}, {23, 2 * time.Second}, {25, 3 * time.Second}}
		if diff := cmp.Diff(want, p.writes); diff != "" {
			t.Error(diff)
		}
	})
}

func TestZoneStatusDoesNotWaitForWhatPeopleWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced(t)
		p.pass(1, nil)
		sleep(100 * time.Millisecond)
		p.pass(2, func(e *SyncCompleted) { e.Programmed = status.False(status.PrimaryFailed, "gone") })
		sleep(100 * time.Millisecond)
		p.pass(3, nil)
		sleep(100 * time.Millisecond)
		p.pass(4, func(e *SyncCompleted) { e.Zone.Generation = 2 })
		sleep(100 * time.Millisecond)
		p.pass(5, func(e *SyncCompleted) { e.Zone.Generation = 2 })
		sleep(time.Minute)
		want := []write{{1, 0}, {2, 100 * time.Millisecond}, {3, 200 * time.Millisecond}, {4, 300 * time.Millisecond}, {5, 1300 * time.Millisecond}}
		if diff := cmp.Diff(want, p.writes); diff != "" {
			t.Error(diff)
		}
	})
}

// Twenty changes a second, each of which the secondary has a moment after the primary.
func TestZoneStatusDoesNotTellOfEachChangeThatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced(t)
		servers := func(arrived bool) func(*SyncCompleted) {
			return func(e *SyncCompleted) { e.Servers = []ServerOutcome{{Current: true}, {Current: arrived}} }
		}
		const seconds = 5
		for serial := range uint32(20 * seconds) {
			p.pass(serial+1, servers(false))
			sleep(20 * time.Millisecond)
			p.pass(serial+1, servers(true))
			sleep(30 * time.Millisecond)
		}
		sleep(time.Minute)
		if n := len(p.writes); n > seconds+2 {
			t.Errorf("%d writes in %d seconds", n, seconds)
		}
		if last := p.writes[len(p.writes)-1]; last.Serial != 20*seconds || !p.verdicts.Ready.Holds() || p.verdicts.Progressing.Holds() {
			t.Errorf("the last write is %+v: %+v", last, p.verdicts)
		}
		p.pass(1000, servers(false))
		before := len(p.writes)
		sleep(500 * time.Millisecond)
		p.pass(1000, servers(true))
		if n := len(p.writes) - before; n != 1 || p.verdicts.Progressing.Holds() {
			t.Errorf("that a change has arrived everywhere is not told at once: %d writes, %+v", n, p.verdicts)
		}
	})
}

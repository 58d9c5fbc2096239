package statuswriter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// note is one call of an outbox's writer.
type note struct {
	Key  source.ObjectKey
	Zone string
	At   time.Duration
}

// desk runs an outbox whose writer notes what it is given and then does what answer says.
type desk struct {
	*statusQueue
	mu    sync.Mutex
	began time.Time
	notes []note
	depth int
}

func newDesk(t *testing.T, writers int, answer func(ctx context.Context, n note) (time.Duration, error)) *desk {
	t.Helper()
	d := &desk{began: time.Now()}
	d.statusQueue = newStatusQueue(func(ctx context.Context, key source.ObjectKey, n statusTask) (time.Duration, error) {
		this := note{Key: key, Zone: n.zone.Name, At: time.Since(d.began)}
		d.mu.Lock()
		d.notes = append(d.notes, this)
		d.mu.Unlock()
		return answer(ctx, this)
	}, func(n int) { d.depth = n })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.run(ctx, writers) }()
	t.Cleanup(func() { stop(); <-done })
	return d
}

func (d *desk) written() []note {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]note(nil), d.notes...)
}

func key(name string) source.ObjectKey {
	return source.ObjectKey{Kind: "ARecord", Namespace: "team", Name: name}
}

func of(zone string) statusTask {
	return statusTask{zone: client.ObjectKey{Namespace: "team", Name: zone}}
}

func TestOutboxWritesTheLatestNewsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1, func(context.Context, note) (time.Duration, error) { time.Sleep(time.Second); return 0, nil })
		d.add(of("busy"), 0, key("first"))
		synctest.Wait()
		for _, zone := range []string{"one", "two", "three"} {
			d.add(of(zone), 0, key("www"))
		}
		time.Sleep(time.Minute)
		want := []note{{key("first"), "busy", 0}, {key("www"), "three", time.Second}}
		if diff := cmp.Diff(want, d.written()); diff != "" {
			t.Error(diff)
		}
		if d.depth != 0 {
			t.Errorf("%d objects are left", d.depth)
		}
	})
}

func TestOutboxLosesNoNewsThatComeWhileItWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 2, func(context.Context, note) (time.Duration, error) { time.Sleep(time.Second); return 0, nil })
		d.add(of("old"), 0, key("www"))
		time.Sleep(time.Second / 2)
		d.add(of("new"), 0, key("www"))
		time.Sleep(time.Minute)
		want := []note{{key("www"), "old", 0}, {key("www"), "new", time.Second}}
		if diff := cmp.Diff(want, d.written()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOutboxTriesForEverWithNewerNewsWhenThereAreAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var works atomic.Bool
		d := newDesk(t, 1, func(context.Context, note) (time.Duration, error) {
			if !works.Load() {
				return 0, errors.New("down")
			}
			return 0, nil
		})
		d.add(of("old"), 0, key("www"))
		time.Sleep(30 * time.Minute)
		tries := len(d.written())
		if tries < 30 || tries > 60 {
			t.Errorf("%d tries in half an hour; want them to go on, at most one a minute in the end", tries)
		}
		d.add(of("new"), 0, key("www"))
		synctest.Wait()
		works.Store(true)
		time.Sleep(2 * time.Minute)
		all := d.written()
		if last := all[len(all)-1]; last.Zone != "new" || d.depth != 0 {
			t.Errorf("the last write was of %+v; %d objects are left", last, d.depth)
		}
	})
}

// Newer news that come while older ones fail must not be overwritten by those when they are put back.
// A write that gets no answer is given up, and done again: its worker is free meanwhile.
func TestOutboxGivesUpAWriteWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Bool
		d := newDesk(t, 1, func(ctx context.Context, n note) (time.Duration, error) {
			if n.Key == key("a") && !lost.Swap(true) {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 0, nil
		})
		d.add(of("1"), 0, key("a"))
		synctest.Wait()
		d.add(of("1"), 0, key("b"))
		time.Sleep(writeTimeout + firstRetry)
		want := []note{{key("a"), "1", 0}, {key("b"), "1", writeTimeout}, {key("a"), "1", writeTimeout + firstRetry}}
		if diff := cmp.Diff(want, d.written()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOutboxPrefersNewsThatCameDuringAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1, func(_ context.Context, n note) (time.Duration, error) {
			time.Sleep(time.Second)
			if n.Zone == "old" {
				return 0, errors.New("down")
			}
			return 0, nil
		})
		d.add(of("old"), 0, key("www"))
		time.Sleep(time.Second / 2)
		d.add(of("new"), 0, key("www"))
		time.Sleep(time.Hour)
		if all := d.written(); len(all) != 2 || all[1].Zone != "new" {
			t.Errorf("wrote %+v", all)
		}
	})
}

func TestOutboxServesWhatPeopleWaitForFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1, func(context.Context, note) (time.Duration, error) { time.Sleep(time.Second); return 0, nil })
		d.add(of("large"), lowPriority, key("a"), key("b"), key("c"))
		synctest.Wait()
		d.add(of("small"), 0, key("www"))
		time.Sleep(time.Minute)
		if all := d.written(); len(all) != 4 || all[1].Key != key("www") {
			t.Errorf("wrote %+v", all)
		}
	})
}

// Whoever changes one object waits for no more than what is being written, however many objects of another namespace wait, of a
// burst or because their zone is looked at. What waits longest in that namespace is written meanwhile.
func TestBurstOfANamespaceDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1, func(context.Context, note) (time.Duration, error) { time.Sleep(time.Second); return 0, nil })
		for i := range 200 {
			d.add(of("zone"), 0, key(fmt.Sprint("one-", i)))
		}
		var many []source.ObjectKey
		for i := range 200 {
			many = append(many, key(fmt.Sprint("many-", i)))
		}
		d.add(of("zone"), 0, many...)
		d.add(of("zone"), lowPriority, key("looked at"))
		time.Sleep(100*time.Second + time.Second/2)
		other := source.ObjectKey{Kind: "ARecord", Namespace: "other", Name: "www"}
		d.add(of("their zone"), 0, other)
		time.Sleep(10 * time.Minute)
		all := d.written()
		if len(all) != 402 || d.depth != 0 || len(d.waiting) != 0 {
			t.Fatalf("%d writes, %d objects are left, and %v", len(all), d.depth, d.waiting)
		}
		if all[101].Key != other || all[401].Key != key("looked at") {
			t.Errorf("the object that changed alone was written at %v, what nobody waits for at %v", all[101], all[401])
		}
		for i, n := range all[:101] {
			if n.Key != key(fmt.Sprint("one-", i)) {
				t.Fatalf("write %d is of %s", i, n.Key)
			}
		}
	})
}

// What somebody has overwritten is put right soon, however many objects of another namespace wait. A namespace of which many were
// overwritten makes no other wait.
func TestCorrectionWaitsForNoOtherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1, func(context.Context, note) (time.Duration, error) { time.Sleep(time.Second); return 0, nil })
		for i := range 200 {
			d.addAfter(time.Second, of("zone"), key(fmt.Sprint(i)))
		}
		time.Sleep(60*time.Second + time.Second/2) // Those that count as few are written by then.
		other := source.ObjectKey{Kind: "ARecord", Namespace: "other", Name: "www"}
		d.addAfter(time.Second, of("their zone"), other)
		time.Sleep(10 * time.Minute)
		all := d.written()
		if at := slices.IndexFunc(all, func(n note) bool { return n.Key == other }); len(all) != 201 || at < 60 || at > 62 {
			t.Errorf("%d writes, that of the other namespace at %d", len(all), at)
		}
	})
}

// Creations that come in all the time are not slowed down by many writers; these come when it is over. What is deleted does not wait.
func TestOneWriterDuringABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 16, func(context.Context, note) (time.Duration, error) { time.Sleep(time.Second); return 0, nil })
		count := 0
		add := func(n int, task statusTask) {
			for range n {
				d.add(task, 0, key(fmt.Sprint(count)))
				count++
			}
		}
		for range 100 { // 300 objects a second for ten seconds.
			add(30, of("zone"))
			time.Sleep(100 * time.Millisecond)
		}
		during := len(d.written())
		time.Sleep(time.Second)
		before := len(d.written())
		time.Sleep(10 * time.Second)
		after := len(d.written()) - before
		if during > 16+2*10 || during < 10 || after != 10*16 {
			t.Errorf("%d writes in ten seconds during the burst, %d in ten seconds after it", during, after)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 16, func(context.Context, note) (time.Duration, error) { time.Sleep(time.Second); return 0, nil })
		gone := of("zone")
		gone.released = true
		for i := range 100 {
			for j := range 30 {
				d.add(gone, 0, key(fmt.Sprint(i, "-", j)))
			}
			time.Sleep(100 * time.Millisecond)
		}
		if during := len(d.written()); during < 10*16 {
			t.Errorf("%d releases in ten seconds", during)
		}
	})
}

func TestOutboxWritesNothingAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		writes := 0
		b := newStatusQueue(func(context.Context, source.ObjectKey, statusTask) (time.Duration, error) { writes++; return 0, nil }, func(int) {})
		done := make(chan struct{})
		go func() { b.run(ctx, 8); close(done) }()
		synctest.Wait()
		stop()
		<-done
		b.add(of("zone"), 0, key("www"))
		time.Sleep(time.Minute)
		if writes != 0 {
			t.Errorf("%d writes after the end", writes)
		}
	})
}

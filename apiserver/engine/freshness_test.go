package engine

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/wire"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// A list may use answers from before it was asked for, never such from before the declaration was as it is.
func TestListUsesNoAnswerOlderThanTheDeclaration(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxAge, o.Deadline = time.Hour, time.Minute })
	primary, secondary := lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	r := w.record(z, "www", "192.0.2.7")
	w.apply(z)
	w.apply(r)
	var last *syncv1.SyncStatus
	listed := func() bool {
		for _, s := range w.list(Query{Namespace: ns}).Items {
			if s.Name == "arecord.www" {
				last = &s
			}
		}
		return last != nil && last.Generation == r.Generation && len(last.Servers) == 2
	}
	w.eventually("it is in step", func() bool { return states(w.get("arecord.www")) == allInStep })
	w.eventually("it is listed", listed)
	before := last.ObservedAt
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	w.level(primary, secondary, "example.test.")
	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.programmed(z, r)
	w.apply(r)
	w.eventually("the new declaration is listed", listed)
	if got := states(last); got != allInStep || !last.ObservedAt.After(before.Time) {
		t.Errorf("%s, observed at %v: by answers to an older declaration, at %v", got, last.ObservedAt, before)
	}
}

// A transfer key that a server does not take any more is read again, however young it is.
func TestRefusedKeyIsReadAgain(t *testing.T) {
	w := newWorld(t)
	lagging(t, w, bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7"})
	var renewed atomic.Bool
	old := bind.NewKey(w.key.Name)
	w.engine.keys = tsigkey.NewCache(func(context.Context, types.NamespacedName) (*wire.Key, error) {
		if renewed.Load() {
			return &w.key, nil
		}
		return &old, nil
	}, time.Hour) // None is read again for being old.
	z := zone("example.test", "primary", "secondary")
	w.apply(z)
	w.apply(w.record(z, "www", "192.0.2.7"))
	w.eventually("both refuse the old key", func() bool {
		return states(w.get("arecord.www")) == "OutOfSync primary-0=Refused secondary-0=Refused"
	})
	renewed.Store(true)
	w.eventually("both take the new key", func() bool { return states(w.get("arecord.www")) == allInStep })
}

func TestLate(t *testing.T) {
	var l late
	server := netip.MustParseAddrPort("192.0.2.1:53")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	for i, step := range []struct {
		behind bool
		at     int
		since  int // below 0 for never
	}{
		{false, 0, -1}, {true, 1, 1}, {true, 5, 1}, {true, 0, 0}, {false, 6, -1}, {true, 7, 7},
		{true, 60, 7}, {true, 119, 7}, {true, 300, 300}, // Nobody has looked for hours: it may have caught up in between.
	} {
		got, want := l.note(server, "a.", step.behind, at(step.at)), time.Time{}
		if step.since >= 0 {
			want = at(step.since)
		}
		if !got.Equal(want) {
			t.Errorf("step %d: behind since %v, want %v", i, got, want)
		}
	}
	if got := l.note(server, "b.", true, at(301)); !got.Equal(at(301)) {
		t.Errorf("another zone is behind since %v", got)
	}
}

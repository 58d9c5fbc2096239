package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/wire"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// TestKeysAreReadInTime: a transfer that begins with a key ends before the servers drop it, however late it was read.
func TestKeysAreReadInTime(t *testing.T) {
	if keyMaxAge+30*time.Second > named.KeyGrace {
		t.Errorf("a key is used for %s and accepted for %s more", keyMaxAge, named.KeyGrace)
	}
}

// A server that refuses a key is asked with the one that has taken its place, long before the old one is read anew as a
// matter of course.
func TestReplacedKeyIsReadAtOnce(t *testing.T) {
	w := newWorld(t)
	var secret atomic.Pointer[wire.Key]
	secret.Store(new(w.key))
	w.engine.keys = tsigkey.NewCache(func(context.Context, types.NamespacedName) (*wire.Key, error) { return secret.Load(), nil }, time.Hour)
	zones := []bind.Zone{{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"}}
	primary := bind.Start(t, bind.Options{Zones: zones, Transfer: w.key})
	w.server("primary", v1beta1.RolePrimary, primary.Addr)
	z := zone("example.test", "primary")
	w.apply(z)
	w.apply(w.record(z, "www", "192.0.2.7"))
	w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync })

	primary.Stop()
	next := bind.NewKey("transfer.")
	zones[0].Serial = 11
	bind.Start(t, bind.Options{Addr: primary.Addr, Zones: zones, Transfer: next})
	secret.Store(&next)
	w.eventually("the content is there again", func() bool {
		s := w.get("arecord.www")
		return s.Status.InSync && *s.Servers[0].Serial == 11
	})
}

// While its key cannot be read a server is not asked without one: what it refuses then would be told to others, too.
func TestSlowKeyIsNoKey(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxAge, o.Deadline = time.Hour, 500*time.Millisecond })
	primary := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Serial: 10}}, Transfer: w.key})
	w.server("primary", v1beta1.RolePrimary, primary.Addr)
	w.apply(zone("example.test", "primary"))
	w.eventually("the zone is there", func() bool { return len(w.engine.candidates(everythingIn(ns))) == 2 })
	readable := make(chan struct{})
	w.engine.keys = tsigkey.NewCache(func(context.Context, types.NamespacedName) (*wire.Key, error) {
		<-readable
		return &w.key, nil
	}, time.Hour)
	zones := Query{Namespace: ns, Fields: everyZone}
	for _, s := range w.list(zones).Items {
		if got, want := states(&s), "Unknown primary-0=Unreachable"; got != want {
			t.Errorf("without a key: %s, want %s", got, want)
		}
	}
	close(readable)
	w.eventually("it is asked with its key", func() bool {
		l := w.list(zones)
		return len(l.Items) == 1 && l.Items[0].Status.InSync
	})
}

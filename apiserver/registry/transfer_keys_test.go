package registry

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// A server that refuses a key is asked with the one that has taken its place, long before the old one is read anew as a
// matter of course.
func TestReplacedKeyIsReadAtOnce(t *testing.T) {
	var secret atomic.Pointer[wire.Key]
	w := newWorld(t, func(o *testOptions) {
		o.readKey = func(context.Context, types.NamespacedName) (*wire.Key, error) { return secret.Load(), nil }
	})
	secret.Store(new(w.Key))
	zones := []bind.Zone{{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"}}
	primary := bind.Start(t, bind.Options{Zones: zones, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	z := fakekube.Zone("example.test", "primary")
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.7"))
	w.Eventually("it is in sync", func() bool { return w.get("arecord.www").Status.InSync })

	primary.Stop()
	next := bind.NewKey("transfer.")
	zones[0].Serial = 11
	bind.Start(t, bind.Options{Addr: primary.Addr, Zones: zones, Transfer: next})
	secret.Store(&next)
	w.Eventually("the content is there again", func() bool {
		s := w.get("arecord.www")
		return s.Status.InSync && *s.Servers[0].Serial == 11
	})
}

// A server that wants a key which cannot be read refuses nothing that it should allow: the row says what is wrong here.
func TestUnreadableKeyIsNoRefusal(t *testing.T) {
	c := fakekube.New(t)
	w := newReplica(c, func(o *testOptions) {
		o.readKey = func(context.Context, types.NamespacedName) (*wire.Key, error) { return nil, errors.New("forbidden") }
	})
	primary := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"}}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	z := fakekube.Zone("example.test", "primary")
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.7"))
	w.Eventually("it has been asked", func() bool { s := w.get("arecord.www"); return len(s.Servers) == 1 && s.Servers[0].Serial != nil })
	s := w.get("arecord.www")
	if got, want := states(s), "Unknown primary-0=Unreachable"; got != want || !strings.Contains(s.Servers[0].Message, "transfer key cannot be read") {
		t.Errorf("%s, want %s: %s", got, want, s.Servers[0].Message)
	}
}

// While its key cannot be read a server is not asked without one: others would share its refusal. What was not answered is not in sync, for an
// instance neither.
func TestSlowKeyIsNoKey(t *testing.T) {
	c, readable := fakekube.New(t), make(chan struct{})
	w := newReplica(c, func(o *testOptions) {
		o.MaxAge, o.Deadline = time.Hour, 500*time.Millisecond
		o.readKey = func(context.Context, types.NamespacedName) (*wire.Key, error) {
			<-readable
			return &c.Key, nil
		}
	})
	primary := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Serial: 10}}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	w.Apply(fakekube.Zone("example.test", "primary"))
	w.Eventually("the zone is there", func() bool { return len(w.verdicts.candidates(everythingIn(ns))) == 2 })
	if s := w.get("bind9instance.primary"); s.Status.InSync || s.Servers[0].Zones == nil || s.Servers[0].Zones.OutOfSync != 1 {
		t.Errorf("an instance without an answer about its zone: %s %+v", states(s), s.Servers[0])
	}
	zones := query{namespace: ns, fields: everyZone}
	for _, s := range w.list(zones).Items {
		if got, want := states(&s), "Unknown primary-0=Unreachable"; got != want {
			t.Errorf("without a key: %s, want %s", got, want)
		}
	}
	close(readable)
	w.Eventually("it is asked with its key", func() bool {
		l := w.list(zones)
		return len(l.Items) == 1 && l.Items[0].Status.InSync
	})
}

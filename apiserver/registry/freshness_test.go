package registry

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// A list may use answers from before it was asked for, never such from before the declaration was as it is.
func TestListUsesNoAnswerOlderThanTheDeclaration(t *testing.T) {
	w := newWorld(t, func(o *testOptions) { o.MaxAge, o.Deadline = time.Hour, time.Minute })
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z, r := w.Declare("www")
	var last *syncv1.SyncStatus
	listed := func() bool {
		for _, s := range w.list(query{namespace: ns}).Items {
			if s.Name == "arecord.www" {
				last = &s
			}
		}
		return last != nil && last.Generation == r.Generation && len(last.Servers) == 2
	}
	w.Eventually("it is in sync", func() bool { return states(w.get("arecord.www")) == allInStep })
	w.Eventually("it is listed", listed)
	before := last.ObservedAt
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	w.level(primary, secondary, "example.test.")
	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.SetProgrammed(z, r)
	w.Apply(r)
	w.Eventually("the new declaration is listed", listed)
	if got := states(last); got != allInStep || !last.ObservedAt.After(before.Time) {
		t.Errorf("%s, observed at %v: by answers to an older declaration, at %v", got, last.ObservedAt, before)
	}
}

// A transfer key that a server does not take any more is read again, however young it is.
func TestRefusedKeyIsReadAgain(t *testing.T) {
	c := fakekube.New(t)
	var renewed atomic.Bool
	old := bind.NewKey(c.Key.Name)
	w := newReplica(c, func(o *testOptions) {
		o.readKey = func(context.Context, types.NamespacedName) (*wire.Key, error) {
			if renewed.Load() {
				return &c.Key, nil
			}
			return &old, nil
		}
	})
	w.Lagging(bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7"})
	w.Declare("www")
	w.Eventually("both refuse the old key", func() bool {
		return states(w.get("arecord.www")) == "OutOfSync primary-0=Refused secondary-0=Refused"
	})
	renewed.Store(true)
	w.Eventually("both take the new key", func() bool { return states(w.get("arecord.www")) == allInStep })
}

package apply

import (
	"context"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// shelf returns the same object for every key.
type shelf struct {
	client.Client
	object *v1beta1.ARecord
}

func (s *shelf) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	out := reflect.ValueOf(into).Elem()
	if !out.IsZero() && s.object.Status.Zone == "live" {
		panic("decoding would mix two objects")
	}
	out.Set(reflect.ValueOf(s.object.DeepCopy()).Elem())
	return nil
}

func record(version, zone string) *v1beta1.ARecord {
	r := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{UID: "a", ResourceVersion: version}}
	r.Status.Zone = zone
	return r
}

// A cache that has not seen the client's own write does not decide what is written next.
func TestGetIsNeverOlderThanOwnWrites(t *testing.T) {
	for name, c := range map[string]struct{ cached, written, want string }{
		"nothing was written":                    {cached: "9", written: "", want: "cached"},
		"the cache has not seen the write":       {cached: "9", written: "10", want: "live"},
		"the cache has the write":                {cached: "10", written: "10", want: "cached"},
		"somebody else changed the object since": {cached: "11", written: "10", want: "cached"},
	} {
		current := &currentClient{
			Client: &shelf{object: record(c.cached, "cached")}, live: &shelf{object: record("12", "live")},
			writes: &ownWrites{now: time.Now},
		}
		if c.written != "" {
			current.writes.record(record(c.written, ""))
		}
		var got v1beta1.ARecord
		if err := current.Get(t.Context(), client.ObjectKey{}, &got); err != nil || got.Status.Zone != c.want {
			t.Errorf("%s: the object is %q (%v), want the %s one", name, got.Status.Zone, err, c.want)
		}
	}
}

func TestOwnWritesAreForgottenInTheEnd(t *testing.T) {
	now := time.Now()
	w := &ownWrites{now: func() time.Time { return now }}
	w.record(record("10", ""))
	for _, pass := range []struct {
		after    time.Duration
		outdated bool
	}{{writeMemory, true}, {writeMemory, false}} {
		now = now.Add(pass.after)
		other := record("20", "")
		other.UID = types.UID("other")
		w.record(other)
		if got := w.isOutdated(record("9", "")); got != pass.outdated {
			t.Errorf("remembered: %v, want %v", got, pass.outdated)
		}
	}
	if _, known := w.former["a"]; known {
		t.Error("a write is remembered for ever")
	}
}

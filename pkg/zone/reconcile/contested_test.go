package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// overwrite replaces the addresses at a name by those of another writer.
func (r *rig) overwrite(name string, addresses ...string) {
	r.t.Helper()
	m := new(dns.Msg)
	m.SetUpdate(rigZone)
	rr := &dns.A{Hdr: dns.RR_Header{Name: name + "." + rigZone, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}}
	m.RemoveRRset([]dns.RR{rr})
	for _, address := range addresses {
		added, err := dns.NewRR(rr.Hdr.Name + " 60 A " + address)
		if err != nil {
			r.t.Fatal(err)
		}
		m.Insert([]dns.RR{added})
	}
	r.update(0, m)
}

// What somebody else overwrites again and again is corrected less and less often, and said to be contested. That delays no other name, and
// ends when what is declared is what is there.
func TestContested(t *testing.T) {
	for name, test := range map[string]struct {
		newRig func(testing.TB) *rig
		atOnce int
	}{
		"shared": {func(t testing.TB) *rig { r, _ := newSharedRig(t, ""); return r }, 3},
		"ours":   {func(t testing.TB) *rig { return newRig(t, 1, bind.Zone{}) }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.newRig(t)
			r.zones.Set(r.a("www", 1, "192.0.2.1"))
			r.zones.Set(r.a("mail", 1, "192.0.2.2"))
			r.pass()
			for range test.atOnce {
				r.overwrite("www", "198.51.100.1")
				p := r.mustSync()
				if r.holds("www", "192.0.2.1"); p.event.Drift != 1 || len(p.event.Contested) > 0 {
					t.Errorf("drift %d, contested %q", p.event.Drift, p.event.Contested)
				}
				backoff := workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]()
				if after := requeueAfter(p, backoff, ctrl.Request{}); after > 2*time.Second {
					t.Errorf("the server is looked at again after %s", after)
				}
			}
			r.overwrite("www", "192.0.2.1", "198.51.100.2")
			r.overwrite("mail", "198.51.100.3")
			key := rrset.Key{Name: "www." + rigZone, Type: dns.TypeA}
			for range 2 {
				p := r.pass()
				why := p.event.Unprogrammed[key]
				if len(p.event.Unprogrammed) != 1 || why.Reason != status.Contested || len(p.event.Contested) != 1 || p.event.Contested[0] != why.Message {
					t.Errorf("contested %q, unprogrammed %v", p.event.Contested, p.event.Unprogrammed)
				}
				for _, words := range []string{"overwritten www.example.test. A on ", fmt.Sprintf(" %d times since ", test.atOnce+1), "the last time with 198.51.100.2, 192.0.2.1 (who is not known", "corrected again after"} {
					if !strings.Contains(why.Message, words) {
						t.Errorf("%q lacks %q", why.Message, words)
					}
				}
				r.holds("www", "192.0.2.1", "198.51.100.2")
				r.holds("mail", "192.0.2.2")
			}
			r.zones.Set(r.a("www", 2, "198.51.100.2"))
			// The address of the second generation is the other writer's.
			if p := r.pass(); len(p.event.Unprogrammed)+len(p.event.Contested) > 0 {
				t.Errorf("contested %q, unprogrammed %v", p.event.Contested, p.event.Unprogrammed)
			}
		})
	}
}

// A writer that overwrites each correction at once has few of them to overwrite.
func TestWriterThatNeverGivesUp(t *testing.T) {
	r, outside := newSharedRig(t, "")
	r.zones.Set(r.a("www", 1, "192.0.2.1"))
	r.mustSync()
	key := rrset.Key{Name: "www." + rigZone, Type: dns.TypeA}
	ctx, stop := context.WithCancel(t.Context())
	var overwritten atomic.Int32
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if set, _ := r.look(outside).Get(key); slices.Equal(set.Rdata, []string{"192.0.2.1"}) {
				overwritten.Add(1) // Before a pass may see it.
				r.overwrite("www", "198.51.100.1")
			}
		}
	}()
	defer func() { stop(); <-ended }()
	await := func(what, count string) {
		t.Helper()
		for began := time.Now(); ; {
			p := r.pass()
			if len(p.event.Contested) > 0 && p.event.Unprogrammed[key].Reason == status.Contested && strings.Contains(p.event.Contested[0], count) {
				return
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("%s: %q", what, p.event.Contested)
			}
		}
	}
	await("it is not found out", " 4 times ")
	if n := overwritten.Load(); n != 4 {
		t.Errorf("%d corrections were overwritten before they were paused", n)
	}
	await("a correction after a pause is not seen to be overwritten", " 5 times ")
}

package reconcile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/zone/unreachable"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// named holds 100 types at a name, and refuses one more until somebody takes one away.
func TestWhatWasRefusedIsServedSoonAfterItBecamePossible(t *testing.T) {
	var full strings.Builder
	fmt.Fprintln(&full, "full A 192.0.2.1")
	for n := range 99 {
		fmt.Fprintf(&full, "full TYPE%d \\# 1 00\n", 65280+n)
	}
	r := newRig(t, 1, bind.Zone{Records: full.String()})
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval)
	now := time.Now()
	r.now = func() time.Time { return now }
	text := &v1beta1.TXTRecord{ObjectMeta: r.a("text", 1, "192.0.2.1").ObjectMeta}
	text.Spec.Name, text.Spec.Text = "full", []string{"hello"}
	r.zones.Set(text)
	key := rrset.Key{Name: "full." + rigZone, Type: dns.TypeTXT}
	isRefused := func(p passResult) bool { _, refused := p.event.Unprogrammed[key]; return refused }
	p := r.pass()
	if !isRefused(p) {
		t.Fatalf("the server takes a name's 101st type, the test needs another refusal; or the pass fails: %+v", p.event)
	}
	serial := p.event.Serial
	for began := now; now.Sub(began) < time.Hour; now = now.Add(10 * time.Minute) {
		if p = r.pass(); p.event.Serial != serial || len(p.event.Unprogrammed) != 1 {
			t.Fatalf("a try costs serials: %d after %d, unprogrammed %v", p.event.Serial, serial, p.event.Unprogrammed)
		}
	}
	text = text.DeepCopy()
	text.Generation++
	text.Spec.Text[0] = "world"
	r.zones.Set(text)
	p = r.pass()
	r.byHand(0, "full", "")
	if got := served(t, r.primary[0], "full"); len(got) > 0 {
		t.Fatalf("there is no place for another type yet: %v", got)
	}
	for began := now; isRefused(p); p = r.pass() {
		if now = now.Add(requeueAfter(p, backoff, inventory.RequestFor(r.zone))); now.Sub(began) > 4*time.Second {
			t.Fatalf("the pass after %s comes too late: %v", now.Sub(began), p.event.Unprogrammed)
		}
	}
	if set, _ := r.look(r.primary[0]).Get(key); !slices.Equal(set.Rdata, []string{`"world"`}) {
		t.Errorf("not refused, and not served: %v", set)
	}
}

// A server that can write nothing fails at an RRset that it is sent alone as it does at one that it does not take. The RRset is not
// to blame, the next try comes soon, and the server's answer is a failure of the zone only if it lasts.
func TestServerThatCannotWriteIsToBlame(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	now := time.Now()
	r.now = func() time.Time { return now }
	r.pass()
	journal := filepath.Join(r.primary[0].Dir, "example.test.zone.jnl")
	r.rndc("sync", "-clean", "example.test")
	if err := os.Mkdir(journal, 0o700); err != nil { // As good as a full disk: no journal can be written.
		t.Fatal(err)
	}
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	recoveries := &recoveries{enqueue: func(membership.ZoneKey) {}}
	for began := now; now.Sub(began) < 2*answerGrace; {
		p := r.pass()
		if p.event.Programmed.Reason != status.PrimaryFailed || !strings.Contains(p.event.Programmed.Message, "SERVFAIL") || len(p.event.Unprogrammed) > 0 {
			t.Fatalf("the problem is %+v, unprogrammed %v", p.event.Programmed, p.event.Unprogrammed)
		}
		if lasts := now.Sub(began) >= answerGrace; lasts != (p.event.Failure.Reason == "ServFail") || !lasts && p.event.Failure.Reason != "" {
			t.Fatalf("after %s, the failure is %+v", now.Sub(began), p.event.Failure)
		}
		leads, _ := recoveries.record(membership.KeyOfZone(r.zone), p.event.Servers, now)
		pause := leadPause(leads, p.event)
		if !about(pause, leadInterval) {
			t.Fatalf("the next pass is after %s", pause)
		}
		now = now.Add(pause)
	}
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	if p := r.pass(); !p.event.Programmed.Holds() || p.event.Failure.Reason != "" || len(p.event.Unprogrammed) > 0 {
		t.Errorf("after it can write: %+v, %v", p.event.Programmed, p.event.Unprogrammed)
	}
	r.holds("www", "192.0.2.10")
}

// skewed asks servers as a controller does whose clock is an hour slow.
type skewed struct {
	dnsClient
	t *testing.T
}

func (s skewed) Serial(_ context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key) observe.Observation {
	m := new(dns.Msg)
	m.SetQuestion(zone.Name, dns.TypeSOA)
	m.SetTsig(key.Name, key.Algorithm, 300, time.Now().Add(-time.Hour).Unix())
	asker := dns.Client{TsigSecret: map[string]string{key.Name: key.Secret}}
	reply, _, _ := asker.Exchange(m, at.Addr.String())
	if reply == nil || reply.IsTsig() == nil {
		s.t.Fatalf("no signed answer: %v", reply)
	}
	err := &wire.Error{Op: "query", Server: at.Addr.String(), Zone: zone.Name, Rcode: reply.Rcode, TSIGError: reply.IsTsig().Error}
	return observe.Observation{Server: at.Addr, At: time.Now(), Authoritative: true, Unverified: true, Err: err}
}

func (s skewed) Observe(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key) observe.Observation {
	return s.Serial(ctx, at, zone, key)
}

// elsewhere updates a zone that a server does not have, as it is for a key that a view keeps from it.
type elsewhere struct{ updateClient }

func (e elsewhere) Apply(ctx context.Context, to rfc2136.Target, changes plan.Changes, have, want rrset.SOA) (rfc2136.Result, error) {
	to.Zone = "elsewhere.test."
	return e.updateClient.Apply(ctx, to, changes, have, want)
}

// Clocks that differ are a failure of the zone at once, an answer that may pass by itself when it lasts. Both are tried again soon.
func TestPassReportsAnswersThatDoNotPass(t *testing.T) {
	for name, c := range map[string]struct {
		spoil         func(*rig)
		reason, words string
		atOnce        bool
	}{
		"clocks that differ": {func(r *rig) { r.dns = skewed{r.dns, t} }, "BadTime", "BADTIME: the server's clock differs from ours by more than five minutes; set the clocks", true},
		"a view":             {func(r *rig) { r.updates = elsewhere{r.updates} }, "NotLoaded", "answered NOTAUTH: the server does not host the zone or has not loaded it; see that no view", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, bind.Zone{})
			now := time.Now()
			r.now = func() time.Time { return now }
			sound := r.edges
			readKeys := func() { // A pass forgets keys that a server refused.
				for i, server := range []*bind.Server{r.primary[0], r.secondary} {
					r.keys.Set(keyrotation.UpdateKeySecret(r.scope.instances[i]), &server.Update)
					r.keys.Set(keyrotation.TransferKeySecret(r.scope.instances[i]), &server.Transfer)
				}
			}
			c.spoil(r)
			backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstInterval, lastInterval)
			for began := now; now.Sub(began) <= 2*answerGrace; now = now.Add(answerGrace) {
				r.zones.Set(r.a("www", now.Unix(), "192.0.2.10"))
				readKeys()
				p := r.pass()
				failure, lasts := p.event.Failure, c.atOnce || now.After(began)
				if lasts && (failure.Reason != c.reason || !strings.Contains(failure.Message, c.words)) || !lasts && failure.Reason != "" {
					t.Errorf("after %s: failure %+v, problem %+v", now.Sub(began), failure, p.event.Programmed)
				}
				if pause := requeueAfter(p, backoff, inventory.RequestFor(r.zone)); pause > 2*time.Second {
					t.Errorf("the next pass is after %s", pause)
				}
			}
			r.edges = sound
			r.now = time.Now
			readKeys()
			if p := r.pass(); p.event.Failure.Reason != "" || !p.event.Programmed.Holds() {
				t.Errorf("after it is over: %+v", p.event.Programmed)
			}
		})
	}
}

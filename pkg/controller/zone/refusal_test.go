package zone

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

func TestWhatIsRefusedIsTriedLessAndLessOften(t *testing.T) {
	key := rrset.Key{Name: "www.example.test.", Type: dns.TypeA}
	wanting := func(address string) plan.Changes {
		return plan.Changes{Create: []rrset.RRset{{Key: key, TTL: 60, Rdata: []string{address}}}}
	}
	no := map[rrset.Key]error{key: errors.New("REFUSED")}
	q := &primary{known: &primaryState{}}
	p := &pass{primaries: []*primary{q}}
	if _, ok := p.nextTry(); ok {
		t.Error("there is a next try although nothing was refused")
	}
	now := time.Unix(1000, 0)
	for want := time.Second; want < 10*time.Minute; want *= 2 {
		q.known.refuse(no, wanting("192.0.2.1"), now)
		p.event.At = now
		next, ok := p.nextTry()
		if !ok || next != min(want, time.Minute) {
			t.Fatalf("the next try is after %s, want %s", next, min(want, time.Minute))
		}
		if q.known.hopeful(wanting("192.0.2.1"), now.Add(next/2)).HasChanges() {
			t.Errorf("it is tried again %s after a refusal, before a pause of %s is over", next/2, next)
		}
		if !q.known.hopeful(wanting("192.0.2.2"), now).HasChanges() {
			t.Error("another value is not tried at once")
		}
		if now = now.Add(next); !q.known.hopeful(wanting("192.0.2.1"), now).HasChanges() {
			t.Errorf("it is not tried again after %s", next)
		}
	}
	q.known.refuse(no, wanting("192.0.2.2"), now)
	p.event.At = now
	if next, _ := p.nextTry(); next != time.Second {
		t.Errorf("another value that is refused is tried again after %s", next)
	}
	q.err = errors.New("no reply")
	if _, ok := p.nextTry(); ok {
		t.Error("a server that is away is to be tried")
	}
	q.known.pardon(func(rrset.Key) bool { return false })
	if len(q.known.refused) > 0 {
		t.Error("a refusal is remembered after nobody wants the RRset any more")
	}
}

// named holds 100 types at a name, and refuses one more until somebody takes one away.
func TestWhatWasRefusedIsServedSoonAfterItBecamePossible(t *testing.T) {
	var full strings.Builder
	fmt.Fprintln(&full, "full A 192.0.2.1")
	for n := range 99 {
		fmt.Fprintf(&full, "full TYPE%d \\# 1 00\n", 65280+n)
	}
	r := newRig(t, 1, bind.Zone{Records: full.String()})
	r.backoff = workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstPause, lastPause)
	now := time.Now()
	r.now = func() time.Time { return now }
	text := &v1beta1.TXTRecord{ObjectMeta: r.a("text", 1, "192.0.2.1").ObjectMeta}
	text.Spec.Name, text.Spec.Text = "full", []string{"hello"}
	r.world.setObject(text)
	key := rrset.Key{Name: "full." + rigZone, Type: dns.TypeTXT}
	p := r.pass()
	if _, refused := p.event.Unprogrammed[key]; !refused {
		t.Fatal("the server takes a name's 101st type: the test needs another refusal")
	}
	r.byHand(0, "full", "")
	for began := now; ; p = r.pass() {
		if _, refused := p.event.Unprogrammed[key]; !refused {
			break
		}
		if now.Sub(began) > 4*time.Second {
			t.Fatalf("after %s it is still not served: %v", now.Sub(began), p.event.Unprogrammed)
		}
		now = now.Add(p.idle(fleet.RequestFor(r.zone)))
	}
}

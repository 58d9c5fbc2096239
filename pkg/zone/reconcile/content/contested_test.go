package content

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
)

func TestPausesOfAContestedRRset(t *testing.T) {
	key := rrset.Key{Name: "www.example.test.", Type: dns.TypeA}
	want := rrset.RRset{Key: key, TTL: 60, Rdata: []string{"192.0.2.1"}}
	other := rrset.RRset{Key: rrset.Key{Name: "mail.example.test.", Type: dns.TypeA}, TTL: 60, Rdata: []string{"192.0.2.2"}}
	theirs := rrset.RRset{Key: key, TTL: 60, Rdata: []string{"198.51.100.1"}}
	lacking := plan.Changes{Create: []rrset.RRset{want, other}}
	p := &Primary{}
	z := &Zone{desired: &source.Zone{RRsets: snapshot.Collect(func(k rrset.Key) uint64 { return uint64(len(k.Name)) }, []snapshot.Entry[rrset.Key, source.RRset]{
		{Key: key, Value: source.RRset{RRset: want}}, {Key: other.Key, Value: source.RRset{RRset: other}},
	})}}
	now := time.Unix(1000, 0)
	for n := 1; n <= 12; n++ {
		for range 2 { // What is seen twice was overwritten once.
			p.NoteOverwritten(want, theirs, ForeignCorrections, now)
		}
		pause := time.Duration(0)
		if n > 3 {
			pause = min(5*time.Second<<(n-4), 5*time.Minute)
		}
		if got := len(p.Sendable(lacking, now).Create); pause > 0 && got != 1 || pause == 0 && got != 2 {
			t.Errorf("%d: %d RRsets are sent", n, got)
		}
		if pause > 0 {
			c := p.Contests(now)
			if len(c) != 1 || c[0].Count != n || c[0].Standing || !c[0].Next.Equal(now.Add(pause)) || !c[0].Seen.Equal(theirs) || !p.IsUnconfirmed(key, now) {
				t.Errorf("%d: %+v", n, c)
			}
			if after, ok := p.NextLook(now); !ok || after != pause {
				t.Errorf("%d: looked at after %s, want %s", n, after, pause)
			}
		}
		if now = now.Add(pause); len(p.Sendable(lacking, now).Create) != 2 {
			t.Errorf("%d: it is not corrected after %s", n, pause)
		}
		p.NoteSent(lacking.Keys(), nil)
		z.NoteStanding(p, plan.Changes{}, now)
		if after, ok := p.NextLook(now); !ok || after != 2*time.Second {
			t.Errorf("%d: looked at after %s", n, after)
		}
	}
	// It stands: it is programmed soon, and settled later.
	if !p.IsUnconfirmed(key, now.Add(9*time.Second)) || p.IsUnconfirmed(key, now.Add(10*time.Second)) {
		t.Error("a correction counts too early, or too late")
	}
	settled := now.Add(10*time.Minute + 30*time.Second)
	if after, _ := p.NextLook(now.Add(time.Minute)); after != settled.Sub(now.Add(time.Minute)) {
		t.Errorf("looked at after %s", after)
	}
	if c := p.Contests(settled.Add(-time.Second)); len(c) != 1 || !c[0].Standing {
		t.Errorf("%+v", c)
	}
	if len(p.Contests(settled)) > 0 || len(p.overwritten) > 0 {
		t.Error("it never settles")
	}
	if _, ok := p.NextLook(settled); ok {
		t.Error("it is looked at for ever")
	}
	p.NoteOverwritten(want, theirs, ForeignCorrections, now)
	p.Contests(now.Add(11 * time.Minute))
	if len(p.overwritten) > 0 {
		t.Error("a single change is never forgotten")
	}
}

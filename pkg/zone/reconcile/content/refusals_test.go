package content

import (
	"errors"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func TestWhatIsRefusedIsTriedLessAndLessOften(t *testing.T) {
	key := rrset.Key{Name: "www.example.test.", Type: dns.TypeA}
	wanting := func(address string) plan.Changes {
		return plan.Changes{Create: []rrset.RRset{{Key: key, TTL: 60, Rdata: []string{address}}}}
	}
	no := map[rrset.Key]error{key: errors.New("REFUSED")}
	p := &Primary{}
	if _, ok := p.NextRetry(time.Unix(1000, 0)); ok {
		t.Error("there is a next try although nothing was refused")
	}
	now := time.Unix(1000, 0)
	for want := time.Second; want < 10*time.Minute; want *= 2 {
		p.Refused(no, wanting("192.0.2.1"), now)
		next, ok := p.NextRetry(now)
		if !ok || next != min(want, time.Minute) {
			t.Fatalf("the next try is after %s, want %s", next, min(want, time.Minute))
		}
		if p.Sendable(wanting("192.0.2.1"), now.Add(next/2)).HasChanges() {
			t.Errorf("it is tried again %s after a refusal, before a pause of %s is over", next/2, next)
		}
		if !p.Sendable(wanting("192.0.2.2"), now).HasChanges() {
			t.Error("another value is not tried at once")
		}
		if now = now.Add(next); !p.Sendable(wanting("192.0.2.1"), now).HasChanges() {
			t.Errorf("it is not tried again after %s", next)
		}
	}
	p.Refused(no, wanting("192.0.2.2"), now)
	if next, _ := p.NextRetry(now); next != time.Second {
		t.Errorf("another value that is refused is tried again after %s", next)
	}
	p.ForgetRefusals(func(rrset.Key) bool { return false })
	if len(p.refused) > 0 {
		t.Error("a refusal is remembered after nobody wants the RRset any more")
	}
}

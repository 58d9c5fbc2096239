package chain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
)

const (
	old     = "1 13 2 0000000000000000000000000000000000000000000000000000000000000001"
	next    = "2 13 2 0000000000000000000000000000000000000000000000000000000000000002"
	foreign = "3 13 2 0000000000000000000000000000000000000000000000000000000000000003"
)

// story is a signed zone with a parent that has two servers, over time.
type story struct {
	t    *testing.T
	last *v1beta1.SecureDelegation
	Facts
}

func begin(t *testing.T) *story {
	s := &story{t: t}
	s.Now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	s.Zone = Zone{Keys: []string{old}, IsWhole: true, TTL: time.Hour}
	s.ParentTTL = 10 * time.Minute
	s.parent(nil, nil)
	return s
}

// parent has its servers answer with these records.
func (s *story) parent(answers ...[]string) {
	p := Parent{UID: "p", Name: "example.com"}
	for _, ds := range answers {
		p.Servers = append(p.Servers, Answer{IsKnown: true, DS: ds, TTL: 10 * time.Minute})
	}
	s.Parents = []Parent{p}
}

// silence has a server of the parent answer nothing.
func (s *story) silence(n int) { s.Parents[0].Servers[n] = Answer{} }

// after decides after a while, and checks what the parent is to have and what the zone says.
func (s *story) after(pause time.Duration, reason string, published ...string) Decision {
	s.t.Helper()
	s.Now = s.Now.Add(pause)
	d := Decide(s.last, s.Facts)
	s.last = d.Delegation
	if got := d.Delegation.Published(); !slices.Equal(got, published) {
		s.t.Fatalf("the parent is to have %v, want %v (%+v)", got, published, d.Delegated)
	}
	if d.Delegated.Reason != reason {
		s.t.Fatalf("it says %+v, want %s", d.Delegated, reason)
	}
	if d.Next <= 0 || d.Next > restInterval && reason != status.DSPending && reason != status.DSWithdrawing && reason != "" {
		s.t.Fatalf("it looks again after %s", d.Next)
	}
	return d
}

// published brings the zone to where all servers have the DS record of its key.
func published(t *testing.T) *story {
	s := begin(t)
	s.after(0, status.DSPending)
	s.after(2*time.Hour, status.DSPending, old)
	s.parent([]string{old}, []string{old})
	if d := s.after(time.Minute, status.DSPublished, old); !slices.Equal(d.Confirm, []string{old}) {
		t.Fatalf("the server that signs is told of %v", d.Confirm)
	}
	Told(s.last, old, true)
	return s
}

func TestRecordsComeAfterTheHighestTTL(t *testing.T) {
	s := begin(t)
	s.Zone.IsWhole = false
	s.after(0, status.DSPending)
	s.after(3*time.Hour, status.DSPending) // Not all servers have it signed: the time has not begun.
	s.Zone.IsWhole = true
	s.after(0, status.DSPending)
	if d := s.after(59*time.Minute, status.DSPending); !strings.Contains(d.Delegated.Message, "16:00:01Z") && !strings.Contains(d.Delegated.Message, "until 2026-11-27T16:") {
		t.Errorf("it says %q", d.Delegated.Message)
	}
	s.after(2*time.Minute, status.DSPending, old)
	s.parent([]string{old}, nil)
	if d := s.after(time.Second, status.DSPending, old); len(d.Confirm) > 0 {
		t.Errorf("one server is enough to tell of %v", d.Confirm)
	}
	s.parent([]string{old}, []string{old})
	s.silence(1)
	if d := s.after(time.Second, status.ParentSilent, old); len(d.Confirm) > 0 {
		t.Errorf("a silent server is enough to tell of %v", d.Confirm)
	}
}

// What was noted while the clock was a year ahead delays nothing by a year.
func TestClockSetBack(t *testing.T) {
	const ahead = 365 * 24 * time.Hour
	s := begin(t)
	s.Now = s.Now.Add(ahead)
	s.after(0, status.DSPending)
	s.after(-ahead, status.DSPending)
	s.after(59*time.Minute, status.DSPending)
	s.after(2*time.Minute, status.DSPending, old)
	s.parent([]string{old}, []string{old})
	s.after(time.Minute, status.DSPublished, old)
	Told(s.last, old, true)
	s.Zone.Ends = true
	s.parent(nil, nil)
	s.after(ahead, status.DSWithdrawing)
	if d := s.after(-ahead, status.DSWithdrawing); d.Delegation.SigningMayEnd {
		t.Fatal("signing ends within the TTL")
	}
	if d := s.after(12*time.Minute, status.DSAbsent); !d.Delegation.SigningMayEnd {
		t.Fatalf("%+v", d)
	}
}

// A server that is silent lacks nothing that anybody knows of.
func TestSilentParent(t *testing.T) {
	s := published(t)
	if d := s.after(0, status.DSPublished, old); !d.BehindSince.IsZero() {
		t.Errorf("behind since %s", d.BehindSince)
	}
	s.silence(1)
	if d := s.after(time.Hour, status.ParentSilent, old); !strings.HasPrefix(d.Delegated.Message, "1 of 2 servers of zone example.com do not answer") || d.Next != lookInterval || !d.BehindSince.IsZero() {
		t.Errorf("%+v since %s, again after %s", d.Delegated, d.BehindSince, d.Next)
	}
	s.parent(nil, nil)
	s.silence(1)
	if d := s.after(time.Hour, status.DSPending, old); d.BehindSince.IsZero() {
		t.Errorf("%+v", d.Delegated)
	}
}

// A roll-over: both keys are served, the server that signs announces the new one, both are told, and there is a DS record of a served key at
// each moment.
func TestRollOver(t *testing.T) {
	s := published(t)
	s.Zone.Announced = []string{old}
	s.Zone.Keys = []string{old, next}
	s.after(0, status.DSPublished, old)
	s.after(2*time.Hour, status.DSPublished, old)
	s.Zone.Announced = []string{next}
	s.after(0, status.DSPending, next)
	s.parent([]string{next}, []string{old})
	if d := s.after(time.Minute, status.DSPending, next); len(d.Confirm)+len(d.Withdraw) > 0 {
		t.Fatalf("told of %v, %v while a server has the old record", d.Confirm, d.Withdraw)
	}
	s.parent([]string{next}, []string{next})
	d := s.after(time.Minute, status.DSPublished, next)
	if !slices.Equal(d.Confirm, []string{next}) || !slices.Equal(d.Withdraw, []string{old}) {
		t.Fatalf("told of %v, %v", d.Confirm, d.Withdraw)
	}
	Told(s.last, next, true)
	Told(s.last, old, false)
	if d = s.after(time.Minute, status.DSPublished, next); len(d.Confirm)+len(d.Withdraw) > 0 {
		t.Fatalf("told again of %v, %v", d.Confirm, d.Withdraw)
	}
	s.Zone.Keys = []string{next}
	s.after(time.Hour, status.DSPublished, next)
	if len(s.last.Keys) != 1 {
		t.Errorf("keys are %v", s.last.Keys)
	}
}

// A new key that is announced before resolvers can have it does not replace the old one.
func TestAnAnnouncedKeyWaits(t *testing.T) {
	s := published(t)
	s.Zone.Keys, s.Zone.Announced = []string{old, next}, []string{next}
	s.after(0, status.DSPublished, old)
	s.after(30*time.Minute, status.DSPublished, old)
	s.after(31*time.Minute, status.DSPending, next)
}

// Without announcements there are records of all keys.
func TestBothKeysWithoutAnnouncement(t *testing.T) {
	s := published(t)
	s.Zone.Keys = []string{old, next}
	s.after(0, status.DSPublished, old)
	s.after(61*time.Minute, status.DSPending, old, next)
}

// A zone that comes back with other keys loses the records of those that nobody has, at once; not while a server still has them.
func TestOtherKeys(t *testing.T) {
	s := published(t)
	s.Zone.Keys, s.Zone.HasOthers, s.Zone.IsWhole = []string{next}, true, false
	s.after(0, status.DSPublished, old)
	s.Zone.HasOthers, s.Zone.IsWhole = false, true
	s.after(time.Minute, status.DSDeclared)
	s.parent(nil, nil)
	s.after(time.Minute, status.DSPending)
	s.after(61*time.Minute, status.DSPending, next)
}

func TestSigningEnds(t *testing.T) {
	s := published(t)
	s.Zone.Ends = true
	s.after(0, status.DSWithdrawing)
	s.after(time.Hour, status.DSWithdrawing) // The parent's servers still have it.
	s.parent(nil, []string{old})
	s.after(time.Hour, status.DSWithdrawing)
	s.parent(nil, nil)
	s.silence(0)
	s.after(time.Hour, status.DSWithdrawing)
	s.parent(nil, nil)
	if d := s.after(time.Hour, status.DSWithdrawing); d.Delegation.SigningMayEnd || d.Next < 10*time.Minute {
		t.Fatalf("%+v", d)
	}
	if d := s.after(10*time.Minute, status.DSWithdrawing); d.Delegation.SigningMayEnd {
		t.Fatal("signing ends within the TTL")
	}
	s.silence(1)
	if d := s.after(time.Hour, status.DSWithdrawing); d.Delegation.SigningMayEnd {
		t.Fatal("signing ends while a server is silent")
	}
	s.parent(nil, nil)
	if d := s.after(time.Minute, status.DSAbsent); !d.Delegation.SigningMayEnd || !slices.Equal(d.Withdraw, []string{old}) {
		t.Fatalf("%+v", d)
	}
	s.Zone.Ends = false // Somebody changes their mind: the key has been there all the time.
	if d := s.after(time.Minute, status.DSPending, old); d.Delegation.SigningMayEnd {
		t.Error("signing may still end")
	}
}

// A record that somebody declares keeps a zone signed, too.
func TestDeclaredRecords(t *testing.T) {
	s := begin(t)
	s.parent([]string{foreign}, []string{foreign})
	s.after(0, status.DSDeclared)
	if d := s.after(2*time.Hour, status.DSDeclared, old); d.Delegated.Holds() || len(d.Confirm) > 0 {
		t.Errorf("%+v", d)
	}
	s.Zone.Keys = []string{old, foreign}
	if d := s.after(0, status.DSDeclared, old); !d.Delegated.Holds() {
		t.Errorf("%+v", d.Delegated)
	}
	s.Zone.Ends = true
	s.after(0, status.DSWithdrawing)
	if d := s.after(24*time.Hour, status.DSWithdrawing); d.Delegation.SigningMayEnd || !strings.Contains(d.Delegated.Message, "declares") {
		t.Errorf("%+v", d.Delegated)
	}
}

// A zone that nobody delegates any more stays signed for as long as resolvers may have its records.
func TestParentGoes(t *testing.T) {
	s := published(t)
	s.Parents = nil
	s.after(0, "")
	s.Zone.Ends = true
	s.after(10*time.Minute, "")
	if s.last == nil || s.last.SigningMayEnd {
		t.Fatalf("%+v", s.last)
	}
	if d := s.after(2*time.Minute, ""); d.Delegation != nil {
		t.Errorf("%+v", d.Delegation)
	}
}

// What a zone above that delegates the zone no more still has, or may have, is not gone: resolvers follow it while they have its name servers.
func TestParentWithdraws(t *testing.T) {
	s := published(t)
	s.Former, s.Parents = s.Parents, nil
	if d := s.after(time.Minute, status.DSPending); !strings.Contains(d.Delegated.Message, "zone example.com still have the DS record of key 1") ||
		!slices.Equal(d.Delegation.Parents, []types.UID{"p"}) || d.Delegation.AbsentSince != nil || d.BehindSince.IsZero() {
		t.Errorf("%+v, %+v", d.Delegated, d.Delegation)
	}
	s.Former[0].Servers[0].DS = nil
	s.Former[0].Servers[1] = Answer{}
	if d := s.after(time.Hour, status.ParentSilent); d.Delegation.AbsentSince != nil {
		t.Errorf("%+v, %+v", d.Delegated, d.Delegation)
	}
	s.Zone.Ends = true
	if d := s.after(30*24*time.Hour, status.DSWithdrawing); d.Delegation.SigningMayEnd {
		t.Error("signing may end while a server may have the record")
	}
	s.Former[0].Servers[1].IsKnown = true
	s.after(time.Minute, "")
	if d := s.after(10*time.Minute, ""); d.Delegation == nil || d.Delegation.SigningMayEnd {
		t.Errorf("within the record's TTL: %+v", d.Delegation)
	}
	if d := s.after(2*time.Minute, ""); d.Delegation != nil {
		t.Errorf("%+v", d.Delegation)
	}
}

func TestNothingToDecide(t *testing.T) {
	s := begin(t)
	s.Parents = nil
	if d := s.after(0, ""); d.Delegation != nil {
		t.Errorf("without a parent: %+v", d.Delegation)
	}
	s = begin(t)
	s.Zone.Ends = true
	if d := s.after(0, ""); d.Delegation != nil {
		t.Errorf("of a zone that is going unsigned: %+v", d.Delegation)
	}
}

// above is what the servers of the zone above really have in FuzzStory, and whether they answer.
type above struct {
	have      [2][]string
	silent    [2]bool
	withdrawn bool
}

// follow has one server, or both, take over what the zone asks for: nothing if the zone above delegates it no more.
func (a *above) follow(last *v1beta1.SecureDelegation, servers ...int) {
	for _, n := range servers {
		if a.have[n] = last.Published(); a.withdrawn {
			a.have[n] = nil
		}
	}
}

// show has the zone see the servers, as a former parent's if it was one.
func (a *above) show(s *story) {
	s.parent(a.have[:]...)
	for n, silent := range a.silent {
		if silent {
			s.silence(n)
		}
	}
	if s.Former = nil; !a.withdrawn {
		return
	}
	if s.last != nil && slices.Contains(s.last.Parents, "p") {
		s.Former = s.Parents
	}
	s.Parents = nil
}

// No sequence of events takes the last record of a served key away from the parent while the zone is to be signed, or has signing end
// while a resolver may have a record: also if servers are silent, or the zone above delegates the zone no more.
func FuzzStory(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Add([]byte{9, 9, 9, 2, 9, 9, 3, 6, 9, 9, 9, 9, 9})
	f.Add([]byte{249, 249, 6, 10, 5, 249, 249, 6, 249, 249})
	f.Add([]byte{249, 249, 6, 8, 10, 5, 249, 249, 7, 20, 249, 11, 249, 6, 249, 249})
	f.Fuzz(func(t *testing.T, events []byte) {
		s := begin(t)
		var parent above
		var lastSeen time.Time
		for _, e := range events[:min(len(events), 200)] {
			switch e % 12 {
			case 0:
				s.Zone.Keys = []string{old}
			case 1:
				s.Zone.Keys = []string{old, next}
			case 2:
				s.Zone.Announced = []string{next}
			case 3:
				s.Zone.Announced = nil
			case 4:
				s.Zone.IsWhole = !s.Zone.IsWhole
			case 5:
				s.Zone.Ends = !s.Zone.Ends
			case 6:
				parent.follow(s.last, 0, 1)
			case 7:
				parent.follow(s.last, int(e)/12%2)
			case 8:
				n := int(e) / 12 % 2
				parent.silent[n] = !parent.silent[n]
			case 10:
				parent.withdrawn = !parent.withdrawn
			default:
				s.Now = s.Now.Add(time.Duration(e) * time.Minute)
			}
			if len(parent.have[0])+len(parent.have[1]) > 0 {
				lastSeen = s.Now
			}
			parent.show(s)
			before := s.last.Published()
			d := Decide(s.last, s.Facts)
			isServed := func(ds string) bool { return slices.Contains(s.Zone.Keys, ds) }
			after := d.Delegation.Published()
			if !s.Zone.Ends && !parent.withdrawn && slices.ContainsFunc(before, isServed) && !slices.ContainsFunc(after, isServed) {
				t.Fatalf("from %v to %v while %v are served", before, after, s.Zone.Keys)
			}
			if len(after) > 0 && (parent.withdrawn || !slices.ContainsFunc(after, isServed) && !s.Zone.HasOthers) {
				t.Fatalf("%v, and no key of them is served, or nobody delegates the zone", after)
			}
			mayEnd := d.Delegation != nil && d.Delegation.SigningMayEnd || s.last != nil && d.Delegation == nil
			if mayEnd && !lastSeen.IsZero() && (s.last == nil || !s.last.SigningMayEnd) && s.Now.Sub(lastSeen) < 10*time.Minute {
				t.Fatalf("signing ends %s after a server had a record", s.Now.Sub(lastSeen))
			}
			if d.Delegated.Reason == status.DSPublished && (parent.silent[0] || parent.silent[1] || !slices.ContainsFunc(parent.have[0], isServed) || !slices.ContainsFunc(parent.have[1], isServed)) {
				t.Fatalf("%+v while the servers have %v", d.Delegated, parent)
			}
			if d.Delegated.Reason == status.DSAbsent && s.Now.Sub(lastSeen) < 10*time.Minute {
				t.Fatalf("%+v %s after a server had a record", d.Delegated, s.Now.Sub(lastSeen))
			}
			s.last = d.Delegation
		}
	})
}

// A record of the zone's key counts whatever its digest: somebody may declare one with SHA-384.
func TestOtherDigest(t *testing.T) {
	const longer = "1 13 4 00"
	s := begin(t)
	s.Zone.Points = dnssec.EntryPoints{longer: old}
	s.after(0, status.DSPending)
	s.after(2*time.Hour, status.DSPending, old)
	s.parent([]string{longer}, []string{old, longer})
	if d := s.after(time.Minute, status.DSPublished, old); !slices.Equal(d.Confirm, []string{old}) {
		t.Errorf("the server that signs is told of %v", d.Confirm)
	}
}

// A zone of which nothing new can be decided asks nothing of a parent that does not delegate it any more.
func TestKeep(t *testing.T) {
	s := published(t)
	if kept := Keep(s.last, []types.UID{"q", "p"}); !slices.Equal(kept.Parents, []types.UID{"p"}) || !slices.Equal(kept.Published(), []string{old}) {
		t.Errorf("%+v", kept)
	}
	if kept := Keep(s.last, []types.UID{"q"}); len(kept.Parents) > 0 || len(s.last.Parents) != 1 {
		t.Errorf("%+v", kept)
	}
	if Keep(nil, nil) != nil {
		t.Error("nothing was decided")
	}
}

package chain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// elsewhere has the parent be one that nobody declares here.
func elsewhere(t *testing.T) *story {
	s := begin(t)
	s.registry(nil, nil)
	return s
}

func (s *story) registry(answers ...[]string) {
	s.parent(answers...)
	s.Parents[0].UID, s.Parents[0].Name, s.Parents[0].IsElsewhere = "", "com", true
}

// A registry is behind since the zone asks for a record, however often somebody looks and whoever decides.
func TestRegistryIsBehind(t *testing.T) {
	s := elsewhere(t)
	s.after(0, status.DSPending)
	s.after(2*time.Hour, status.RegistryBehind, old)
	if len(s.last.Parents) > 0 || s.last.ParentElsewhere != "com" {
		t.Errorf("the parents are %v, %q", s.last.Parents, s.last.ParentElsewhere)
	}
	since := s.Now.Format(time.RFC3339)
	for range 3 {
		d := s.after(24*time.Hour, status.RegistryBehind, old)
		if !strings.Contains(d.Delegated.Message, "since "+since) || len(d.Confirm) > 0 || d.Next < restInterval {
			t.Fatalf("%+v, told of %v, again after %s", d.Delegated, d.Confirm, d.Next)
		}
	}
	s.registry([]string{old}, []string{old})
	if d := s.after(time.Hour, status.DSPublished, old); !slices.Equal(d.Confirm, []string{old}) {
		t.Fatalf("told of %v", d.Confirm)
	}
	Told(s.last, old, true)

	s.Zone.Keys, s.Zone.Announced = []string{old, next}, []string{old}
	s.after(0, status.DSPublished, old)
	s.Zone.Announced = []string{next}
	s.after(2*time.Hour, status.RegistryBehind, next)
	since = s.Now.Format(time.RFC3339)
	s.registry([]string{old, next}, []string{old, next})
	if d := s.after(3*time.Hour, status.RegistryBehind, next); !strings.Contains(d.Delegated.Message, "have that of key 1, ") || !strings.Contains(d.Delegated.Message, "since "+since) || len(d.Withdraw) > 0 {
		t.Fatalf("%+v, told that %v are gone", d.Delegated, d.Withdraw)
	}
	s.registry([]string{next}, []string{next})
	if d := s.after(time.Hour, status.DSPublished, next); !slices.Equal(d.Withdraw, []string{old}) {
		t.Fatalf("told that %v are gone", d.Withdraw)
	}
}

// A zone above with many DS records of others does not hide what matters.
func TestManyRecordsElsewhere(t *testing.T) {
	s := elsewhere(t)
	s.after(0, status.DSPending)
	var many []string
	for tag := range 64 {
		many = append(many, fmt.Sprintf("%d 13 2 %064d", tag+100, tag), fmt.Sprintf("%d 13 2 %064d", tag+100, tag+1000))
	}
	s.registry(many, many)
	if d := s.after(2*time.Hour, status.DSUnmatched, old); !strings.Contains(d.Delegated.Message, "of key 100, 101, 102 and 61 more") || len(d.Delegated.Message) > 500 {
		t.Errorf("%+v", d.Delegated)
	}
}

// A zone that was delegated with its DS record before anybody looked is so at once.
func TestDelegatedBefore(t *testing.T) {
	s := elsewhere(t)
	s.registry([]string{old}, []string{old})
	if d := s.after(0, status.DSPublished); len(d.Confirm) > 0 {
		t.Errorf("told of %v before the key has been seen for its highest TTL", d.Confirm)
	}
	s.after(2*time.Hour, status.DSPublished, old)
}

// Records of keys that are not the zone's do not keep it signed: the name may be somebody else's there.
func TestRecordsOfOthersElsewhere(t *testing.T) {
	s := elsewhere(t)
	s.registry([]string{foreign}, []string{foreign})
	s.after(0, status.DSUnmatched)
	if d := s.after(2*time.Hour, status.DSUnmatched, old); !strings.Contains(d.Delegated.Message, "resolvers reject") || d.BehindSince.IsZero() {
		t.Errorf("%+v since %s", d.Delegated, d.BehindSince)
	}
	s.registry([]string{foreign, old}, nil)
	s.after(time.Minute, status.RegistryBehind, old)
	s.registry([]string{foreign}, []string{old})
	s.after(time.Minute, status.DSUnmatched, old)
	s.registry([]string{foreign}, []string{foreign})
	s.Zone.Ends = true
	s.after(0, status.DSWithdrawing)
	if d := s.after(time.Hour, status.DSAbsent); !d.Delegation.SigningMayEnd {
		t.Errorf("%+v", d.Delegation)
	}
}

// Before the policy that removes signatures is in force, the server that signs knows of each DS record: it then asks for their removal by
// CDS records, and goes on signing until it is told that they are gone.
func TestSigningEndsElsewhere(t *testing.T) {
	s := elsewhere(t)
	s.registry([]string{old}, []string{old})
	s.after(0, status.DSPublished)
	s.Zone.Ends = true
	d := s.after(time.Minute, status.DSWithdrawing)
	if d.Delegation.SigningMayEnd || !slices.Equal(d.Confirm, []string{old}) {
		t.Fatalf("%+v, told of %v", d.Delegation, d.Confirm)
	}
	Told(s.last, old, true)
	s.silence(0)
	if d = s.after(time.Minute, status.DSWithdrawing); d.Delegation.SigningMayEnd {
		t.Fatal("signing may end while a server is silent")
	}
	s.registry([]string{old}, []string{old})
	if d = s.after(time.Minute, status.DSWithdrawing); !d.Delegation.SigningMayEnd || len(d.Withdraw) > 0 {
		t.Fatalf("%+v, told that %v are gone", d.Delegation, d.Withdraw)
	}
	s.registry(nil, []string{old})
	if d = s.after(time.Hour, status.DSWithdrawing); len(d.Withdraw) > 0 {
		t.Fatalf("told that %v are gone while a server has them", d.Withdraw)
	}
	s.silence(0)
	s.silence(1)
	if d = s.after(time.Hour, status.DSWithdrawing); len(d.Withdraw) > 0 {
		t.Fatalf("told that %v are gone while no server answers", d.Withdraw)
	}
	s.registry(nil, nil)
	if d = s.after(time.Hour, status.DSWithdrawing); !slices.Equal(d.Withdraw, []string{old}) {
		t.Fatalf("told that %v are gone", d.Withdraw)
	}
	Told(s.last, old, false)
	s.after(10*time.Minute, status.DSWithdrawing) // Resolvers may have the record.
	s.after(2*time.Minute, status.DSAbsent)
}

// A registry whose servers are silent is not one that is behind, and the time for which it was before does not count then.
func TestSilentRegistryIsNotBehind(t *testing.T) {
	s := elsewhere(t)
	s.registry([]string{old}, []string{old})
	s.after(0, status.DSPublished)
	s.silence(0)
	s.after(time.Minute, status.ParentSilent)
	s.after(2*time.Hour, status.ParentSilent, old)
	if d := s.after(time.Hour, status.ParentSilent, old); !strings.HasPrefix(d.Delegated.Message, "1 of 2 servers of zone com do not answer") || !d.BehindSince.IsZero() || len(d.Confirm) > 0 {
		t.Errorf("%+v since %s, told of %v", d.Delegated, d.BehindSince, d.Confirm)
	}
	s.Parents[0].Servers = nil // Nobody leads to it.
	if d := s.after(time.Hour, status.ParentSilent, old); !strings.HasPrefix(d.Delegated.Message, "no server of zone com answers") || !d.BehindSince.IsZero() {
		t.Errorf("%+v since %s", d.Delegated, d.BehindSince)
	}
	asked := s.last.Keys[0].ChangedAt.Time
	s.registry([]string{foreign}, nil)
	s.silence(1)
	d := s.after(time.Hour, status.DSUnmatched, old)
	if !d.BehindSince.Equal(asked) || !strings.Contains(d.Delegated.Message, "resolvers reject") {
		t.Errorf("%+v since %s, want %s", d.Delegated, d.BehindSince, asked)
	}
	s.registry([]string{old, foreign}, nil)
	s.silence(1)
	if d = s.after(time.Hour, status.RegistryBehind, old); strings.Contains(d.Delegated.Message, "reject") {
		t.Errorf("the server that answers has the record of the key: %+v", d.Delegated)
	}
}

// A registry that cannot be asked is not one without DS records.
func TestSilentRegistry(t *testing.T) {
	s := elsewhere(t)
	s.registry([]string{old}, []string{old})
	s.after(0, status.DSPublished)
	s.Parents[0].Servers = nil
	s.Zone.Ends = true
	if d := s.after(30*24*time.Hour, status.DSWithdrawing); d.Delegation.SigningMayEnd {
		t.Errorf("%+v", d.Delegation)
	}
	s.Parents = nil // Nobody asks any more.
	s.after(time.Minute, "")
	if d := s.after(time.Hour, ""); d.Delegation != nil {
		t.Errorf("%+v", d.Delegation)
	}
}

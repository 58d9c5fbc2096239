package chain

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// theirs is a zone that others sign and that has its DS record.
func theirs(t *testing.T) *story {
	s := begin(t)
	s.Zone.IsTheirs, s.Zone.Announced = true, []string{old}
	s.after(0, status.DSPending)
	s.after(2*time.Hour, status.DSPending, old)
	s.parent([]string{old}, []string{old})
	s.after(time.Minute, status.DSPublished, old)
	Told(s.last, old, true)
	return s
}

// A zone that others sign gets no DS record of a key that it does not ask for.
func TestTheirsAsks(t *testing.T) {
	s := begin(t)
	s.Zone.IsTheirs, s.Zone.Objection = true, "it has no CDS or CDNSKEY records"
	s.after(0, status.CDSRejected)
	if d := s.after(24*time.Hour, status.CDSRejected); !strings.Contains(d.Delegated.Message, "zone example.com has no DS record of it") {
		t.Errorf("it says %q", d.Delegated.Message)
	}
	s.Zone.Objection, s.Zone.Announced = "", []string{old}
	s.after(time.Minute, status.DSPending, old)
}

// Its DS records stay when its keys are gone, and when it says nothing: only what it asks for and may be believed changes them.
func TestTheirsKeepsItsRecords(t *testing.T) {
	s := theirs(t)
	s.Zone.Announced = nil
	s.after(24*time.Hour, status.DSPublished, old)
	s.Zone.Keys, s.Zone.Objection = []string{next}, "example.com. has no usable key"
	if d := s.after(24*time.Hour, status.CDSRejected, old); !strings.Contains(d.Delegated.Message, "keeps the DS record of key 1") || len(d.Withdraw) > 0 {
		t.Errorf("%+v", d)
	}
	s.Zone.Keys, s.Zone.IsWhole = nil, false
	s.after(24*time.Hour, status.CDSRejected, old)

	// The declaration wants none any more, and then some again.
	s.Zone.Ends, s.Zone.Objection = true, ""
	s.after(time.Minute, status.DSWithdrawing)
	s.parent(nil, nil)
	s.after(time.Minute, status.DSWithdrawing)
	if d := s.after(12*time.Minute, status.DSAbsent); !strings.Contains(d.Delegated.Message, "may stop signing") {
		t.Errorf("it says %q", d.Delegated.Message)
	}
	s.Zone = Zone{Keys: []string{next}, Announced: []string{next}, IsWhole: true, IsTheirs: true, TTL: time.Hour}
	s.after(0, status.DSPending)
	s.after(2*time.Hour, status.DSPending, next)
}

// A roll-over replaces a record once its successor has been served for long enough.
func TestTheirsRollsOver(t *testing.T) {
	s := theirs(t)
	s.Zone.Keys, s.Zone.Announced = []string{old, next}, []string{next}
	s.after(0, status.DSPublished, old)
	s.after(30*time.Minute, status.DSPublished, old)
	s.after(31*time.Minute, status.DSPending, next)
	s.parent([]string{next}, []string{next})
	s.after(time.Minute, status.DSPublished, next)
	s.Zone.Keys = []string{next}
	s.after(time.Hour, status.DSPublished, next)
	if len(s.last.Keys) != 1 {
		t.Errorf("keys are %v", s.last.Keys)
	}
}

// What objects declare in the zone above is not the zone's.
func TestTheirsWithDeclaredRecords(t *testing.T) {
	s := begin(t)
	s.Zone.IsTheirs, s.Zone.Objection, s.Zone.Points = true, "it has no CDS or CDNSKEY records", nil
	s.parent([]string{old}, []string{old})
	if d := s.after(0, status.DSDeclared); d.Delegated.Status != "True" {
		t.Errorf("%+v", d.Delegated)
	}
}

package syncstatus

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// undeclaredCut is the undeclared delegation or DNAME at a name on a server, if there is one. The server has the data below it, of a
// delegation also that at the name, but answers with a referral (RFC 1034 section 4.3.2) or with other names (RFC 6672 section 3.2).
// Package source keeps declarations from hiding each other.
func undeclaredCut(desired *source.Zone, m *observe.Mirror, name string) (cut rrset.RRset, found bool) {
	for _, rrtype := range []uint16{dns.TypeNS, dns.TypeDNAME} {
		if rrtype == dns.TypeNS && name == m.Zone {
			continue
		}
		if cut, found = m.Get(rrset.Key{Name: name, Type: rrtype}); !found {
			continue
		}
		if _, declared := desired.Get(cut.Key); !declared {
			return cut, true
		}
	}
	return rrset.RRset{}, false
}

// hidingDelegation is the undeclared delegation or DNAME that keeps a server from answering with its data at a key, if there is one.
func hidingDelegation(desired *source.Zone, m *observe.Mirror, k rrset.Key) (cut rrset.RRset, found bool) {
	if !m.HasCuts() {
		return cut, false
	}
	for name := range rrset.NamesUpFrom(k.Name) {
		if cut, found = undeclaredCut(desired, m, name); found && desired.Hides(cut.Key, k) {
			return cut, true
		}
		if name == m.Zone {
			break
		}
	}
	return rrset.RRset{}, false
}

// HidesOthers reports whether a change of a server's content at a name can affect what is declared below it.
func (d *DesiredState) HidesOthers(name string, was, is *observe.Mirror) bool {
	if d.desired == nil || was == nil || is == nil {
		return false
	}
	return delegationChanged(name, d.desired, was, d.desired, is)
}

// delegationChanged reports whether the undeclared delegation or DNAME at a name has changed.
func delegationChanged(name string, wasDesired *source.Zone, was *observe.Mirror, isDesired *source.Zone, is *observe.Mirror) bool {
	before, _ := undeclaredCut(wasDesired, was, name)
	now, _ := undeclaredCut(isDesired, is, name)
	return before.Type != now.Type || !slices.Equal(before.Rdata, now.Rdata)
}

// askedAnswers are what a server answers to whoever asks, beside or in place of its zone's content: to questions for names of
// the zone, and for the start of authority of zones below it.
type askedAnswers = map[rrset.Key]observe.Answer

// IsBelowOtherZone means that, by answers for starts of authority, a server has a zone at or above a name that is not the one it was
// asked about.
func IsBelowOtherZone(answers map[rrset.Key]observe.Answer, name string) bool {
	_, found := zoneAbove(answers, name)
	return found
}

// zoneAbove is the one with the longest name.
func zoneAbove(answers askedAnswers, name string) (zone string, found bool) {
	for above := range rrset.NamesUpFrom(name) {
		if a, asked := answers[rrset.Key{Name: above, Type: dns.TypeSOA}]; asked && a.Differs() {
			return above, true
		}
	}
	return "", false
}

// shadowing is why a server does not answer with its data at a key although nothing in its zone hides that: by what it answered when it
// was asked, or because it has another zone with a longer name. What it answered about other content of its zone proves nothing.
func shadowing(desired *source.Zone, m *observe.Mirror, answers askedAnswers, k rrset.Key) (by observe.Answer, found bool) {
	if len(answers) == 0 {
		return by, false
	}
	zone, below := zoneAbove(answers, k.Name)
	if a, asked := answers[k]; asked {
		if have, _ := m.Get(k); sameData(have, a.Held) {
			a.Zone = cmp.Or(zone, a.Zone)
			return a, a.Differs()
		}
	}
	return observe.Answer{Zone: zone}, below && desired.Hides(rrset.Key{Name: zone}, k)
}

// ResolvableKeys are, at most n, the names and types that a resolver gets from the zone's own servers because an object declares them.
func (d *DesiredState) ResolvableKeys(object source.ObjectKey, n int) []rrset.Key {
	var keys []rrset.Key
	switch o := d.Object(object); {
	case d.desired == nil:
	case o != nil:
		keys, _ = d.keysOf(o, false)
	default:
		keys = []rrset.Key{{Name: d.ZoneName(), Type: dns.TypeNS}}
	}
	keys = slices.DeleteFunc(keys, func(k rrset.Key) bool { return d.desired.IsDelegated(k.Name) })
	return keys[:min(len(keys), n)]
}

// Covering chooses the names, of zones below this one, at or below which the zone has declared data of its own.
func (d *DesiredState) Covering(names []string) []string {
	if d.desired == nil {
		return nil
	}
	return d.desired.Covering(names)
}

// obstacles are why a server does not answer with declared data that it holds.
type obstacles struct {
	cuts []rrset.RRset
	// shadows are the answers in place of what is declared, with the names and types of what they stand for.
	shadows []observe.Answer
	keys    []rrset.Key
}

// add remembers what keeps a server from answering with declared data that it holds; false if nothing does.
func (h *obstacles) add(desired *source.Zone, e *serverAnswer, want rrset.RRset) bool {
	if desired == nil || len(want.Rdata) == 0 || e.mirror.IsPartial() {
		return false
	}
	if cut, found := hidingDelegation(desired, e.mirror, want.Key); found {
		if !slices.ContainsFunc(h.cuts, func(o rrset.RRset) bool { return o.Key == cut.Key }) {
			h.cuts = append(h.cuts, cut)
		}
		return true
	}
	by, found := shadowing(desired, e.mirror, e.answers, want.Key)
	if found {
		h.shadows, h.keys = append(h.shadows, by), append(h.keys, want.Key)
	}
	return found
}

// describeIn adds the obstacles to the row of a server; nothing is true if nothing else is wrong.
func (h *obstacles) describeIn(row *syncv1.ServerStatus, nothing bool) {
	for _, cut := range h.cuts[:min(len(h.cuts), maxObserved)] {
		showObserved(row, cut.Key, cut)
	}
	if len(h.cuts) > 0 {
		what := "delegation of"
		if h.cuts[0].Type == dns.TypeDNAME {
			what = "DNAME at"
		}
		row.Message += fmt.Sprintf("; an undeclared %s %s hides declared data", what, h.cuts[0].Name)
	}
	if len(h.shadows) == 0 {
		return
	}
	for i, by := range h.shadows {
		if by.Served.Name != "" {
			showObserved(row, h.keys[i], by.Served)
		}
	}
	by := h.shadows[0]
	row.ShadowedBy = strings.TrimSuffix(by.Zone, ".")
	if message := shadowText(h.keys[0], by); nothing {
		if row.State, row.Message = syncv1.StateShadowed, message; by.Rcode == observe.NoReply {
			row.State = syncv1.StateUnreachable
		}
	} else {
		row.Message += "; " + message
	}
}

// shadowText says what a server answers in place of what its zone holds.
func shadowText(k rrset.Key, by observe.Answer) string {
	var e *wire.Error
	switch {
	case by.Rcode == observe.NoReply && errors.As(by.Err, &e):
		return fmt.Sprintf("answers for the zone, but not for %s: %s", k, e.Detail())
	case by.Rcode == observe.NoReply:
		return fmt.Sprintf("answers for the zone, but not for %s", k)
	case by.Zone != "":
		return fmt.Sprintf("holds the data, but answers for %s from its zone %s, which hides it: declare the data there", k, by.Zone)
	case len(by.Served.Rdata) == 0:
		return fmt.Sprintf("holds the data, but answers %s without it for %s: look for another zone, a view or a response policy", wire.RcodeName(by.Rcode), k)
	}
	return fmt.Sprintf("holds the data, but answers otherwise for %s: look for another zone, a view or a response policy", k)
}

package syncstatus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

// ZoneStatus judges the zone itself: the counts of its RRsets on every server, and whether its parent delegates to it. parent is nil if
// no zone above is known.
func (ev *Evaluation) ZoneStatus(parent *Evaluation) *syncv1.SyncStatus {
	out := subject.New(ev.zone, subject.ZoneKind.Kind)
	out.Zone = ev.shortName()
	v := statusFacts{
		accepted: status.True("Accepted", "the zone is valid"), stalled: ev.zoneFailure(ev.zone.Namespace), stored: ev.zone.Status.Conditions,
		generation: ev.zone.Generation, at: ev.at, remark: ev.remark(), access: ev.access,
	}
	switch {
	case v1beta1.IsGoing(ev.zone):
		v.accepted = status.True("Deleting", "the zone is being deleted: it is being removed from the servers")
	case ev.problem != nil:
		v.accepted = status.False(ev.problem.Reason, ev.problem.Message)
	case ev.zone.DeletionTimestamp != nil:
		v.accepted = status.True("Deleting", "the zone is being deleted: it is served until its last record is deleted")
	}
	all := ev.serverComparisons()
	for i, e := range ev.servers {
		row := ev.zoneRow(e, all[i])
		if !v1beta1.IsGoing(ev.zone) {
			ev.setSecurity(&row, &e, nil)
		}
		v.rows, v.waiting = append(v.rows, row), append(v.waiting, e.waiting)
	}
	v.gaps, out.Chain = ev.gaps, ev.chain(v.rows, validate.ZoneQuestions(ev.ZoneName()))
	out.RRsets = ev.shownRRsets(all)
	out.Servers, out.Summary, out.NameServers = v.rows, summarizeServers(v.rows), ev.nameServers()
	if ev.desired != nil {
		out.Summary.Records = int32(ev.desired.Len()) //nolint:gosec // bounded by memory
	}
	out.Summary.RecordsOutOfSync = int32(ev.compared.countOutOfSync(all)) //nolint:gosec // bounded by memory
	out.Status = v.buildStatus()
	if ev.past.OnPath != nil && !v1beta1.IsGoing(ev.zone) {
		var answered status.Verdict
		if out.Paths, answered = ev.furtherRows(parent, ev.access.answered); answered.Status != "" {
			out.Status.Conditions = append(out.Status.Conditions, v.newCondition(syncv1.ConditionAnswered, answered))
		}
	}
	if delegated := ev.delegated(parent); delegated.Status != "" && !v1beta1.IsGoing(ev.zone) {
		out.Status.Conditions = append(out.Status.Conditions, v.newCondition(syncv1.ConditionDelegated, delegated))
	}
	out.ObservedAt = observationTime(ev.at, v.rows)
	return out
}

// serverComparisons are those of the servers whose data is known; nil for the others.
func (ev *Evaluation) serverComparisons() []*serverComparison {
	if v1beta1.IsGoing(ev.zone) || ev.desired == nil {
		return make([]*serverComparison, len(ev.servers))
	}
	return ev.compared.compareServers(ev.DesiredState, ev.servers)
}

// zoneRow is the row of one server, with the counts of its RRsets.
func (ev *Evaluation) zoneRow(e serverAnswer, c *serverComparison) syncv1.ServerStatus {
	if v1beta1.IsGoing(ev.zone) {
		return leavingRow(e)
	}
	row := e.row
	if c == nil {
		row.State = cmp.Or(row.State, syncv1.StateInSync)
		return row
	}
	row.Records = &syncv1.RecordCounts{
		InSync:     int32(ev.desired.Len() - c.apex - c.declared - c.unknownDeclared), //nolint:gosec // bounded by memory
		OutOfSync:  int32(c.off.Len()),                                                //nolint:gosec // bounded by memory
		Undeclared: int32(c.foreign),                                                  //nolint:gosec // bounded by memory
		Unknown:    int32(c.unknown.count),                                            //nolint:gosec // bounded by memory
	}
	var hidden obstacles
	for _, k := range c.shown {
		want := ev.desiredAt(k)
		if have, _ := e.have(ev.DesiredState, k); !sameData(want, have) || !hidden.add(ev.desired, &e, want) {
			showObserved(&row, k, have)
		}
	}
	differing, pending := c.off.Len(), c.waiting == c.off.Len() || ev.zonePending()
	soaOff := e.hasOtherSOA(ev.desired)
	if e.unsigned {
		e.cached = ev.countCached(&e, c.off.All())
	}
	if soaOff {
		differing++
		pending = pending && ev.zonePending()
		row.Observed = append(row.Observed, ev.renderSOA(e.mirror.SOA))
	}
	row.State, row.Message = ev.stateByData(&e, differing, c.missing, pending)
	e.markHeld(&row, ev.zone.Status.HeldPlan != "")
	if row.State != syncv1.StateInSync {
		row.Message = fmt.Sprintf("%s (%s)", row.Message, countsText(row.Records, soaOff))
	}
	hidden.describeIn(&row, differing == c.shadowed)
	if e.mirror.IsPartial() {
		c.unknown.describeIn(&row, ev.desired.Len())
		setObservedAt(&row, c.oldest)
		if row.State == syncv1.StateInSync {
			row.Message = "only what is declared was compared"
		}
		e.confirmUnsigned(&row, !c.unconfirmed)
	}
	return row
}

// shownRRsets are the RRsets in any server's row, as they are declared.
func (ev *Evaluation) shownRRsets(all []*serverComparison) []syncv1.RRset {
	keys := map[rrset.Key]struct{}{}
	soa := false
	for i, c := range all {
		if c == nil {
			continue
		}
		for _, k := range c.shown {
			keys[k] = struct{}{}
		}
		soa = soa || ev.servers[i].hasOtherSOA(ev.desired)
	}
	var out []syncv1.RRset
	for _, k := range slices.SortedFunc(maps.Keys(keys), rrset.Key.Compare) {
		out = append(out, renderRRset(k, ev.desiredAt(k)))
	}
	if soa {
		want := ev.desired.SOA
		for _, e := range ev.servers {
			if e.shared == "" && e.reference.newest != nil {
				want.Serial = *e.reference.newest // The serial is not declared.
			}
		}
		out = append(out, ev.renderSOA(want))
	}
	return out
}

// hasOtherSOA reports whether a server's start of authority is not what is declared, where it is the zone object's.
func (e *serverAnswer) hasOtherSOA(desired *source.Zone) bool {
	return e.shared == "" && !desired.SOA.SameData(e.mirror.SOA)
}

func (ev *Evaluation) renderSOA(soa rrset.SOA) syncv1.RRset {
	return renderRRset(rrset.Key{Name: ev.ZoneName(), Type: dns.TypeSOA}, rrset.RRset{
		TTL:   soa.TTL,
		Rdata: []string{soa.Rdata()},
	})
}

func countsText(r *syncv1.RecordCounts, soaOff bool) string {
	out := fmt.Sprintf("%d of %d RRsets", r.OutOfSync, r.OutOfSync+r.InSync+r.Unknown)
	if soaOff {
		out += " and the SOA"
	}
	return out
}

// leavingRow is for a server that has to stop serving the zone. A server that has done so answers REFUSED, or for a parent zone that it
// serves as well.
func leavingRow(e serverAnswer) syncv1.ServerStatus {
	row := e.row
	switch {
	case row.Serial != nil || row.State == "":
		row.State, row.Message = syncv1.StateStale, "still serves the zone"
	case row.Rcode == wire.RcodeName(dns.RcodeRefused), row.State == syncv1.StateLame:
		row.State, row.Message = syncv1.StateInSync, "no longer serves the zone"
	}
	return row
}

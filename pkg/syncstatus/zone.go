package syncstatus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

// ZoneStatus judges the zone itself: the counts of its RRsets on every server, and whether its parent delegates to it. parent is nil if
// no zone above is known.
func (j *Evaluation) ZoneStatus(parent *Evaluation) *sync.SyncStatus {
	out := newSyncStatus(j.zone, ZoneKind.Kind)
	out.Zone = j.shortName()
	v := statusFacts{
		accepted: status.True("Accepted", "the zone is valid"), stalled: j.zoneFailure(j.zone.Namespace), stored: j.zone.Status.Conditions,
		generation: j.zone.Generation, at: j.at, remark: j.remark(), access: j.access,
	}
	switch {
	case v1beta1.IsGoing(j.zone):
		v.accepted = status.True("Deleting", "the zone is being deleted: it is being removed from the servers")
	case j.problem != nil:
		v.accepted = status.False(j.problem.Reason, j.problem.Message)
	case j.zone.DeletionTimestamp != nil:
		v.accepted = status.True("Deleting", "the zone is being deleted: it is served until its last record is deleted")
	}
	all := j.serverComparisons()
	for i, e := range j.servers {
		row := j.zoneRow(e, all[i])
		if !v1beta1.IsGoing(j.zone) {
			j.setSecurity(&row, &e, nil)
		}
		v.rows, v.waiting = append(v.rows, row), append(v.waiting, e.waiting)
	}
	v.gaps, out.Chain = j.gaps, j.chain(v.rows, validate.ZoneQuestions(j.ZoneName()))
	out.RRsets = j.shownRRsets(all)
	out.Servers, out.Summary, out.NameServers = v.rows, summarizeServers(v.rows), j.nameServers()
	if j.desired != nil {
		out.Summary.Records = int32(j.desired.Len()) //nolint:gosec // bounded by memory
	}
	out.Summary.RecordsOutOfSync = int32(j.compared.countOutOfSync(all)) //nolint:gosec // bounded by memory
	out.Status = v.buildStatus()
	if j.past.OnPath != nil && !v1beta1.IsGoing(j.zone) {
		var answered status.Verdict
		if out.Paths, answered = j.furtherRows(parent, j.access.answered); answered.Status != "" {
			out.Status.Conditions = append(out.Status.Conditions, v.newCondition(sync.ConditionAnswered, answered))
		}
	}
	if delegated := j.delegated(parent); delegated.Status != "" && !v1beta1.IsGoing(j.zone) {
		out.Status.Conditions = append(out.Status.Conditions, v.newCondition(sync.ConditionDelegated, delegated))
	}
	out.ObservedAt = observationTime(j.at, v.rows)
	return out
}

// serverComparisons are those of the servers whose data is known; nil for the others.
func (j *Evaluation) serverComparisons() []*serverComparison {
	if v1beta1.IsGoing(j.zone) || j.desired == nil {
		return make([]*serverComparison, len(j.servers))
	}
	return j.compared.compareServers(j.DesiredState, j.servers)
}

// zoneRow is the row of one server, with the counts of its RRsets.
func (j *Evaluation) zoneRow(e serverAnswer, c *serverComparison) sync.ServerStatus {
	if v1beta1.IsGoing(j.zone) {
		return leavingRow(e)
	}
	row := e.row
	if c == nil {
		row.State = cmp.Or(row.State, sync.StateInSync)
		return row
	}
	row.Records = &sync.RecordCounts{
		InSync:     int32(j.desired.Len() - c.apex - c.declared - c.unknownDeclared), //nolint:gosec // bounded by memory
		OutOfSync:  int32(c.off.Len()),                                               //nolint:gosec // bounded by memory
		Undeclared: int32(c.foreign),                                                 //nolint:gosec // bounded by memory
		Unknown:    int32(c.unknown.count),                                           //nolint:gosec // bounded by memory
	}
	var hidden obstacles
	for _, k := range c.shown {
		want := j.desiredAt(k)
		if have, _ := e.have(j.DesiredState, k); !sameData(want, have) || !hidden.add(j.desired, &e, want) {
			row.Observed = append(row.Observed, renderRRset(k, have))
		}
	}
	differing, pending := c.off.Len(), c.waiting == c.off.Len() || j.zonePending()
	soaOff := e.hasOtherSOA(j.desired)
	if e.unsigned {
		e.cached = j.countCached(&e, c.off.All())
	}
	if soaOff {
		differing++
		pending = pending && j.zonePending()
		row.Observed = append(row.Observed, j.renderSOA(e.mirror.SOA))
	}
	row.State, row.Message = j.stateByData(e, differing, c.missing, pending)
	e.markHeld(&row, j.zone.Status.HeldPlan != "")
	if row.State != sync.StateInSync {
		row.Message = fmt.Sprintf("%s (%s)", row.Message, countsText(row.Records, soaOff))
	}
	hidden.describeIn(&row, differing == c.shadowed)
	if e.mirror.IsPartial() {
		c.unknown.describeIn(&row, j.desired.Len())
		setObservedAt(&row, c.oldest)
		if row.State == sync.StateInSync {
			row.Message = "only what is declared was compared"
		}
		e.confirmUnsigned(&row, !c.unconfirmed)
	}
	return row
}

// shownRRsets are the RRsets in any server's row, as they are declared.
func (j *Evaluation) shownRRsets(all []*serverComparison) []sync.RRset {
	keys := map[rrset.Key]struct{}{}
	soa := false
	for i, c := range all {
		if c == nil {
			continue
		}
		for _, k := range c.shown {
			keys[k] = struct{}{}
		}
		soa = soa || j.servers[i].hasOtherSOA(j.desired)
	}
	var out []sync.RRset
	for _, k := range slices.SortedFunc(maps.Keys(keys), rrset.Key.Compare) {
		out = append(out, renderRRset(k, j.desiredAt(k)))
	}
	if soa {
		want := j.desired.SOA
		for _, e := range j.servers {
			if e.shared == "" && e.reference.newest != nil {
				want.Serial = *e.reference.newest // The serial is not declared.
			}
		}
		out = append(out, j.renderSOA(want))
	}
	return out
}

// hasOtherSOA reports whether a server's start of authority is not what is declared, where it is the zone object's.
func (e *serverAnswer) hasOtherSOA(desired *source.Zone) bool {
	return e.shared == "" && !desired.SOA.SameData(e.mirror.SOA)
}

func (j *Evaluation) renderSOA(soa rrset.SOA) sync.RRset {
	return renderRRset(rrset.Key{Name: j.ZoneName(), Type: dns.TypeSOA}, rrset.RRset{
		TTL:   soa.TTL,
		Rdata: []string{soa.Rdata()},
	})
}

func countsText(r *sync.RecordCounts, soaOff bool) string {
	out := fmt.Sprintf("%d of %d RRsets", r.OutOfSync, r.OutOfSync+r.InSync+r.Unknown)
	if soaOff {
		out += " and the SOA"
	}
	return out
}

// leavingRow is for a server that has to stop serving the zone. A server that has done so answers REFUSED, or for a parent zone that it
// serves as well.
func leavingRow(e serverAnswer) sync.ServerStatus {
	row := e.row
	switch {
	case row.Serial != nil || row.State == "":
		row.State, row.Message = sync.StateStale, "still serves the zone"
	case row.Rcode == wire.RcodeName(dns.RcodeRefused), row.State == sync.StateLame:
		row.State, row.Message = sync.StateInSync, "no longer serves the zone"
	}
	return row
}

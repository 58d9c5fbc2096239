package syncstatus

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"

	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// ZoneStatus gives the SyncStatus of the zone itself: every RRset of the zone on every server, counted.
func (j *Judgement) ZoneStatus() *sync.SyncStatus {
	out := about(j.zone, ZoneKind.Kind)
	out.Zone = strings.TrimSuffix(j.ZoneName(), ".")
	v := verdict{
		accepted: status.Yes("Accepted", "the zone is valid"), stored: j.zone.Status.Conditions,
		generation: j.zone.Generation, at: j.at,
	}
	switch {
	case j.zone.DeletionTimestamp != nil:
		v.accepted = status.Yes("Deleting", "the zone is being deleted: it has to leave the servers")
	case j.problem != nil:
		v.accepted = status.No(j.problem.Reason, j.problem.Message)
	}
	wrong := map[rrset.Key]bool{}
	for _, e := range j.servers {
		v.rows, v.waiting = append(v.rows, j.zoneRow(e, wrong)), append(v.waiting, e.waiting)
	}
	out.Servers, out.Summary = v.rows, summarize(v.rows)
	if j.desired != nil {
		out.Summary.Records = int32(len(j.desired.RRsets)) //nolint:gosec // bounded by memory
	}
	out.Summary.RecordsOutOfSync = int32(len(wrong)) //nolint:gosec // bounded by memory
	out.Status = v.status()
	out.ObservedAt = observedAt(j, v.rows)
	return out
}

// zoneRow counts one server's RRsets, and adds those not as declared to wrong.
func (j *Judgement) zoneRow(e server, wrong map[rrset.Key]bool) sync.ServerStatus {
	if j.zone.DeletionTimestamp != nil {
		return leaving(e)
	}
	row := e.row
	if e.mirror == nil || j.desired == nil {
		if row.State == "" {
			row.State = sync.StateInSync
		}
		return row
	}
	t := tally{pending: true}
	for k, want := range j.desired.RRsets {
		t.add(j, e, k, want.RRset, wrong)
	}
	for s := range e.mirror.All() {
		k := s.Key
		if _, declared := j.desired.RRsets[k]; declared || maintained(k.Type) {
			continue
		}
		if j.pending[k] {
			t.add(j, e, k, rrset.RRset{Key: k}, wrong)
		} else {
			t.Undeclared++
		}
	}
	if !j.desired.SOA.SameData(e.mirror.SOA) {
		t.soa(j, e)
	}
	row.Observed, row.Records = t.observed, &t.RecordCounts
	row.State, row.Message = j.differs(e, t.differing, t.missing, t.pending)
	if row.State != sync.StateInSync {
		row.Message = fmt.Sprintf("%s (%s)", row.Message, t.said())
	}
	return row
}

// tally is the count of one server's RRsets.
type tally struct {
	sync.RecordCounts
	differing, missing int
	pending, soaOff    bool
	observed           []sync.RRset
}

func (t *tally) add(j *Judgement, e server, k rrset.Key, want rrset.RRset, wrong map[rrset.Key]bool) {
	have, _ := e.mirror.Get(k)
	if same(want, have) {
		t.InSync++
		return
	}
	wrong[k] = true
	t.OutOfSync++
	t.differing++
	t.pending = t.pending && (j.pending[k] || j.zonePending())
	if len(have.Rdata) == 0 {
		t.missing++
	}
	if len(t.observed) < maxObserved {
		t.observed = append(t.observed, render(k, have))
	}
}

// soa counts a start of authority whose data, serial aside, is not as declared.
func (t *tally) soa(j *Judgement, e server) {
	t.differing++
	t.soaOff = true
	t.pending = t.pending && j.zonePending()
	have := e.mirror.SOA
	t.observed = append(t.observed, render(rrset.Key{Name: j.ZoneName(), Type: dns.TypeSOA}, rrset.RRset{
		TTL: have.TTL,
		Rdata: []string{fmt.Sprintf("%s %s %d %d %d %d %d",
			have.MName, have.RName, have.Serial, have.Refresh, have.Retry, have.Expire, have.Minimum)},
	}))
}

func (t *tally) said() string {
	out := fmt.Sprintf("%d of %d RRsets", t.OutOfSync, t.OutOfSync+t.InSync)
	if t.soaOff {
		out += " and the SOA"
	}
	return out
}

// leaving is the row of a server that has to stop serving the zone.
func leaving(e server) sync.ServerStatus {
	row := e.row
	switch {
	case row.State == sync.StateRefused:
		row.State, row.Message = sync.StateInSync, "serves the zone no more"
	case row.State == "":
		row.State, row.Message = sync.StateStale, "still serves the zone"
	}
	return row
}

// maintained tells whether servers make RRsets of this type by themselves, as DNSSEC signing does.
func maintained(t uint16) bool {
	switch t {
	case dns.TypeSOA, dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNSEC3PARAM, dns.TypeDNSKEY, dns.TypeCDS,
		dns.TypeCDNSKEY, 65534:
		return true
	}
	return false
}

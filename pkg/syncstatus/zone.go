package syncstatus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/miekg/dns"

	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// ZoneStatus gives the SyncStatus of the zone itself: every RRset of the zone on every server, counted.
func (j *Judgement) ZoneStatus() *sync.SyncStatus {
	out := about(j.zone, objectVersion, ZoneKind.Kind)
	out.Zone = j.shortName()
	v := verdict{
		accepted: status.Yes("Accepted", "the zone is valid"), stored: j.zone.Status.Conditions,
		generation: j.zone.Generation, at: j.at, remark: j.paused(),
	}
	switch {
	case j.zone.DeletionTimestamp != nil:
		v.accepted = status.Yes("Deleting", "the zone is being deleted: it has to leave the servers")
	case j.problem != nil:
		v.accepted = status.No(j.problem.Reason, j.problem.Message)
	}
	all := j.comparisons()
	for i, e := range j.servers {
		v.rows, v.waiting = append(v.rows, j.zoneRow(e, all[i])), append(v.waiting, e.waiting)
	}
	out.RRsets = j.disputed(all)
	out.Servers, out.Summary, out.NameServers = v.rows, summarize(v.rows), j.nameServers()
	if j.desired != nil {
		out.Summary.Records = int32(j.desired.Len()) //nolint:gosec // bounded by memory
	}
	out.Summary.RecordsOutOfSync = int32(j.compared.offAnywhere(all)) //nolint:gosec // bounded by memory
	out.Status = v.status()
	out.ObservedAt = observedAt(j.at, v.rows)
	return out
}

// comparisons are those of the servers whose data can be judged; nil for the others.
func (j *Judgement) comparisons() []*comparison {
	if j.zone.DeletionTimestamp != nil || j.desired == nil {
		return make([]*comparison, len(j.servers))
	}
	return j.compared.take(j.Declared, j.servers)
}

// zoneRow counts one server's RRsets.
func (j *Judgement) zoneRow(e server, c *comparison) sync.ServerStatus {
	if j.zone.DeletionTimestamp != nil {
		return leaving(e)
	}
	row := e.row
	if c == nil {
		row.State = cmp.Or(row.State, sync.StateInSync)
		return row
	}
	row.Records = &sync.RecordCounts{
		InSync:     int32(j.desired.Len() - c.declared), //nolint:gosec // bounded by memory
		OutOfSync:  int32(c.off.Len()),                  //nolint:gosec // bounded by memory
		Undeclared: int32(c.foreign),                    //nolint:gosec // bounded by memory
	}
	var hidden cuts
	for _, k := range c.shown {
		want := j.want(k)
		if have, _ := e.mirror.Get(k); !same(want, have) || !hidden.add(j.desired, e.mirror, want) {
			row.Observed = append(row.Observed, render(k, have))
		}
	}
	differing, pending := c.off.Len(), c.waiting == c.off.Len() || j.zonePending()
	soaOff := !j.desired.SOA.SameData(e.mirror.SOA)
	if soaOff {
		differing++
		pending = pending && j.zonePending()
		row.Observed = append(row.Observed, j.renderSOA(e.mirror.SOA))
	}
	row.State, row.Message = j.differs(e, differing, c.missing, pending)
	if row.State != sync.StateInSync {
		row.Message = fmt.Sprintf("%s (%s)", row.Message, countsText(row.Records, soaOff))
	}
	hidden.tell(&row)
	return row
}

// disputed are the RRsets that some server's row shows, as they should be.
func (j *Judgement) disputed(all []*comparison) []sync.RRset {
	keys := map[rrset.Key]struct{}{}
	soa := false
	for i, c := range all {
		if c == nil {
			continue
		}
		for _, k := range c.shown {
			keys[k] = struct{}{}
		}
		soa = soa || !j.desired.SOA.SameData(j.servers[i].mirror.SOA)
	}
	var out []sync.RRset
	for _, k := range slices.SortedFunc(maps.Keys(keys), rrset.Key.Compare) {
		out = append(out, render(k, j.want(k)))
	}
	if soa {
		want := j.desired.SOA
		if j.newest != nil {
			want.Serial = *j.newest // No particular one is declared.
		}
		out = append(out, j.renderSOA(want))
	}
	return out
}

func (j *Judgement) renderSOA(soa rrset.SOA) sync.RRset {
	return render(rrset.Key{Name: j.ZoneName(), Type: dns.TypeSOA}, rrset.RRset{
		TTL:   soa.TTL,
		Rdata: []string{soa.Rdata()},
	})
}

func countsText(r *sync.RecordCounts, soaOff bool) string {
	out := fmt.Sprintf("%d of %d RRsets", r.OutOfSync, r.OutOfSync+r.InSync)
	if soaOff {
		out += " and the SOA"
	}
	return out
}

// leaving is the row of a server that has to stop serving the zone. One that knows it no more answers REFUSED, or for a
// parent zone that it serves as well.
func leaving(e server) sync.ServerStatus {
	row := e.row
	switch {
	case row.Serial != nil:
		row.State, row.Message = sync.StateStale, "still serves the zone"
	case row.Rcode == rcodeText(dns.RcodeRefused), row.State == sync.StateLame:
		row.State, row.Message = sync.StateInSync, "serves the zone no more"
	}
	return row
}

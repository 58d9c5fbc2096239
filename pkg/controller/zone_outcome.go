package controller

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// conclude turns what the primaries serve now into the outcome of the pass: an RRset is programmed when every primary
// was asked and answered with it.
func (p *pass) conclude() {
	p.event.Unprogrammed = map[rrset.Key]status.Verdict{}
	var failed []*primary
	for _, q := range p.primaries {
		if p.event.Changes.Len() == 0 {
			p.event.Changes = q.applied
		}
		if q.err != nil {
			failed = append(failed, q)
			continue
		}
		p.event.Serial = q.seen.Serial
		for key := range q.rest.Keys() {
			p.event.Unprogrammed[key] = unprogrammed(q, key)
		}
		for _, c := range q.rest.Conflicts {
			p.event.Unprogrammed[c.Want.Key] = blocked(q, c)
		}
	}
	if len(failed) > 0 {
		q := failed[0]
		p.problem(status.PrimaryFailed, "%d of %d primaries cannot be programmed; %s: %v", len(failed), len(p.primaries), q.server.Pod, q.err)
		return
	}
	if len(p.event.Unprogrammed) == 0 {
		p.event.Released = p.leaving
		return
	}
	for _, record := range p.leaving {
		if !p.stillThere(record) {
			p.event.Released = append(p.event.Released, record)
		}
	}
}

// unprogrammed says why a primary does not serve an RRset as desired.
func unprogrammed(q *primary, key rrset.Key) status.Verdict {
	if err := q.refused[key]; err != nil {
		return status.No(status.ReconcileFailed, fmt.Sprintf("%s: %v", q.server.Pod, err))
	}
	return status.No(status.ReconcileFailed, fmt.Sprintf("%s took the update without an error and does not serve %s %s as declared",
		q.server.Pod, key.Name, dns.TypeToString[key.Type]))
}

// blocked says what somebody else put into the zone that an RRset cannot stand beside.
func blocked(q *primary, c plan.Conflict) status.Verdict {
	var foreign []string
	for _, key := range c.Foreign {
		foreign = append(foreign, dns.TypeToString[key.Type])
	}
	return status.No(status.Conflict, fmt.Sprintf("%s holds %s data at %s that no object declares and that cannot stand beside %s; remove it or rename the record",
		q.server.Pod, strings.Join(foreign, ", "), c.Want.Name, dns.TypeToString[c.Want.Type]))
}

// stillThere tells whether data of a leaving record could not be taken out of the zone.
func (p *pass) stillThere(record v1beta1.Record) bool {
	for _, key := range p.keysOf(record) {
		if _, stuck := p.event.Unprogrammed[key]; stuck {
			return true
		}
	}
	return false
}

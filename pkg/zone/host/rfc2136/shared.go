package rfc2136

import (
	"errors"
	"fmt"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Where others write to a zone as well, its SOA says nothing about whether an RRset is still as it was read, and its serial is the
// server's. Each RRset has a prerequisite of its own: that it is as it was seen (RFC 2136 section 2.4.2), or is not there (2.4.3).
// Prerequisites hold for a whole message, so that one with an RRset that somebody has changed is split until that is alone.

const (
	// maxShared is how many bytes a unit with its prerequisites may take: it is one message.
	maxShared = 60 << 10
	// maxFailures is at how many RRsets alone a server may fail (SERVFAIL) that takes none, until it is to blame and not they.
	maxFailures = 8
)

// buildSharedMessage makes an UPDATE that applies the units if each RRset is as it was read. It has no SOA.
func buildSharedMessage(zone string, _, _ rrset.SOA, batch []updateUnit) *dns.Msg {
	m := new(dns.Msg)
	m.SetUpdate(zone)
	for _, u := range batch {
		m.Answer = append(m.Answer, u.requires...)
	}
	addUnits(m, batch)
	return m
}

// requireRRset makes the prerequisites that an RRset is as it was read. Its TTL is no part of them.
func requireRRset(s rrset.RRset) ([]dns.RR, error) {
	s.TTL = 0
	return toRecords(s, s.Rdata)
}

// requireNothing makes the prerequisite that there is no such RRset.
func requireNothing(k rrset.Key) []dns.RR {
	return []dns.RR{&dns.ANY{Hdr: dns.RR_Header{Name: k.Name, Rrtype: k.Type, Class: dns.ClassNONE}}}
}

// addPrerequisites gives the units of changes their prerequisites. One that does not fit into a
// message is refused.
func addPrerequisites(units []updateUnit, changes plan.Changes, refused map[rrset.Key]error) (fitting []updateUnit) {
	was := map[rrset.Key]rrset.RRset{}
	for _, sets := range [][]rrset.RRset{changes.UpdateOld, changes.Delete} {
		for _, s := range sets {
			was[s.Key] = s
		}
	}
	for _, u := range units {
		err := u.addRequired(was)
		if u = u.withSize(); err == nil && u.bytes > maxShared {
			err = fmt.Errorf("the change of %s takes more than one message (%d bytes), and where others write as well it has to be one: declare fewer values", u.keys[0], u.bytes)
		}
		if err == nil {
			fitting = append(fitting, u)
			continue
		}
		for _, k := range u.keys {
			refused[k] = err
		}
	}
	return fitting
}

func (u *updateUnit) addRequired(was map[rrset.Key]rrset.RRset) error {
	for _, k := range u.keys {
		set, there := was[k]
		if !there {
			u.requires = append(u.requires, requireNothing(k)...)
			continue
		}
		required, err := requireRRset(set)
		if err != nil {
			return err
		}
		u.requires = append(u.requires, required...)
	}
	return nil
}

// noteSuccess remembers that the server took a message, and the SOA that it then has if we set it.
func (a *applyRun) noteSuccess(soa rrset.SOA) {
	a.probed = a.probed || a.target.Shared
	if !a.target.Shared {
		a.result.SOA = soa
	}
}

// noteFailure counts the RRsets that a server failed at alone. Where the SOA is not ours, nothing else shows whether it can write.
func (a *applyRun) noteFailure(err error) {
	if e, ok := errors.AsType[*wire.Error](err); a.target.Shared && !a.probed && ok && e.Rcode == dns.RcodeServerFailure {
		a.failures++
	}
}

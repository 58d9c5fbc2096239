package wire

import (
	"fmt"
	"iter"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// transferAssembler collects the records of a transfer's messages (RFC 5936 section 2.2, RFC 1995 section 4).
type transferAssembler struct {
	// from is the serial of an IXFR's request, nil for an AXFR.
	from   *uint32
	state  assemblerState
	result TransferResult
	// messages counts those that arrived; complete is true once the closing SOA has arrived.
	messages int
	complete bool
	used     usage
	// zone is the canonical name of the zone. Records outside are passed over, as BIND does, and count all the same.
	zone string
	// owner is that of the last record: the next one usually has the same, and shares the string. outside is true if it is outside of
	// the zone.
	owner   string
	outside bool
}

type assemblerState int

const (
	atStart   assemblerState = iota // nothing seen
	atSecond                        // the first SOA seen: the next record shows whether the transfer is full or incremental
	inFull                          // records of a full transfer
	inDeleted                       // an IXFR step's deleted records
	inAdded                         // an IXFR step's added records
)

func newAssembler(m *dns.Msg, limits Limits) *transferAssembler {
	a := &transferAssembler{used: usage{limits: limits}}
	a.zone, _ = rrset.CanonicalName(m.Question[0].Name) // One that has none cannot be asked for.
	if len(m.Ns) > 0 {
		if soa, ok := m.Ns[0].(*dns.SOA); ok {
			a.from = &soa.Serial
		}
	}
	return a
}

// addMessage processes one message, given by its rcode and the records of its answer section.
func (a *transferAssembler) addMessage(rcode, answers int, records iter.Seq2[dns.RR, error]) error {
	a.messages++
	if rcode != dns.RcodeSuccess {
		if a.from != nil && (rcode == dns.RcodeNotImplemented || rcode == dns.RcodeFormatError) {
			return errNeedFull
		}
		return &Error{Rcode: rcode}
	}
	if answers == 0 {
		return fmt.Errorf("%w: a message of the transfer has no records", ErrReply)
	}
	for rr, err := range records {
		if err != nil {
			return err
		}
		if a.complete {
			return fmt.Errorf("%w: records after the closing SOA", ErrReply)
		}
		if err := a.handleRecord(rr); err != nil {
			return err
		}
	}
	if a.state == atSecond && a.from != nil {
		return a.handleSingleSOA(answers)
	}
	return nil
}

// handleSingleSOA handles the first message of an IXFR if it has nothing but the server's SOA.
func (a *transferAssembler) handleSingleSOA(records int) error {
	switch serial := a.result.SOA.Serial; {
	case records != 1 || a.messages != 1:
	case serial == *a.from:
		a.result.UpToDate, a.complete = true, true
	case rrset.SerialLess(serial, *a.from):
		return errNeedFull // The server's zone is older than what we have: it was recreated.
	}
	return nil // The rest follows in further messages.
}

func (a *transferAssembler) handleRecord(rr dns.RR) error {
	soa, isSOA := rr.(*dns.SOA)
	if isSOA {
		if err := a.used.add(len(soa.Ns) + len(soa.Mbox)); err != nil {
			return err
		}
	}
	switch {
	case a.state == atStart && !isSOA:
		return fmt.Errorf("%w: the transfer does not begin with an SOA", ErrReply)
	case a.state == atStart:
		a.result.SOA, a.state = rrset.FromSOA(soa), atSecond
		return nil
	case a.state == atSecond && isSOA && a.from != nil && soa.Serial == *a.from && soa.Serial != a.result.SOA.Serial:
		a.beginDelta(soa)
		return nil
	case a.state == atSecond:
		a.state, a.result.Full, a.result.Records = inFull, true, []Record{}
	}
	if isSOA {
		return a.handleSOA(soa)
	}
	return a.storeRecord(rr)
}

// handleSOA handles an SOA after the first records.
func (a *transferAssembler) handleSOA(soa *dns.SOA) error {
	last := a.result.SOA.Serial
	switch a.state {
	case inFull:
		if soa.Serial != last {
			return fmt.Errorf("%w: the transfer began with serial %d and ended with %d", ErrReply, last, soa.Serial)
		}
		a.complete = true
	case inDeleted:
		a.currentDelta().To, a.state = rrset.FromSOA(soa), inAdded
	default:
		to := a.currentDelta().To.Serial
		switch {
		case soa.Serial != to:
			return fmt.Errorf("%w: a step of the transfer begins at serial %d, but the previous one ended at %d", ErrReply, soa.Serial, to)
		case to == last:
			a.complete = true
		default:
			a.beginDelta(soa)
		}
	}
	return nil
}

func (a *transferAssembler) beginDelta(soa *dns.SOA) {
	a.result.Deltas = append(a.result.Deltas, Delta{From: rrset.FromSOA(soa)})
	a.state = inDeleted
}

func (a *transferAssembler) currentDelta() *Delta { return &a.result.Deltas[len(a.result.Deltas)-1] }

func (a *transferAssembler) storeRecord(rr dns.RR) error {
	if h := rr.Header(); h.Class != dns.ClassINET || !isZoneData(h.Rrtype) {
		return a.used.add(0)
	}
	key, ttl, data := rrset.FromRR(rr)
	text := len(data)
	if key.Name == a.owner {
		key.Name = a.owner
	} else {
		a.owner, a.outside, text = key.Name, !rrset.IsSubdomain(key.Name, a.zone), text+len(key.Name)
	}
	if err := a.used.add(text); err != nil {
		return err
	}
	if a.outside {
		return nil
	}
	record := Record{Key: key, TTL: ttl, Rdata: data}
	switch a.state {
	case inFull:
		a.result.Records = append(a.result.Records, record)
	case inDeleted:
		a.currentDelta().Deleted = append(a.currentDelta().Deleted, record)
	default:
		a.currentDelta().Added = append(a.currentDelta().Added, record)
	}
	return nil
}

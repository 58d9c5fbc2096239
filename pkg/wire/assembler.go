package wire

import (
	"fmt"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
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
}

type assemblerState int

const (
	atStart   assemblerState = iota // nothing seen
	atSecond                        // the first SOA seen: the next record shows whether the transfer is full or incremental
	inFull                          // records of a full transfer
	inDeleted                       // an IXFR step's deleted records
	inAdded                         // an IXFR step's added records
)

func newAssembler(m *dns.Msg) *transferAssembler {
	a := &transferAssembler{}
	if len(m.Ns) > 0 {
		if soa, ok := m.Ns[0].(*dns.SOA); ok {
			a.from = &soa.Serial
		}
	}
	return a
}

// addMessage processes one message.
func (a *transferAssembler) addMessage(m *dns.Msg) error {
	a.messages++
	if m.Rcode != dns.RcodeSuccess {
		if a.from != nil && (m.Rcode == dns.RcodeNotImplemented || m.Rcode == dns.RcodeFormatError) {
			return errNeedFull
		}
		return &Error{Rcode: m.Rcode}
	}
	if len(m.Answer) == 0 {
		return fmt.Errorf("%w: a message of the transfer has no records", ErrReply)
	}
	for _, rr := range m.Answer {
		if a.complete {
			return fmt.Errorf("%w: records after the closing SOA", ErrReply)
		}
		if err := a.handleRecord(rr); err != nil {
			return err
		}
	}
	if a.state == atSecond && a.from != nil {
		return a.handleSingleSOA(len(m.Answer))
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
	a.storeRecord(rr)
	return nil
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

func (a *transferAssembler) storeRecord(rr dns.RR) {
	if rr.Header().Class != dns.ClassINET {
		return
	}
	key, ttl, data := rrset.FromRR(rr)
	record := Record{Key: key, TTL: ttl, Rdata: data}
	switch a.state {
	case inFull:
		a.result.Records = append(a.result.Records, record)
	case inDeleted:
		a.currentDelta().Deleted = append(a.currentDelta().Deleted, record)
	default:
		a.currentDelta().Added = append(a.currentDelta().Added, record)
	}
}

package wire

import (
	"fmt"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// assembler puts the records of a transfer's messages together (RFC 5936 section 2.2, RFC 1995 section 4).
type assembler struct {
	// from is the serial of an IXFR's request, nil for an AXFR.
	from   *uint32
	state  state
	result TransferResult
	// messages counts what has arrived; complete is true when the closing SOA was among it.
	messages int
	complete bool
}

type state int

const (
	atStart   state = iota // nothing seen
	atSecond               // the first SOA seen: the next record tells a full transfer from an incremental one
	inFull                 // records of a full transfer
	inDeleted              // an IXFR step's deleted records
	inAdded                // an IXFR step's added records
)

func newAssembler(m *dns.Msg) *assembler {
	a := &assembler{}
	if len(m.Ns) > 0 {
		if soa, ok := m.Ns[0].(*dns.SOA); ok {
			a.from = &soa.Serial
		}
	}
	return a
}

// add takes one message.
func (a *assembler) add(m *dns.Msg) error {
	a.messages++
	if m.Rcode != dns.RcodeSuccess {
		if a.from != nil && (m.Rcode == dns.RcodeNotImplemented || m.Rcode == dns.RcodeFormatError) {
			return errNeedFull
		}
		return &Error{Rcode: m.Rcode}
	}
	if len(m.Answer) == 0 {
		return fmt.Errorf("%w: a message of the transfer holds no records", ErrReply)
	}
	for _, rr := range m.Answer {
		if a.complete {
			return fmt.Errorf("%w: records after the closing SOA", ErrReply)
		}
		if err := a.record(rr); err != nil {
			return err
		}
	}
	if a.state == atSecond && a.from != nil {
		return a.single(len(m.Answer))
	}
	return nil
}

// single judges an IXFR's first message when it holds nothing but the server's SOA.
func (a *assembler) single(records int) error {
	switch serial := a.result.SOA.Serial; {
	case records != 1 || a.messages != 1:
	case serial == *a.from:
		a.result.UpToDate, a.complete = true, true
	case rrset.SerialLess(serial, *a.from):
		return errNeedFull // The server's zone is older than what we have: it was made anew.
	}
	return nil // The rest follows in further messages.
}

func (a *assembler) record(rr dns.RR) error {
	soa, isSOA := rr.(*dns.SOA)
	switch {
	case a.state == atStart && !isSOA:
		return fmt.Errorf("%w: the transfer does not begin with an SOA", ErrReply)
	case a.state == atStart:
		a.result.SOA, a.state = FromSOA(soa), atSecond
		return nil
	case a.state == atSecond && isSOA && a.from != nil && soa.Serial == *a.from && soa.Serial != a.result.SOA.Serial:
		a.begin(soa)
		return nil
	case a.state == atSecond:
		a.state, a.result.Full, a.result.Records = inFull, true, []Record{}
	}
	if isSOA {
		return a.soa(soa)
	}
	a.keep(rr)
	return nil
}

// soa handles an SOA behind the first records.
func (a *assembler) soa(soa *dns.SOA) error {
	last := a.result.SOA.Serial
	switch a.state {
	case inFull:
		if soa.Serial != last {
			return fmt.Errorf("%w: the transfer began with serial %d and ended with %d", ErrReply, last, soa.Serial)
		}
		a.complete = true
	case inDeleted:
		a.step().To, a.state = FromSOA(soa), inAdded
	default:
		to := a.step().To.Serial
		switch {
		case soa.Serial != to:
			return fmt.Errorf("%w: a step of the transfer begins at serial %d, the one before ended at %d", ErrReply, soa.Serial, to)
		case to == last:
			a.complete = true
		default:
			a.begin(soa)
		}
	}
	return nil
}

func (a *assembler) begin(soa *dns.SOA) {
	a.result.Deltas = append(a.result.Deltas, Delta{From: FromSOA(soa)})
	a.state = inDeleted
}

func (a *assembler) step() *Delta { return &a.result.Deltas[len(a.result.Deltas)-1] }

func (a *assembler) keep(rr dns.RR) {
	if rr.Header().Class != dns.ClassINET {
		return
	}
	key, ttl, data := rrset.FromRR(rr)
	record := Record{Key: key, TTL: ttl, Rdata: data}
	switch a.state {
	case inFull:
		a.result.Records = append(a.result.Records, record)
	case inDeleted:
		a.step().Deleted = append(a.step().Deleted, record)
	default:
		a.step().Added = append(a.step().Added, record)
	}
}

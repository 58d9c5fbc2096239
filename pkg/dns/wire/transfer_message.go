package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

const (
	headerSize = 12
	// rrHeaderSize is the size of what follows the owner name of a record: type, class, TTL and the length of the rdata.
	rrHeaderSize = 10
)

// transferMessage is one message of a transfer. Its records are decoded one at a time: decoded at once, they could take a
// hundred times the memory of the message.
type transferMessage struct {
	// Msg has the header, the question and the TSIG record.
	*dns.Msg

	raw            []byte
	answers, start int // how many records the answer section has, and where it starts
}

// unpackTransferMessage checks that the message has all records that its header counts, and decodes all but these.
func unpackTransferMessage(raw []byte) (transferMessage, error) {
	l, err := layoutOf(raw)
	if err != nil {
		return transferMessage{}, err
	}
	head := bytes.Clone(raw[:l.start])
	clear(head[6:headerSize]) // the numbers of records
	m := transferMessage{Msg: new(dns.Msg), raw: raw, answers: countAt(raw, 6), start: l.start}
	if err := m.Unpack(head); err != nil {
		return transferMessage{}, err
	}
	if countAt(raw, 10) > 0 && l.lastType == dns.TypeTSIG {
		tsig, _, err := dns.UnpackRR(raw, l.last)
		if err != nil {
			return transferMessage{}, err
		}
		m.Extra = []dns.RR{tsig}
	}
	return m, nil
}

// records yields the records of the answer section.
func (m transferMessage) records() iter.Seq2[dns.RR, error] {
	return func(yield func(dns.RR, error) bool) {
		off := m.start
		for range m.answers {
			if err := checkListSize(m.raw, off); err != nil {
				yield(nil, err)
				return
			}
			rr, next, err := rrset.UnpackRR(m.raw, off)
			if err != nil {
				err = fmt.Errorf("%w: %w", ErrReply, err)
			}
			if !yield(rr, err) || err != nil {
				return
			}
			off = next
		}
	}
}

// maxListSize bounds the rdata of a type with a list of names, in bytes: each two of them may stand for a name.
const maxListSize = 4 << 10

// checkListSize fails if the record at off has a list of names that is too long to be decoded.
func checkListSize(raw []byte, off int) error {
	end, err := skipName(raw, off)
	if err != nil {
		return err
	}
	if binary.BigEndian.Uint16(raw[end:]) == dns.TypeHIP && countAt(raw, end+8) > maxListSize {
		return &LimitError{Subject: "a HIP record", What: fmt.Sprintf("%d bytes", maxListSize)}
	}
	return nil
}

// layout is where the sections of a message are.
type layout struct {
	// start is where the first record begins, last where the last one does; 0 if there is none.
	start, last int
	lastType    uint16
}

// layoutOf finds the records of a message without decoding them.
func layoutOf(raw []byte) (l layout, err error) {
	if len(raw) < headerSize {
		return l, dns.ErrShortRead
	}
	off := headerSize
	for range countAt(raw, 4) {
		if off, err = skipName(raw, off); err != nil {
			return l, err
		}
		off += 4
	}
	if off > len(raw) {
		return l, dns.ErrShortRead
	}
	l.start = off
	for range countAt(raw, 6) + countAt(raw, 8) + countAt(raw, 10) {
		l.last = off
		if off, err = skipName(raw, off); err != nil {
			return l, err
		}
		if off+rrHeaderSize > len(raw) {
			return l, dns.ErrShortRead
		}
		l.lastType = binary.BigEndian.Uint16(raw[off:])
		off += rrHeaderSize + countAt(raw, off+8)
		if off > len(raw) {
			return l, dns.ErrShortRead
		}
	}
	return l, nil
}

// countAt reads the 16-bit number at an offset.
func countAt(raw []byte, off int) int { return int(binary.BigEndian.Uint16(raw[off:])) }

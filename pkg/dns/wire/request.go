package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// request is one message ready to be sent, with what is needed to check the replies to it.
type request struct {
	id       uint16
	opcode   int
	question []dns.Question
	raw      []byte
	verifier *replyVerifier // nil when the request is not signed
}

// clock returns the time for signatures.
var clock = time.Now

// newRequest numbers, signs and packs a copy of m. A TSIG record in m is replaced. The error is an ErrUnsendable.
func newRequest(m *dns.Msg, key *Key) (*request, error) {
	c := *m
	c.Id = dns.Id()
	c.Extra = slices.DeleteFunc(slices.Clone(m.Extra), func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeTSIG })
	r := &request{id: c.Id, opcode: c.Opcode, question: c.Question}
	if key == nil {
		raw, err := c.Pack()
		if err != nil {
			return nil, fmt.Errorf("%w: packing it: %w", ErrUnsendable, err)
		}
		r.raw = raw
		return r, nil
	}
	if err := key.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsendable, err)
	}
	c.SetTsig(key.Name, key.Algorithm, fudge, clock().Unix())
	raw, mac, err := dns.TsigGenerate(&c, key.Secret, "", false)
	if err != nil {
		return nil, fmt.Errorf("%w: packing and signing it: %w", ErrUnsendable, err)
	}
	r.raw = raw
	r.verifier, err = newVerifier(*key, mac)
	return r, err
}

// parseReply checks one raw message. The error is ErrReply if it is no reply to r at all (over UDP: keep listening), else an *Error
// without operation, server and zone.
func (r *request) parseReply(raw []byte) (*dns.Msg, error) {
	m, err := unpackMessage(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReply, err)
	}
	if !r.isAnsweredBy(m) || !hasAllRecords(raw, m) {
		return nil, ErrReply
	}
	return m, r.verify(raw, m)
}

// unpackMessage decodes a message, record by record if miekg/dns does not know how to decode one of them.
func unpackMessage(raw []byte) (*dns.Msg, error) {
	m := new(dns.Msg)
	err := m.Unpack(raw)
	l, errLayout := layoutOf(raw)
	if err == nil || errLayout != nil {
		return m, err
	}
	head := bytes.Clone(raw[:l.start])
	clear(head[6:headerSize]) // the numbers of records
	if err := m.Unpack(head); err != nil {
		return nil, err
	}
	off := l.start
	for i, section := range []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
		for range countAt(raw, 6+2*i) {
			var rr dns.RR
			if rr, off, err = rrset.UnpackRR(raw, off); err != nil {
				return nil, err
			}
			*section = append(*section, rr)
		}
	}
	if opt := m.IsEdns0(); opt != nil {
		m.Rcode |= opt.ExtendedRcode()
	}
	return m, nil
}

// parseTransferReply is parseReply for a message of a transfer.
func (r *request) parseTransferReply(raw []byte) (transferMessage, error) {
	m, err := unpackTransferMessage(raw)
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrReply, err)
	}
	if !r.isAnsweredBy(m.Msg) {
		return m, ErrReply
	}
	return m, r.verify(raw, m.Msg)
}

// isAnsweredBy compares the header and the question of a message with those of r.
func (r *request) isAnsweredBy(m *dns.Msg) bool {
	return m.Id == r.id && m.Response && m.Opcode == r.opcode && r.matchesQuestion(m)
}

// verify verifies the signature of a reply, if r is signed.
func (r *request) verify(raw []byte, m *dns.Msg) error {
	if r.verifier == nil {
		return nil
	}
	if err := r.verifier.verifyReply(raw, m, clock()); err != nil {
		return &Error{Rcode: m.Rcode, Sent: true, Err: err}
	}
	if t := m.IsTsig(); t != nil && t.Error != 0 {
		return &Error{Rcode: m.Rcode, TSIGError: t.Error}
	}
	return nil
}

// hasAllRecords compares the message with the counts in its header; the parser accepts fewer records.
func hasAllRecords(raw []byte, m *dns.Msg) bool {
	for i, n := range []int{len(m.Question), len(m.Answer), len(m.Ns), len(m.Extra)} {
		if int(binary.BigEndian.Uint16(raw[4+2*i:])) != n {
			return false
		}
	}
	return true
}

// matchesQuestion compares the question sections. Error replies, updates and later messages of a transfer may have none.
func (r *request) matchesQuestion(m *dns.Msg) bool {
	if len(m.Question) == 0 {
		return m.Rcode != dns.RcodeSuccess || r.opcode != dns.OpcodeQuery || r.isTransfer()
	}
	a, b := r.question[0], m.Question[0]
	return len(m.Question) == 1 && a.Qtype == b.Qtype && a.Qclass == b.Qclass && strings.EqualFold(a.Name, b.Name)
}

func (r *request) isTransfer() bool {
	return r.question[0].Qtype == dns.TypeAXFR || r.question[0].Qtype == dns.TypeIXFR
}

// bindToContext makes nc obey the deadline and the cancellation of ctx until the returned function is called.
func bindToContext(ctx context.Context, nc net.Conn) (release func()) {
	deadline, _ := ctx.Deadline()
	_ = nc.SetDeadline(deadline)
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = nc.SetDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	return func() {
		if !stop() {
			<-interrupted
		}
	}
}

// contextCause prefers the context's error, if any, to the socket time-out that it caused.
func contextCause(ctx context.Context, err error) error {
	if ctxErr := context.Cause(ctx); ctxErr != nil {
		return ctxErr
	}
	return err
}

// writeMessage writes one message with its length prefix (RFC 1035 section 4.2.2), in one segment if possible.
func writeMessage(w io.Writer, raw []byte) error {
	if len(raw) > dns.MaxMsgSize {
		return fmt.Errorf("%w: it has %d bytes, and DNS permits at most %d", ErrUnsendable, len(raw), dns.MaxMsgSize)
	}
	buf := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(raw)), uint16(len(raw))) //nolint:gosec // checked above
	_, err := w.Write(append(buf, raw...))
	return err
}

// maxReply bounds a reply that is no part of a transfer, in bytes: decoded it may take a hundred times as much.
const maxReply = 16 << 10

// readMessage reads one message with its length prefix.
func readMessage(r io.Reader, maxSize int) ([]byte, error) {
	var prefix [2]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	size := countAt(prefix[:], 0)
	if size > maxSize {
		return nil, fmt.Errorf("%w: it has %d bytes, and at most %d are read", ErrReply, size, maxSize)
	}
	raw := make([]byte, size)
	if _, err := io.ReadFull(r, raw); err != nil {
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	return raw, nil
}

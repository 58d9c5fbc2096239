package wire

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// request is one message ready to be sent, with all that is needed to judge the replies to it.
type request struct {
	id       uint16
	opcode   int
	question []dns.Question
	raw      []byte
	verifier *verifier // nil when the request is not signed
}

// clock tells the time for signatures.
var clock = time.Now

// newRequest numbers, signs and packs a copy of m. A TSIG record in m is replaced.
func newRequest(m *dns.Msg, key *Key) (*request, error) {
	c := *m
	c.Id = dns.Id()
	c.Extra = slices.DeleteFunc(slices.Clone(m.Extra), func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeTSIG })
	r := &request{id: c.Id, opcode: c.Opcode, question: c.Question}
	if key == nil {
		raw, err := c.Pack()
		if err != nil {
			return nil, fmt.Errorf("packing the message: %w", err)
		}
		r.raw = raw
		return r, nil
	}
	if err := key.Validate(); err != nil {
		return nil, err
	}
	c.SetTsig(key.Name, key.Algorithm, fudge, clock().Unix())
	raw, mac, err := dns.TsigGenerate(&c, key.Secret, "", false)
	if err != nil {
		return nil, fmt.Errorf("packing and signing the message: %w", err)
	}
	r.raw = raw
	r.verifier, err = newVerifier(*key, mac)
	return r, err
}

// verdict turns one raw message into the reply to r. The error is ErrReply when it is no reply to r at all (over UDP:
// go on listening), else an *Error without operation, server and zone.
func (r *request) verdict(raw []byte) (*dns.Msg, error) {
	m := new(dns.Msg)
	if err := m.Unpack(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReply, err)
	}
	if m.Id != r.id || !m.Response || m.Opcode != r.opcode || !r.answers(m) || !whole(raw, m) {
		return nil, ErrReply
	}
	if r.verifier == nil {
		return m, nil
	}
	if err := r.verifier.check(raw, m, clock()); err != nil {
		return m, &Error{Rcode: m.Rcode, Sent: true, Err: err}
	}
	if t := m.IsTsig(); t != nil && t.Error != 0 {
		return m, &Error{Rcode: m.Rcode, TSIGError: t.Error}
	}
	return m, nil
}

// whole tells whether the message holds as many records as its header says; the parser forgives when some are missing.
func whole(raw []byte, m *dns.Msg) bool {
	for i, n := range []int{len(m.Question), len(m.Answer), len(m.Ns), len(m.Extra)} {
		if int(binary.BigEndian.Uint16(raw[4+2*i:])) != n {
			return false
		}
	}
	return true
}

// answers compares the question sections. Error replies, updates and later messages of a transfer may have none.
func (r *request) answers(m *dns.Msg) bool {
	if len(m.Question) == 0 {
		return m.Rcode != dns.RcodeSuccess || r.opcode != dns.OpcodeQuery || r.isTransfer()
	}
	a, b := r.question[0], m.Question[0]
	return len(m.Question) == 1 && a.Qtype == b.Qtype && a.Qclass == b.Qclass && strings.EqualFold(a.Name, b.Name)
}

func (r *request) isTransfer() bool {
	return r.question[0].Qtype == dns.TypeAXFR || r.question[0].Qtype == dns.TypeIXFR
}

// bind makes nc obey ctx: its deadline, and its cancellation. Once the returned function has returned, ctx touches nc no
// more.
func bind(ctx context.Context, nc net.Conn) (release func()) {
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

// cause prefers the context's own error to the time-out of the socket that it provoked.
func cause(ctx context.Context, err error) error {
	if ctxErr := context.Cause(ctx); ctxErr != nil {
		return ctxErr
	}
	return err
}

// writeStream writes one message with its length in front (RFC 1035 section 4.2.2), in one segment if possible.
func writeStream(w io.Writer, raw []byte) error {
	if len(raw) > dns.MaxMsgSize {
		return fmt.Errorf("the message has %d bytes, more than the %d that DNS permits", len(raw), dns.MaxMsgSize)
	}
	buf := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(raw)), uint16(len(raw))) //nolint:gosec // checked above
	_, err := w.Write(append(buf, raw...))
	return err
}

func readStream(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	raw := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(r, raw); err != nil {
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	return raw, nil
}

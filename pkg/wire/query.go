package wire

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

// DefaultTimeout bounds a question or NOTIFY, its one repetition and its change to TCP included.
const DefaultTimeout = 2 * time.Second

// udpSize is the EDNS buffer size that avoids fragmentation (DNS flag day 2020).
const udpSize = 1232

// Reply is a server's answer to a question, whatever its response code.
type Reply struct {
	Msg *dns.Msg
	// RTT is the time from sending the answered attempt to its answer.
	RTT time.Duration
}

// Option changes how a question is asked.
type Option func(*asking)

type asking struct {
	key     *Key
	timeout time.Duration
	tcp     bool
	expire  bool
}

// WithKey signs the question; the reply must then be signed, too. A nil key is no key.
func WithKey(key *Key) Option { return func(a *asking) { a.key = key } }

// WithTimeout replaces DefaultTimeout. The context's deadline applies as well.
func WithTimeout(d time.Duration) Option { return func(a *asking) { a.timeout = d } }

// WithTCP asks over TCP at once.
func WithTCP() Option { return func(a *asking) { a.tcp = true } }

// WithExpire asks a secondary about a zone's SOA when it gives the zone up; see Expire.
func WithExpire() Option { return func(a *asking) { a.expire = true } }

// Expire is in what time the server that sent a reply about an SOA gives the zone up if it reaches no primary before (EDNS
// EXPIRE, RFC 7314); 0 when it does not say. A primary says the SOA's expire.
func Expire(m *dns.Msg) time.Duration {
	opt := m.IsEdns0()
	if opt == nil {
		return 0
	}
	for _, o := range opt.Option {
		if e, ok := o.(*dns.EDNS0_EXPIRE); ok && !e.Empty {
			return time.Duration(e.Expire) * time.Second
		}
	}
	return 0
}

// Query asks a server for one name and type, without recursion: over UDP, repeated once when half of the time has
// passed in silence, and over TCP when the reply is truncated. Every reply is a success, REFUSED and the like included;
// the error is an *Error and means that there was none, or none with a valid signature.
func Query(ctx context.Context, server netip.AddrPort, name string, qtype uint16, opts ...Option) (Reply, error) {
	m := &dns.Msg{
		MsgHdr:   dns.MsgHdr{Opcode: dns.OpcodeQuery},
		Question: []dns.Question{{Name: name, Qtype: qtype, Qclass: dns.ClassINET}},
	}
	m.SetEdns0(udpSize, false)
	return ask(ctx, "query", server, m, opts)
}

// ask sends a message that may be repeated.
func ask(ctx context.Context, op string, server netip.AddrPort, m *dns.Msg, opts []Option) (Reply, error) {
	a := asking{timeout: DefaultTimeout}
	for _, o := range opts {
		o(&a)
	}
	if opt := m.IsEdns0(); a.expire && opt != nil {
		opt.Option = append(opt.Option, &dns.EDNS0_EXPIRE{Code: dns.EDNS0EXPIRE, Empty: true})
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()

	reply, err := a.exchange(ctx, server, m)
	if err != nil {
		return reply, fill(err, op, server, m.Question[0].Name)
	}
	return reply, nil
}

func (a asking) exchange(ctx context.Context, server netip.AddrPort, m *dns.Msg) (Reply, error) {
	if a.tcp {
		return roundTrip(ctx, "tcp", server, m, a.key)
	}
	half, cancel := context.WithTimeout(ctx, remaining(ctx)/2)
	reply, err := roundTrip(half, "udp", server, m, a.key)
	cancel()
	if err != nil && isTimeout(err) && ctx.Err() == nil {
		reply, err = roundTrip(ctx, "udp", server, m, a.key)
	}
	if err == nil && reply.Msg.Truncated {
		return roundTrip(ctx, "tcp", server, m, a.key)
	}
	return reply, err
}

func remaining(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline()
	return time.Until(deadline)
}

// roundTrip sends one copy of m on a connection of its own and waits for the reply.
func roundTrip(ctx context.Context, network string, server netip.AddrPort, m *dns.Msg, key *Key) (Reply, error) {
	req, err := newRequest(m, key)
	if err != nil {
		return Reply{}, err
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, server.String())
	if err != nil {
		return Reply{}, cause(ctx, err)
	}
	defer nc.Close() //nolint:errcheck // nothing is buffered
	defer bind(ctx, nc)()

	start := time.Now()
	var msg *dns.Msg
	if network == "udp" {
		msg, err = datagram(nc, req)
	} else {
		msg, err = stream(nc, req)
	}
	if err != nil {
		return Reply{Msg: msg}, cause(ctx, err)
	}
	return Reply{Msg: msg, RTT: time.Since(start)}, nil
}

// datagram listens until a reply to the request arrives; anything else that arrives is ignored.
func datagram(nc net.Conn, req *request) (*dns.Msg, error) {
	if _, err := nc.Write(req.raw); err != nil {
		return nil, err
	}
	buf := make([]byte, 4*udpSize)
	for {
		n, err := nc.Read(buf)
		if err != nil {
			return nil, err
		}
		msg, err := req.verdict(buf[:n])
		if !errors.Is(err, ErrReply) {
			return msg, err
		}
	}
}

func stream(nc net.Conn, req *request) (*dns.Msg, error) {
	if err := writeStream(nc, req.raw); err != nil {
		return nil, err
	}
	raw, err := readStream(nc)
	if err != nil {
		return nil, err
	}
	return req.verdict(raw)
}

// fill makes any error an *Error that says what was asked of whom.
func fill(err error, op string, server netip.AddrPort, zone string) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Err: err}
	}
	e.Op, e.Server, e.Zone = op, server.String(), zone
	return e
}

// Notify tells a server that the zone has a new serial (RFC 1996), signed when key is not nil. An error reply is an
// *Error with its rcode.
func Notify(ctx context.Context, server netip.AddrPort, zone string, serial uint32, key *Key) error {
	m := &dns.Msg{
		MsgHdr:   dns.MsgHdr{Opcode: dns.OpcodeNotify, Authoritative: true},
		Question: []dns.Question{{Name: zone, Qtype: dns.TypeSOA, Qclass: dns.ClassINET}},
	}
	// The SOA is a hint (RFC 1996 section 3.7): only its serial matters.
	hdr := dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET}
	m.Answer = []dns.RR{&dns.SOA{Hdr: hdr, Ns: ".", Mbox: ".", Serial: serial}}

	reply, err := ask(ctx, "notify", server, m, []Option{WithKey(key)})
	if err != nil {
		return err
	}
	if rcode := reply.Msg.Rcode; rcode != dns.RcodeSuccess {
		return &Error{Op: "notify", Server: server.String(), Zone: zone, Rcode: rcode}
	}
	return nil
}

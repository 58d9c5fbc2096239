package wire

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// DefaultTimeout bounds a query or NOTIFY, including its repetitions and its retry over TCP.
const DefaultTimeout = 2 * time.Second

// copies is how many copies of a message are sent over UDP while no reply comes: the first half of them from one port, the others from another
// one, which a load balancer may lead to another server.
const copies = 6

// udpSize is the EDNS buffer size that avoids fragmentation (DNS flag day 2020).
const udpSize = 1232

// Reply is a server's answer to a query, whatever its response code.
type Reply struct {
	Msg *dns.Msg
	// RTT is the time from sending the question, from the port that got the answer, to the answer.
	RTT time.Duration
}

// Option changes how a query is sent.
type Option func(*queryOptions)

type queryOptions struct {
	key     *Key
	timeout time.Duration
	tcp     bool
	// extra are EDNS options.
	extra []dns.EDNS0
	// dnssec sets the DO bit.
	dnssec bool
	// maxReply bounds a reply over TCP.
	maxReply int
}

// WithKey signs the query; the reply must then be signed, too. A nil key is no key.
func WithKey(key *Key) Option { return func(a *queryOptions) { a.key = key } }

// WithTimeout replaces DefaultTimeout. The context's deadline applies as well.
func WithTimeout(d time.Duration) Option { return func(a *queryOptions) { a.timeout = d } }

// WithTCP sends the query over TCP.
func WithTCP() Option { return func(a *queryOptions) { a.tcp = true } }

// WithReplySize permits a reply of about that many bytes, up to the largest that there is. Others are bounded by less, as decoded
// they may take a hundred times as much: it is for who knows what there is to come.
func WithReplySize(bytes int) Option {
	return func(a *queryOptions) { a.maxReply = min(max(a.maxReply, bytes), dns.MaxMsgSize) }
}

// WithExpire adds the EDNS EXPIRE option to a query for an SOA; see Expire.
func WithExpire() Option {
	return func(a *queryOptions) {
		a.extra = append(a.extra, &dns.EDNS0_EXPIRE{Code: dns.EDNS0EXPIRE, Empty: true})
	}
}

// WithDNSSEC asks for signatures and proofs of non-existence (the DO bit of RFC 3225).
func WithDNSSEC() Option { return func(a *queryOptions) { a.dnssec = true } }

// WithNSID asks the server what it calls itself; see NSID.
func WithNSID() Option {
	return func(a *queryOptions) { a.extra = append(a.extra, &dns.EDNS0_NSID{Code: dns.EDNS0NSID}) }
}

// Expire is how long the server that sent an SOA will go on to serve the zone if it reaches no primary (EDNS EXPIRE, RFC 7314); 0 if the
// reply does not say. A primary sends the SOA's expire value.
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

// Query asks a server for one name and type, without recursion: over UDP, repeated a few times while there is no reply, and over TCP
// if the reply is truncated. Every reply is a success, including REFUSED; the error is an *Error and means that there was no reply,
// or none with a valid signature.
func Query(ctx context.Context, server netip.AddrPort, name string, qtype uint16, opts ...Option) (Reply, error) {
	m := &dns.Msg{
		MsgHdr:   dns.MsgHdr{Opcode: dns.OpcodeQuery},
		Question: []dns.Question{{Name: name, Qtype: qtype, Qclass: dns.ClassINET}},
	}
	m.SetEdns0(udpSize, false)
	return sendRepeatable(ctx, "query", server, m, opts)
}

// sendRepeatable sends a message whose repetition is harmless.
func sendRepeatable(ctx context.Context, op string, server netip.AddrPort, m *dns.Msg, opts []Option) (Reply, error) {
	a := queryOptions{timeout: DefaultTimeout, maxReply: maxReply}
	for _, o := range opts {
		o(&a)
	}
	if opt := m.IsEdns0(); opt != nil {
		opt.Option = append(opt.Option, a.extra...)
		opt.SetDo(a.dnssec)
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()

	reply, err := a.exchange(ctx, server, m)
	if err != nil {
		return reply, wrapError(err, op, server, m.Question[0].Name)
	}
	return reply, nil
}

func (a queryOptions) exchange(ctx context.Context, server netip.AddrPort, m *dns.Msg) (Reply, error) {
	if a.tcp {
		return a.roundTrip(ctx, "tcp", server, m)
	}
	half, cancel := context.WithTimeout(ctx, timeRemaining(ctx)/2)
	reply, err := a.roundTrip(half, "udp", server, m)
	cancel()
	if err != nil && isTimeout(err) && ctx.Err() == nil {
		reply, err = a.roundTrip(ctx, "udp", server, m)
	}
	if reply.Msg != nil && reply.Msg.Truncated { // Whoever truncated it: the reply over TCP is verified.
		return a.roundTrip(ctx, "tcp", server, m)
	}
	return reply, err
}

func timeRemaining(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline()
	return time.Until(deadline)
}

// roundTrip sends one copy of m on its own connection and returns the reply.
func (a queryOptions) roundTrip(ctx context.Context, network string, server netip.AddrPort, m *dns.Msg) (Reply, error) {
	req, err := newRequest(m, a.key)
	if err != nil {
		return Reply{}, err
	}
	nc, err := dial(ctx, network, server)
	if err != nil {
		return Reply{}, err
	}
	defer nc.Close()
	defer bindToContext(ctx, nc)()

	start := time.Now()
	var msg *dns.Msg
	if network == "udp" {
		msg, err = exchangeUDP(nc, req, a.timeout/copies)
	} else {
		msg, err = exchangeTCP(nc, req, a.maxReply)
	}
	if err != nil {
		return Reply{Msg: msg}, contextCause(ctx, err)
	}
	return Reply{Msg: msg, RTT: time.Since(start)}, nil
}

// datagrams are buffers for what a socket receives, nearly all of which is far smaller.
var datagrams = sync.Pool{New: func() any { return new([4 * udpSize]byte) }}

// exchangeUDP waits for a reply to the request, sends it again after each interval, and ignores anything else that arrives.
func exchangeUDP(nc net.Conn, req *request, interval time.Duration) (*dns.Msg, error) {
	if _, err := nc.Write(req.raw); err != nil {
		return nil, err
	}
	repetition := time.AfterFunc(interval, func() { repeat(nc, req.raw, interval) })
	defer repetition.Stop()
	buf := datagrams.Get().(*[4 * udpSize]byte)
	defer datagrams.Put(buf)
	for {
		n, err := nc.Read(buf[:])
		if err != nil {
			return nil, err
		}
		msg, err := req.parseReply(bytes.Clone(buf[:n]))
		if !errors.Is(err, ErrReply) {
			return msg, err
		}
	}
}

// repeat sends a message again and again until the connection is closed.
func repeat(nc net.Conn, raw []byte, interval time.Duration) {
	for {
		if _, err := nc.Write(raw); err != nil {
			return
		}
		time.Sleep(interval)
	}
}

func exchangeTCP(nc net.Conn, req *request, maxSize int) (*dns.Msg, error) {
	if err := writeMessage(nc, req.raw); err != nil {
		return nil, err
	}
	raw, err := readMessage(nc, maxSize)
	if err != nil {
		return nil, err
	}
	return req.parseReply(raw)
}

// wrapError makes an *Error with the request's operation, server and zone.
func wrapError(err error, op string, server netip.AddrPort, zone string) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Err: err}
	}
	e.Op, e.Server, e.Zone = op, server.String(), zone
	return e
}

// Notify sends a NOTIFY that the zone has a new serial (RFC 1996), signed if key is not nil. An error reply is an *Error
// with its rcode.
func Notify(ctx context.Context, server netip.AddrPort, zone string, serial uint32, key *Key) error {
	m := &dns.Msg{
		MsgHdr:   dns.MsgHdr{Opcode: dns.OpcodeNotify, Authoritative: true},
		Question: []dns.Question{{Name: zone, Qtype: dns.TypeSOA, Qclass: dns.ClassINET}},
	}
	// The SOA is a hint (RFC 1996 section 3.7): only its serial matters.
	hdr := dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET}
	m.Answer = []dns.RR{&dns.SOA{Hdr: hdr, Ns: ".", Mbox: ".", Serial: serial}}

	return sendNotify(ctx, server, m, WithKey(key))
}

// NotifyCDS sends a NOTIFY that a zone has other CDS or CDNSKEY records, to whoever its parent names (RFC 9859 section 4).
func NotifyCDS(ctx context.Context, server netip.AddrPort, zone string) error {
	return sendNotify(ctx, server, &dns.Msg{
		MsgHdr:   dns.MsgHdr{Opcode: dns.OpcodeNotify, Authoritative: true},
		Question: []dns.Question{{Name: zone, Qtype: dns.TypeCDS, Qclass: dns.ClassINET}},
	})
}

func sendNotify(ctx context.Context, server netip.AddrPort, m *dns.Msg, opts ...Option) error {
	reply, err := sendRepeatable(ctx, "notify", server, m, opts)
	if err != nil {
		return err
	}
	if rcode := reply.Msg.Rcode; rcode != dns.RcodeSuccess {
		return &Error{Op: "notify", Server: server.String(), Zone: m.Question[0].Name, Rcode: rcode}
	}
	return nil
}

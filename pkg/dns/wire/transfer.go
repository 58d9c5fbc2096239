package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Time limits of a transfer as a whole, and from one message to the next.
const (
	transferTimeout = 60 * time.Second
	messageTimeout  = 10 * time.Second
)

// Record is one resource record of class IN in canonical form.
type Record struct {
	rrset.Key
	TTL   uint32
	Rdata string
}

// Delta is one step of an incremental transfer (RFC 1995): what was deleted and added between From.Serial and To.Serial. SOA
// records appear in From and To only.
type Delta struct {
	From, To       rrset.SOA
	Deleted, Added []Record
}

// TransferResult is the outcome of a transfer: nothing new (UpToDate), the steps from the known serial (Deltas), or the
// complete zone (Full, Records). SOA is the server's in all cases.
type TransferResult struct {
	SOA      rrset.SOA
	UpToDate bool
	Deltas   []Delta
	Full     bool
	// Records of the complete zone in the order of their arrival, without the SOA.
	Records []Record
}

// Transfer fetches a zone over TCP: the changes since from (IXFR) if it is not nil and the server has them, else everything
// (AXFR). A server whose serial is older than from.Serial (a recreated zone) is asked for everything, too. If key is not
// nil, signatures are checked by RFC 8945 section 5.3.1. The error is an *Error.
func Transfer(ctx context.Context, server netip.AddrPort, zone string, from *rrset.SOA, key *Key, options ...TransferOption) (TransferResult, error) {
	limits := limitsOf(options)
	ctx, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	result, err := runTransfer(ctx, server, transferRequest(zone, from), key, limits)
	if from != nil && errors.Is(err, errNeedFull) {
		result, err = runTransfer(ctx, server, transferRequest(zone, nil), key, limits)
	}
	if err != nil {
		return TransferResult{}, wrapError(err, "transfer", server, zone)
	}
	return result, nil
}

// errNeedFull means that an incremental transfer cannot help and a full one may.
var errNeedFull = errors.New("no incremental transfer possible")

func transferRequest(zone string, from *rrset.SOA) *dns.Msg {
	q := dns.Question{Name: zone, Qtype: dns.TypeAXFR, Qclass: dns.ClassINET}
	m := &dns.Msg{MsgHdr: dns.MsgHdr{Opcode: dns.OpcodeQuery}}
	if from != nil {
		q.Qtype = dns.TypeIXFR
		m.Ns = []dns.RR{rrset.ToSOA(zone, *from)}
	}
	m.Question = []dns.Question{q}
	return m
}

// runTransfer runs one AXFR or IXFR on its own connection.
func runTransfer(ctx context.Context, server netip.AddrPort, m *dns.Msg, key *Key, limits Limits) (TransferResult, error) {
	req, err := newRequest(m, key)
	if err != nil {
		return TransferResult{}, err
	}
	nc, err := dial(ctx, "tcp", server)
	if err != nil {
		return TransferResult{}, err
	}
	defer nc.Close()
	defer bindToContext(ctx, nc)()

	if err := writeMessage(nc, req.raw); err != nil {
		return TransferResult{}, contextCause(ctx, err)
	}
	a := newAssembler(m, limits)
	for !a.complete {
		if err := readTransferMessage(ctx, nc, req, a); err != nil {
			return TransferResult{}, contextCause(ctx, err)
		}
	}
	if req.verifier != nil && !req.verifier.lastWasSigned() {
		return TransferResult{}, fmt.Errorf("%w: the transfer's last message", ErrUnsigned)
	}
	return a.result, nil
}

// readTransferMessage adds one message to a.
func readTransferMessage(ctx context.Context, nc net.Conn, req *request, a *transferAssembler) error {
	deadline, _ := ctx.Deadline()
	if soon := time.Now().Add(messageTimeout); soon.Before(deadline) {
		deadline = soon
	}
	_ = nc.SetDeadline(deadline)
	if ctx.Err() != nil { // bind's deadline may have been overwritten just now.
		return ctx.Err()
	}
	raw, err := readMessage(nc, dns.MaxMsgSize)
	if err != nil {
		return err
	}
	reply, err := req.parseTransferReply(raw)
	if err != nil {
		return err
	}
	return a.addMessage(reply.Rcode, reply.answers, reply.records())
}

// TryTCP connects and closes; the error is why a server accepts no connection over TCP.
func TryTCP(ctx context.Context, server netip.AddrPort) error {
	nc, err := dial(ctx, "tcp", server)
	if err == nil {
		_ = nc.Close()
	}
	return err
}

// dial connects. That we may have no more connections says more than that the context ended.
func dial(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error) {
	nc, err := outbound.Dial(ctx, network, server.String())
	if err != nil && !outbound.IsLimit(err) {
		err = contextCause(ctx, err)
	}
	return nc, err
}

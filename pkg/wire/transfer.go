package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// Time limits of a transfer as a whole, and from one message to the next.
const (
	transferTimeout = 60 * time.Second
	messageTimeout  = 10 * time.Second
)

// maxTransfer bounds the size of a transfer in bytes: some ten times a zone of 100,000 records. A server that sends without
// end must not exhaust the memory before the time limit.
var maxTransfer = 128 << 20

// ErrTooLarge means that a transfer was aborted because it was too large.
var ErrTooLarge = errors.New("the transfer is larger than 128 MiB")

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
func Transfer(ctx context.Context, server netip.AddrPort, zone string, from *rrset.SOA, key *Key) (TransferResult, error) {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	result, err := runTransfer(ctx, server, transferRequest(zone, from), key)
	if from != nil && errors.Is(err, errNeedFull) {
		result, err = runTransfer(ctx, server, transferRequest(zone, nil), key)
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
func runTransfer(ctx context.Context, server netip.AddrPort, m *dns.Msg, key *Key) (TransferResult, error) {
	req, err := newRequest(m, key)
	if err != nil {
		return TransferResult{}, err
	}
	nc, err := dialTCP(ctx, server)
	if err != nil {
		return TransferResult{}, err
	}
	defer nc.Close()
	defer bindToContext(ctx, nc)()

	if err := writeMessage(nc, req.raw); err != nil {
		return TransferResult{}, contextCause(ctx, err)
	}
	a, left := newAssembler(m), maxTransfer
	for !a.complete {
		n, err := readTransferMessage(ctx, nc, req, a)
		if err != nil {
			return TransferResult{}, contextCause(ctx, err)
		}
		if left -= n; left < 0 {
			return TransferResult{}, ErrTooLarge
		}
	}
	if req.verifier != nil && !req.verifier.lastWasSigned() {
		return TransferResult{}, fmt.Errorf("%w: the transfer's last message", ErrUnsigned)
	}
	return a.result, nil
}

// readTransferMessage adds one message to a and returns its size.
func readTransferMessage(ctx context.Context, nc net.Conn, req *request, a *transferAssembler) (size int, err error) {
	deadline, _ := ctx.Deadline()
	if soon := time.Now().Add(messageTimeout); soon.Before(deadline) {
		deadline = soon
	}
	_ = nc.SetDeadline(deadline)
	if ctx.Err() != nil { // bind's deadline may have been overwritten just now.
		return 0, ctx.Err()
	}
	raw, err := readMessage(nc)
	if err != nil {
		return 0, err
	}
	reply, err := req.parseReply(raw)
	if err != nil {
		return 0, err
	}
	return len(raw), a.addMessage(reply)
}

func dialTCP(ctx context.Context, server netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", server.String())
	if err != nil {
		return nil, contextCause(ctx, err)
	}
	return nc, nil
}

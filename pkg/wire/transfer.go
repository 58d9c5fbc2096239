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

// Limits of a transfer: as a whole when its context has no deadline, and from one message to the next.
const (
	transferTimeout = 60 * time.Second
	messageTimeout  = 10 * time.Second
)

// maxTransfer bounds what a transfer may bring, in bytes: some ten times a zone of 100,000 records. A server that never comes
// to an end must not take all memory before its time is up.
var maxTransfer = 128 << 20

// ErrTooLarge means that a transfer was given up because there was no end to it.
var ErrTooLarge = errors.New("the transfer is larger than 128 MiB")

// Record is one resource record of class IN in canonical form.
type Record struct {
	rrset.Key
	TTL   uint32
	Rdata string
}

// Delta is one step of an incremental transfer (RFC 1995): what was deleted from and added to the zone's content of
// From.Serial to make that of To.Serial. SOA records appear in From and To only.
type Delta struct {
	From, To       rrset.SOA
	Deleted, Added []Record
}

// TransferResult is what a transfer brought: nothing new (UpToDate), the steps from the known serial (Deltas), or the
// complete zone (Full, Records). SOA is the server's in all cases.
type TransferResult struct {
	SOA      rrset.SOA
	UpToDate bool
	Deltas   []Delta
	Full     bool
	// Records of the complete zone in the order of their arrival, without the SOA.
	Records []Record
}

// Transfer fetches a zone over TCP: what has changed since from (IXFR) when it is not nil and the server can tell, else
// everything (AXFR). A server whose serial is older than from.Serial (a zone made anew) is asked for everything as well.
// Each message's signature is checked as RFC 8945 section 5.3.1 tells when key is not nil. The error is an *Error.
func Transfer(ctx context.Context, server netip.AddrPort, zone string, from *rrset.SOA, key *Key) (TransferResult, error) {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	if from != nil {
		result, err := transfer(ctx, server, transferRequest(zone, from), key)
		if err == nil {
			return result, nil
		}
		if !errors.Is(err, errNeedFull) {
			return TransferResult{}, fill(err, "transfer", server, zone)
		}
	}
	result, err := transfer(ctx, server, transferRequest(zone, nil), key)
	if err != nil {
		return TransferResult{}, fill(err, "transfer", server, zone)
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
		m.Ns = []dns.RR{ToSOA(zone, *from)}
	}
	m.Question = []dns.Question{q}
	return m
}

// transfer runs one AXFR or IXFR on a connection of its own.
func transfer(ctx context.Context, server netip.AddrPort, m *dns.Msg, key *Key) (TransferResult, error) {
	req, err := newRequest(m, key)
	if err != nil {
		return TransferResult{}, err
	}
	nc, err := dialTCP(ctx, server)
	if err != nil {
		return TransferResult{}, err
	}
	defer nc.Close() //nolint:errcheck // nothing is buffered
	defer bind(ctx, nc)()

	if err := writeStream(nc, req.raw); err != nil {
		return TransferResult{}, cause(ctx, err)
	}
	a, left := newAssembler(m), maxTransfer
	for !a.complete {
		n, err := nextMessage(ctx, nc, req, a)
		if err != nil {
			return TransferResult{}, cause(ctx, err)
		}
		if left -= n; left < 0 {
			return TransferResult{}, ErrTooLarge
		}
	}
	if req.verifier != nil && !req.verifier.complete() {
		return TransferResult{}, fmt.Errorf("%w: the transfer's last message", ErrUnsigned)
	}
	return a.result, nil
}

// nextMessage adds one message and returns its size.
func nextMessage(ctx context.Context, nc net.Conn, req *request, a *assembler) (size int, err error) {
	deadline, _ := ctx.Deadline()
	if soon := time.Now().Add(messageTimeout); soon.Before(deadline) {
		deadline = soon
	}
	_ = nc.SetDeadline(deadline)
	if ctx.Err() != nil { // bind's deadline may have been overwritten just now.
		return 0, ctx.Err()
	}
	raw, err := readStream(nc)
	if err != nil {
		return 0, err
	}
	reply, err := req.verdict(raw)
	if err != nil {
		return 0, err
	}
	return len(raw), a.add(reply)
}

func dialTCP(ctx context.Context, server netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", server.String())
	if err != nil {
		return nil, cause(ctx, err)
	}
	return nc, nil
}

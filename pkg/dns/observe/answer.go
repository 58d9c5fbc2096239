package observe

import (
	"context"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Answer is what a server answers to whoever asks for a name and type, as resolvers do. Its zone may hold something else: the
// server answers from the zone with the longest name (RFC 1034 section 4.3.2), and by its views and response policies.
type Answer struct {
	// At is when the question was sent, Since when the first of those was that got the same answer beside the same content.
	At, Since time.Time
	// Held is what the server's zone has at the name and type, Served what the server answers; without data if that is nothing.
	Held, Served rrset.RRset
	// Rcode of the answer; NoReply if there was none, for which Err is the reason.
	Rcode int
	Err   error
	// Zone is the one that a negative answer is of, by its SOA; empty if unknown.
	Zone string
}

// Differs reports whether the server does not answer with what its zone holds, or not at all.
func (a Answer) Differs() bool {
	return a.Rcode == NoReply || a.Rcode == dns.RcodeServerFailure || !a.Held.Equal(a.Served)
}

// Says compares what two answers prove. Of a start of authority only its existence counts: its serial moves.
func (a Answer) Says(o Answer) bool {
	sameData := a.Served.Equal(o.Served) || a.Served.Type == dns.TypeSOA && (len(a.Served.Rdata) > 0) == (len(o.Served.Rdata) > 0)
	return sameData && a.Held.Equal(o.Held) && a.Rcode == o.Rcode && a.Zone == o.Zone
}

// Ask asks a server for a name and type without a key, as views may be chosen by key. A server that refuses to answer strangers
// is asked with the key, unless it is nil: who may query a server says nothing about what it serves. held is what its zone is
// known to have there, as far as it is known: an answer that is much larger is an error.
func (o *Observer) Ask(ctx context.Context, server Peer, k rrset.Key, held rrset.RRset, key *wire.Key) Answer {
	s, done := o.useServer(server)
	defer done()
	release, err := s.questions.acquire(ctx)
	if err != nil {
		return Answer{At: time.Now(), Rcode: NoReply, Err: err}
	}
	defer release()
	at := time.Now()
	options := []wire.Option{wire.WithTimeout(o.options.Timeout), wire.WithReplySize(answerSize(held))}
	reply, err := wire.Query(ctx, server.Addr, k.Name, k.Type, options...)
	if err == nil && reply.Msg.Rcode == dns.RcodeRefused && key != nil {
		reply, err = wire.Query(ctx, server.Addr, k.Name, k.Type, append(options, wire.WithKey(key))...)
	}
	a := answerFromReply(k, reply, err)
	a.At = at
	return a
}

// AskSigned is Ask with the DO bit (RFC 3225), and returns the whole answer. A server that is read by query is asked in turn.
func (o *Observer) AskSigned(ctx context.Context, server Peer, k rrset.Key, held rrset.RRset, key *wire.Key, byQuery bool) (*dns.Msg, error) {
	s, done := o.useServer(server)
	defer done()
	if byQuery {
		if err := s.rate.turns.wait(ctx, server.Namespace); err != nil {
			return nil, err
		}
	}
	release, err := s.questions.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	options := []wire.Option{wire.WithTimeout(o.options.Timeout), wire.WithReplySize(signedSize + answerSize(held)), wire.WithDNSSEC()}
	reply, err := wire.Query(ctx, server.Addr, k.Name, k.Type, options...)
	if err == nil && reply.Msg.Rcode == dns.RcodeRefused && key != nil {
		reply, err = wire.Query(ctx, server.Addr, k.Name, k.Type, append(options, wire.WithKey(key))...)
	}
	return reply.Msg, err
}

// signedSize is what signatures and proofs add to an answer, at most: keys of RSA and their signatures take some thousand bytes.
const signedSize = 16 << 10

// answerSize estimates the bytes that an answer with an RRset takes; it is never too low.
func answerSize(s rrset.RRset) int {
	size := 2048
	for _, rdata := range s.Rdata {
		size += len(rdata) + 64
	}
	return size
}

func answerFromReply(k rrset.Key, reply wire.Reply, err error) Answer {
	a := Answer{Rcode: NoReply, Err: err, Served: rrset.RRset{Key: k}}
	if err != nil {
		return a
	}
	a.Rcode = reply.Msg.Rcode
	var rdata []string
	for _, rr := range reply.Msg.Answer {
		if key, ttl, data := rrset.FromRR(rr); key == k {
			rdata, a.Served.TTL = append(rdata, data), ttl
		}
	}
	if len(rdata) > 0 {
		a.Served = rrset.New(k, a.Served.TTL, rdata...)
		return a
	}
	for _, rr := range append(reply.Msg.Ns, reply.Msg.Extra...) {
		if soa, ok := rr.(*dns.SOA); ok {
			a.Zone = dns.CanonicalName(soa.Hdr.Name)
		}
	}
	return a
}

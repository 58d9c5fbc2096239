package wire

import (
	"context"
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// Version asks a server for its TXT record version.bind. of class CH. It is empty if the server hides it, as ours do; the error is that
// of Query.
func Version(ctx context.Context, server netip.AddrPort, opts ...Option) (string, error) {
	m := &dns.Msg{
		MsgHdr:   dns.MsgHdr{Opcode: dns.OpcodeQuery},
		Question: []dns.Question{{Name: "version.bind.", Qtype: dns.TypeTXT, Qclass: dns.ClassCHAOS}},
	}
	m.SetEdns0(udpSize, false)
	reply, err := sendRepeatable(ctx, "query", server, m, opts)
	if err != nil {
		return "", err
	}
	for _, rr := range reply.Msg.Answer {
		if txt, ok := rr.(*dns.TXT); ok {
			return strings.Join(txt.Txt, ""), nil
		}
	}
	return "", nil
}

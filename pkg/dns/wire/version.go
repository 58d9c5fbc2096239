package wire

import (
	"context"
	"encoding/hex"
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// Version asks a server for its TXT record version.bind. of class CH. It is empty if the server hides it, as ours do; the error is that
// of Query.
func Version(ctx context.Context, server netip.AddrPort, opts ...Option) (string, error) {
	return askAboutServer(ctx, "version.bind.", server, opts)
}

// ServerID asks a server what it calls itself: its TXT record id.server. of class CH (RFC 4892). Another server than the one that was
// asked before may answer, where several have one address: NSID is in the answer that it is about. It is empty if the server does not say;
// the error is that of Query.
func ServerID(ctx context.Context, server netip.AddrPort, opts ...Option) (string, error) {
	id, err := askAboutServer(ctx, "id.server.", server, opts)
	return PrintableID([]byte(id)), err
}

func askAboutServer(ctx context.Context, name string, server netip.AddrPort, opts []Option) (string, error) {
	m := &dns.Msg{
		MsgHdr:   dns.MsgHdr{Opcode: dns.OpcodeQuery},
		Question: []dns.Question{{Name: name, Qtype: dns.TypeTXT, Qclass: dns.ClassCHAOS}},
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

// NSID is what the server that sent a message calls itself (RFC 5001); empty if it does not say.
func NSID(m *dns.Msg) string {
	opt := m.IsEdns0()
	if opt == nil {
		return ""
	}
	for _, o := range opt.Option {
		if n, ok := o.(*dns.EDNS0_NSID); ok {
			raw, _ := hex.DecodeString(n.Nsid)
			return PrintableID(raw)
		}
	}
	return ""
}

// maxID bounds a server's name for itself, in bytes.
const maxID = 64

// PrintableID makes text of a server's name for itself, which may be any bytes: as hexadecimal digits if they are no text.
func PrintableID(raw []byte) string {
	raw = raw[:min(len(raw), maxID)]
	for _, b := range raw {
		if b < ' ' || b > '~' {
			return "0x" + hex.EncodeToString(raw)
		}
	}
	return string(raw)
}

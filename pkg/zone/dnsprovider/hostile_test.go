package dnsprovider

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/test/named"
)

// A server that answers the question whether it lets us transfer a zone with a transfer without end is not read on: what it sends is
// charged to nobody.
func TestTriedTransferIsShort(t *testing.T) {
	key := named.NewKey("transfer.")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	packets, err := net.ListenPacket("udp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	soa, err := dns.NewRR("example.test. 60 SOA ns. hm. 1 1 1 1 1")
	if err != nil {
		t.Fatal(err)
	}
	const most = 600_000 // more than a transfer may have
	var sent atomic.Int32
	ended := make(chan struct{})
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		if r.IsTsig() == nil { // the question for the version
			dns.HandleFailed(w, r)
			return
		}
		m := new(dns.Msg)
		m.SetReply(r)
		m.Authoritative, m.Answer = true, []dns.RR{soa}
		m.SetTsig(key.Name, key.Algorithm, 300, time.Now().Unix())
		var err error
		if r.Question[0].Qtype != dns.TypeIXFR {
			_ = w.WriteMsg(m)
			return
		}
		for err == nil && sent.Load() < most {
			for range 200 {
				header := dns.RR_Header{Name: fmt.Sprintf("n%d.example.test.", sent.Add(1)), Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: 60}
				m.Answer = append(m.Answer, &dns.TXT{Hdr: header, Txt: []string{"x"}})
			}
			err = w.WriteMsg(m)
			w.TsigTimersOnly(true)
			m.Answer, m.Extra = nil, nil
			m.SetTsig(key.Name, key.Algorithm, 300, time.Now().Unix())
		}
		close(ended)
	})
	secrets := map[string]string{key.Name: key.Secret}
	udp, tcp := &dns.Server{PacketConn: packets, Handler: handler, TsigSecret: secrets}, &dns.Server{Listener: listener, Handler: handler, TsigSecret: secrets}
	go func() { _ = udp.ActivateAndServe() }()
	go func() { _ = tcp.ActivateAndServe() }()
	defer func() { _, _ = udp.Shutdown(), tcp.Shutdown() }()
	server := observe.Server{Provider: "corp", Pod: "corp/x", Role: observe.Secondary, Addr: netip.MustParseAddrPort(listener.Addr().String())}
	facts := prober{zone: "example.test.", transfer: &key}.ask(t.Context(), server, true)
	<-ended
	if !facts.HasZone || facts.TransferProblem != "" || sent.Load() >= most {
		t.Errorf("%d records were sent, %+v", sent.Load(), facts)
	}
}

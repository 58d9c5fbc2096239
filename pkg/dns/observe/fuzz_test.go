package observe

import (
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// FuzzAnswers: whatever message a server answers with, only what was asked for is taken from it.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{}, dns.TypeA)
	f.Fuzz(func(t *testing.T, raw []byte, rrtype uint16) {
		m, key := new(dns.Msg), rrset.Key{Name: "www.example.test.", Type: rrtype}
		if m.Unpack(raw) != nil {
			return
		}
		_ = observationFromReply(netip.AddrPort{}, time.Time{}, "example.test.", wire.Reply{Msg: m}, nil)
		if a := answerFromReply(key, wire.Reply{Msg: m}, nil); a.Served.Key != key {
			t.Errorf("%x is taken for an answer with %v", raw, a.Served.Key)
		}
		if set, err := contentInReply(key, "example.test.", m); err == nil && len(set.Rdata) > 0 && set.Key != key {
			t.Errorf("%x is taken for content of %v", raw, set.Key)
		}
	})
}

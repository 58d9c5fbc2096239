package notify

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"k8s.io/component-base/metrics"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// sender is whoever sent a message, and counts its replies.
type sender struct {
	dns.ResponseWriter
	from    net.Addr
	replies []*dns.Msg
}

func (s *sender) RemoteAddr() net.Addr { return s.from }

func (s *sender) WriteMsg(m *dns.Msg) error {
	s.replies = append(s.replies, m)
	_, err := m.Pack()
	return err
}

// FuzzNotify: whatever comes to the port for NOTIFY, it is answered once, and makes one notification at most: of a zone with a name, and
// only for a NOTIFY from this pod.
func FuzzNotify(f *testing.F) {
	received := metrics.NewCounterVec(&metrics.CounterOpts{Name: "received"}, []string{"rcode"})
	f.Fuzz(func(t *testing.T, raw []byte, outside bool) {
		message := new(dns.Msg)
		if message.Unpack(raw) != nil {
			return
		}
		var added []bindcar.Notification
		log := NewLog(8)
		l := &Listener{log: log, received: received, lookUpSerial: func(context.Context, string) (uint32, error) { return 7, nil }}
		from := &sender{from: &net.UDPAddr{IP: net.IPv6loopback, Port: 53}}
		if outside {
			from.from = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 53}
		}
		l.handleNotify(t.Context(), from, message)
		added, _, _ = log.readAfter(0)
		if len(from.replies) != 1 || len(added) > 1 {
			t.Fatalf("%d replies, notifications %+v", len(from.replies), added)
		}
		accepted := from.replies[0].Rcode == dns.RcodeSuccess
		if accepted != (len(added) == 1) || accepted && (outside || message.Opcode != dns.OpcodeNotify) {
			t.Errorf("rcode %d, notifications %+v", from.replies[0].Rcode, added)
		}
		if accepted && (added[0].Zone == "" || added[0].Zone != strings.ToLower(added[0].Zone)) {
			t.Errorf("zone %q", added[0].Zone)
		}
	})
}

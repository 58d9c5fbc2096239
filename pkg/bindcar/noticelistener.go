package bindcar

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
)

// notifyListener is a DNS server that takes NOTIFY (RFC 1996) from this pod's named and nothing else. The messages are
// not signed: nobody outside the pod reaches its loopback, and a notice is no more than a reason to look.
type notifyListener struct{ servers []*dns.Server }

// listenForNotify opens the sockets, so that no message is lost from now on.
func (s *server) listenForNotify(ctx context.Context) (*notifyListener, error) {
	var config net.ListenConfig
	packets, err := config.ListenPacket(ctx, "udp", s.options.NoticeAddress)
	if err != nil {
		return nil, err
	}
	// named announces all of its zones when it starts, a thousand in a second.
	_ = packets.(*net.UDPConn).SetReadBuffer(1 << 20)
	streams, err := config.Listen(ctx, "tcp", s.options.NoticeAddress)
	if err != nil {
		_ = packets.Close()
		return nil, err
	}
	handler := dns.HandlerFunc(s.takeNotify)
	return &notifyListener{[]*dns.Server{
		{PacketConn: packets, Handler: handler},
		{Listener: streams, Handler: handler, MaxTCPQueries: -1},
	}}, nil
}

// serve answers until ctx ends.
func (l *notifyListener) serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, server := range l.servers {
		group.Go(func() error {
			started := make(chan struct{})
			server.NotifyStartedFunc = func() { close(started) }
			defer context.AfterFunc(ctx, func() {
				<-started
				_ = server.Shutdown()
			})()
			if err := server.ActivateAndServe(); err != nil && ctx.Err() == nil {
				return fmt.Errorf("listening for NOTIFY: %w", err)
			}
			return nil
		})
	}
	return group.Wait()
}

// takeNotify answers first: named sends the next NOTIFY of a zone only when the one before was answered.
func (s *server) takeNotify(w dns.ResponseWriter, message *dns.Msg) {
	at := time.Now()
	reply := new(dns.Msg).SetReply(message)
	reply.Authoritative = true
	if !isNotify(message) || !fromLoopback(w.RemoteAddr()) {
		reply.Rcode = dns.RcodeRefused
	}
	s.metrics.notifies.WithLabelValues(dns.RcodeToString[reply.Rcode]).Inc()
	if err := w.WriteMsg(reply); err != nil {
		klog.V(2).InfoS("NOTIFY not answered", "reason", err.Error())
	}
	if reply.Rcode != dns.RcodeSuccess {
		return
	}
	zone := strings.ToLower(strings.TrimSuffix(message.Question[0].Name, "."))
	s.notices.add(Notice{Zone: zone, Serial: s.notifiedSerial(zone, message), At: at})
}

func isNotify(m *dns.Msg) bool {
	if m.Opcode != dns.OpcodeNotify || m.Response || len(m.Question) != 1 {
		return false
	}
	q := m.Question[0]
	return q.Qtype == dns.TypeSOA && q.Qclass == dns.ClassINET && q.Name != "."
}

func fromLoopback(addr net.Addr) bool {
	from, err := netip.ParseAddrPort(addr.String())
	return err == nil && from.Addr().Unmap().IsLoopback()
}

// notifiedSerial is the one in the message. It may tell none (RFC 1996 section 3.7); named is asked then.
func (s *server) notifiedSerial(zone string, message *dns.Msg) uint32 {
	for _, rr := range message.Answer {
		if soa, ok := rr.(*dns.SOA); ok && strings.EqualFold(soa.Hdr.Name, message.Question[0].Name) {
			return soa.Serial
		}
	}
	ctx, cancel := context.WithTimeout(s.stopping, 2*time.Second)
	defer cancel()
	name, err := zoneName("zone", zone)
	if err != nil {
		return 0
	}
	text, err := s.status(ctx, name)
	if err != nil {
		klog.V(2).InfoS("serial not known", "zone", zone, "reason", err.Error())
		return 0
	}
	serial, _ := serialIn(text)
	return serial
}

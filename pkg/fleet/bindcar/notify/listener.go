package notify

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// Listener is a DNS server that accepts NOTIFY (RFC 1996) from this pod's named and nothing else. The messages are not
// signed: nobody outside the pod reaches its loopback, and a notification is no more than a reason to check.
type Listener struct {
	log          *Log
	lookUpSerial SerialFunc
	received     *metrics.CounterVec
	servers      []*dns.Server
}

// SerialFunc asks named for the serial of a zone.
type SerialFunc func(ctx context.Context, zone string) (uint32, error)

// Listen opens the sockets, so that no message is lost from now on. lookUpSerial is for NOTIFYs without a serial; received
// counts messages by the rcode of their response.
func Listen(ctx context.Context, address string, log *Log, lookUpSerial SerialFunc, received *metrics.CounterVec) (*Listener, error) {
	var config net.ListenConfig
	udp, err := config.ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	// named announces all of its zones when it starts, a thousand in a second.
	_ = udp.(*net.UDPConn).SetReadBuffer(1 << 20)
	tcp, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		_ = udp.Close()
		return nil, err
	}
	l := &Listener{log: log, lookUpSerial: lookUpSerial, received: received}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) { l.handleNotify(ctx, w, m) })
	l.servers = []*dns.Server{{PacketConn: udp, Handler: handler}, {Listener: tcp, Handler: handler, MaxTCPQueries: -1}}
	return l, nil
}

// Serve answers until ctx ends.
func (l *Listener) Serve(ctx context.Context) error {
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

// handleNotify answers first: named sends the next NOTIFY of a zone only after the response to the one before.
func (l *Listener) handleNotify(ctx context.Context, w dns.ResponseWriter, message *dns.Msg) {
	at := time.Now()
	reply := new(dns.Msg).SetReply(message)
	reply.Authoritative = true
	if !isNotify(message) || !isLoopback(w.RemoteAddr()) {
		reply.Rcode = dns.RcodeRefused
	}
	l.received.WithLabelValues(dns.RcodeToString[reply.Rcode]).Inc()
	if err := w.WriteMsg(reply); err != nil {
		klog.V(2).InfoS("NOTIFY not answered", "reason", err.Error())
	}
	if reply.Rcode != dns.RcodeSuccess {
		return
	}
	zone := strings.ToLower(strings.TrimSuffix(message.Question[0].Name, "."))
	l.log.Add(bindcar.Notification{Zone: zone, Serial: l.notifiedSerial(ctx, zone, message), At: at})
}

func isNotify(m *dns.Msg) bool {
	if m.Opcode != dns.OpcodeNotify || m.Response || len(m.Question) != 1 {
		return false
	}
	q := m.Question[0]
	return q.Qtype == dns.TypeSOA && q.Qclass == dns.ClassINET && q.Name != "."
}

func isLoopback(addr net.Addr) bool {
	from, err := netip.ParseAddrPort(addr.String())
	return err == nil && from.Addr().Unmap().IsLoopback()
}

// notifiedSerial is the serial in the message, which may have none (RFC 1996 section 3.7), else the one that named reports; nil if it does not.
func (l *Listener) notifiedSerial(ctx context.Context, zone string, message *dns.Msg) *uint32 {
	for _, rr := range message.Answer {
		if soa, ok := rr.(*dns.SOA); ok && strings.EqualFold(soa.Hdr.Name, message.Question[0].Name) {
			return &soa.Serial
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	serial, err := l.lookUpSerial(ctx, zone)
	if err != nil {
		klog.V(2).InfoS("serial not known", "zone", zone, "reason", err.Error())
		return nil
	}
	return &serial
}

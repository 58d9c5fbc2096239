package sidecar

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// answers are what came of questions over UDP.
type answers struct{ full, truncated, lost uint64 }

// batch is how many questions are sent at once.
const batch = 20

// askFromNetwork asks one question count times, a multiple of batch, from an address that is not exempt as the pod's own are.
func askFromNetwork(t *testing.T, s *sidecar, name string, count int) (got answers) {
	t.Helper()
	conn, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}, net.UDPAddrFromAddrPort(s.DNS()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	c, asked := &dns.Conn{Conn: conn}, 0
	for ; asked < count; asked += batch {
		for range batch {
			if err := c.WriteMsg(new(dns.Msg).SetQuestion(name, dns.TypeSOA)); err != nil {
				t.Fatal(err)
			}
		}
		for range batch {
			if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			reply, err := c.ReadMsg()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			switch {
			case err != nil:
				t.Fatal(err)
			case reply.Truncated:
				got.truncated++
			default:
				got.full++
			}
		}
	}
	got.lost = uint64(asked) - got.full - got.truncated
	return got
}

// Behind a load balancer or node port that hides where clients are, all of them are one network: it gets full answers to 800 questions for one
// name in a second, for three seconds.
func TestRateLimitOfAllClientsAtOneAddress(t *testing.T) {
	t.Parallel()
	s := startBeside(t, namedtest.StartPod(t, v1beta1.RolePrimary, [2]*wire.Key{}, func(*named.Config) {}))
	if err := s.client.CreateZone(testContext(t), s.addr, primaryZone("limited.example", s.UpdateKey.Name)); err != nil {
		t.Fatal(err)
	}
	pace := time.NewTicker(time.Second / (800 / batch))
	defer pace.Stop()
	for asked := 0; asked < 2400; asked += batch {
		<-pace.C // Never more than that, also on a slow machine.
		if got := askFromNetwork(t, s, "limited.example.", batch); got.full != batch {
			t.Fatalf("after %d questions: answers %+v", asked, got)
		}
	}
}

// What a network asks too often is truncated or dropped, and counted; a real named says how often. Nobody is limited who is exempt, nor by
// default at hundreds of questions in a second.
func TestRateLimit(t *testing.T) {
	low := func(slip int32) *v1beta1.RateLimitConfig {
		return &v1beta1.RateLimitConfig{ResponsesPerSecond: new(int32(1)), Slip: &slip}
	}
	exempt := low(1)
	exempt.ExemptClients = v1beta1.AddressMatchList{"127.0.0.2"}
	for name, c := range map[string]struct {
		limit     *v1beta1.RateLimitConfig
		questions int
		// truncates and drops are what has to happen to some of the questions.
		truncates, drops bool
	}{
		"default":     {nil, 500, false, false},
		"none":        {&v1beta1.RateLimitConfig{ResponsesPerSecond: new(int32(0))}, 500, false, false},
		"exempt":      {exempt, 100, false, false},
		"truncated":   {low(1), 100, true, false},
		"dropped":     {low(0), batch, false, true},
		"every third": {low(3), batch, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startBeside(t, namedtest.StartPod(t, v1beta1.RolePrimary, [2]*wire.Key{}, func(config *named.Config) { config.Options.RateLimit = c.limit }))
			if err := s.client.CreateZone(testContext(t), s.addr, primaryZone("limited.example", s.UpdateKey.Name)); err != nil {
				t.Fatal(err)
			}
			got := askFromNetwork(t, s, "limited.example.", c.questions)
			if (got.truncated > 0) != c.truncates || (got.lost > 0) != c.drops || got.full == 0 {
				t.Errorf("answers %+v", got)
			}
			stats, err := s.client.Statistics(testContext(t), s.addr)
			if want := (bindcar.RateLimitCounts{Truncated: got.truncated, Dropped: got.lost}); err != nil || stats.RateLimited != want {
				t.Errorf("named counts %+v, want %+v; %v", stats.RateLimited, want, err)
			}
			text := s.metrics(t)
			for result, count := range map[string]uint64{"truncated": got.truncated, "dropped": got.lost} {
				if want := fmt.Sprintf("bind_rate_limited_responses_total{result=%q} %d", result, count); !strings.Contains(text, want+"\n") {
					t.Errorf("no %s in\n%s", want, text)
				}
			}
		})
	}
}

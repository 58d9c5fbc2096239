package wire_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/wire"
	"github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// inTurn returns messages one by one.
func inTurn(messages []*dns.Msg) func() *dns.Msg {
	return func() *dns.Msg {
		if len(messages) == 0 {
			return nil
		}
		first := messages[0]
		messages = messages[1:]
		return first
	}
}

// TestPipelineReplies: each message gets its own reply, in the order of the messages, and the connection goes on to be used.
func TestPipelineReplies(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	conn, err := wire.Dial(t.Context(), s.Addr, &s.Update)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var messages []*dns.Msg
	var want, got []int
	for i := range 20 {
		m := update(t, fmt.Sprintf("h%d.%s 60 A 192.0.2.9", i, zone))
		want = append(want, dns.RcodeSuccess)
		if i%3 == 1 {
			m.NameUsed([]dns.RR{&dns.ANY{Hdr: dns.RR_Header{Name: "none." + zone}}})
			want[i] = dns.RcodeNameError
		}
		messages = append(messages, m)
	}
	for reply, err := range conn.ExchangeAll(t.Context(), wire.Pipeline{Next: inTurn(messages), Ahead: 4, Timeout: 10 * time.Second}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, reply.Rcode)
	}
	if !slices.Equal(got, want) {
		t.Errorf("rcodes %v, want %v", got, want)
	}
	if _, err := conn.Exchange(t.Context(), messages[0]); err != nil {
		t.Error(err)
	}
}

// startHoarder starts a server that reads so many messages before it answers them with their number as rcode, the last one first.
func startHoarder(t *testing.T, count int, spoil func(replies [][]byte)) *wire.Conn {
	t.Helper()
	at := tcpserver.Start(t, func(conn net.Conn) {
		replies := make([][]byte, count)
		for i := range replies {
			var size [2]byte
			if _, err := io.ReadFull(conn, size[:]); err != nil {
				return
			}
			raw := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(conn, raw); err != nil {
				return
			}
			m := new(dns.Msg)
			_ = m.Unpack(raw)
			replies[count-1-i], _ = new(dns.Msg).SetRcode(m, i).Pack()
		}
		spoil(replies)
		for _, reply := range replies {
			_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
		}
	})
	conn, err := wire.Dial(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestPipelineOrder: so many messages are under way at a time, and replies may come in any order.
func TestPipelineOrder(t *testing.T) {
	t.Parallel()
	conn := startHoarder(t, 3, func([][]byte) {})
	var got []int
	messages := slices.Repeat([]*dns.Msg{update(t, "a."+zone+" 60 A 192.0.2.9")}, 3)
	for reply, err := range conn.ExchangeAll(t.Context(), wire.Pipeline{Next: inTurn(messages), Ahead: 3, Timeout: time.Second}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, reply.Rcode)
	}
	if !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("rcodes %v", got)
	}
}

// TestPipelineBroken: without a valid reply to a message, that one and those after it have failed, and the server may have acted on them.
func TestPipelineBroken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ahead   int
		spoil   func(replies [][]byte)
		replies int
	}{
		"silence":       {2, func([][]byte) {}, 0}, // It waits for the third message.
		"a wrong ID":    {3, func(replies [][]byte) { replies[1][0]++ }, 0},
		"twice":         {3, func(replies [][]byte) { replies[1] = replies[0] }, 0},
		"no message":    {3, func(replies [][]byte) { replies[2] = []byte{1} }, 0},
		"the last lost": {3, func(replies [][]byte) { slices.Reverse(replies); replies[2] = nil }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := startHoarder(t, 3, tc.spoil)
			messages := slices.Repeat([]*dns.Msg{update(t, "a."+zone+" 60 A 192.0.2.9")}, 3)
			replies := 0
			var last error
			for _, err := range conn.ExchangeAll(t.Context(), wire.Pipeline{Next: inTurn(messages), Ahead: tc.ahead, Timeout: time.Second}) {
				if last != nil {
					t.Error("something comes after an error")
				}
				if last = err; err == nil {
					replies++
				}
			}
			var e *wire.Error
			if !errors.As(last, &e) || !e.Sent || e.Op != "update" || e.Zone != zone || replies != tc.replies {
				t.Errorf("%d replies, error %v", replies, last)
			}
		})
	}
}

// TestPipelineUnsendable: a message that cannot be packed fails alone; those before it get their replies.
func TestPipelineUnsendable(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	conn, err := wire.Dial(t.Context(), s.Addr, &s.Update)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	good, bad := update(t, "a."+zone+" 60 A 192.0.2.9"), update(t, "b."+zone+" 60 A 192.0.2.9")
	bad.Ns[0].Header().Name = "..."
	replies := 0
	var e *wire.Error
	for _, err := range conn.ExchangeAll(t.Context(), wire.Pipeline{Next: inTurn([]*dns.Msg{good, good, bad, good}), Ahead: 4, Timeout: 10 * time.Second}) {
		if err == nil {
			replies++
		} else if !errors.As(err, &e) || e.Sent {
			t.Errorf("error %v", err)
		}
	}
	if replies != 2 || e == nil {
		t.Errorf("%d replies, error %v", replies, e)
	}
}

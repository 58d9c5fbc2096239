package wire_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/heap"
	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// maxSent is how many bytes a hostile server sends at most: a transfer without limits ends too, and fails its test.
const maxSent = 8 << 20

// hostileServer answers every request over TCP with messages that a test makes up, until write fails.
func hostileServer(t *testing.T, reply func(request *dns.Msg, write func(message []byte) error)) netip.AddrPort {
	t.Helper()
	return tcpserver.Start(t, func(conn net.Conn) {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		raw := make([]byte, binary.BigEndian.Uint16(size[:]))
		request := new(dns.Msg)
		if _, err := io.ReadFull(conn, raw); err != nil || request.Unpack(raw) != nil {
			return
		}
		sent := 0
		reply(request, func(message []byte) error {
			if sent += len(message); sent > maxSent {
				return errors.New("enough is sent")
			}
			_, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
			return err
		})
	})
}

// message is a reply to a transfer with records in wire format.
type message struct {
	raw     []byte
	records int
}

// newMessage returns a reply without a question, as later messages of a transfer are.
func newMessage(request *dns.Msg, records ...dns.RR) *message {
	m := new(dns.Msg)
	m.SetReply(request)
	m.Question, m.Answer = nil, records
	raw, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return &message{raw: raw, records: len(records)}
}

// fill adds copies of a record in wire format until the message is full.
func (m *message) fill(record []byte) *message {
	for len(m.raw)+len(record) <= dns.MaxMsgSize {
		m.raw = append(m.raw, record...)
		m.records++
	}
	return m
}

func (m *message) bytes() []byte {
	binary.BigEndian.PutUint16(m.raw[6:], uint16(m.records))
	return m.raw
}

func soaRecord(serial uint32) dns.RR {
	rr, err := dns.NewRR(fmt.Sprintf("%s 60 SOA ns. hm. %d 1 2 3 4", zone, serial))
	if err != nil {
		panic(err)
	}
	return rr
}

// longName takes 255 bytes on the wire, and some 1000 as text.
func longName() []byte {
	var name []byte
	for _, size := range []int{63, 63, 63, 61} {
		name = append(append(name, byte(size)), slices.Repeat([]byte{1}, size)...)
	}
	return append(name, 0)
}

// rawRecord is a record of class IN in wire format.
func rawRecord(owner []byte, rrtype uint16, rdata []byte) []byte {
	out := binary.BigEndian.AppendUint16(slices.Clone(owner), rrtype)
	out = append(out, 0, dns.ClassINET, 0, 0, 0, 60)
	return append(binary.BigEndian.AppendUint16(out, uint16(len(rdata))), rdata...)
}

// bombs are messages that take a hundred times their size when they are decoded, and ways not to end.
var bombs = map[string]func(request *dns.Msg, n int) *message{
	// Two bytes of rdata stand for a thousand characters, and so do two bytes of owner.
	"name compression": func(request *dns.Msg, n int) *message {
		m := newMessage(request)
		if n == 0 {
			m = newMessage(request, soaRecord(1))
		}
		at := len(m.raw)
		m.raw, m.records = append(m.raw, rawRecord(longName(), dns.TypeNS, []byte{0})...), m.records+1
		to := []byte{0xC0 | byte(at>>8), byte(at)}
		return m.fill(rawRecord(to, dns.TypeNS, to))
	},
	// A list of names in one record.
	"list of names": func(request *dns.Msg, n int) *message {
		m := newMessage(request)
		if n == 0 {
			m = newMessage(request, soaRecord(1))
		}
		at := len(m.raw)
		m.raw, m.records = append(m.raw, rawRecord(longName(), dns.TypeNS, []byte{0})...), m.records+1
		to := []byte{0xC0 | byte(at>>8), byte(at)}
		rdata := slices.Concat([]byte{1, 1, 0, 1, 0, 0}, slices.Repeat(to, 2_000))
		return m.fill(rawRecord(to, dns.TypeHIP, rdata))
	},
	// 32 bytes stand for 256 types of nine characters.
	"type bitmap": func(request *dns.Msg, n int) *message {
		m := newMessage(request)
		if n == 0 {
			m = newMessage(request, soaRecord(1))
		}
		rdata := []byte{0}
		for window := range 256 {
			rdata = append(append(rdata, byte(window), 32), slices.Repeat([]byte{255}, 32)...)
		}
		return m.fill(rawRecord([]byte{0}, dns.TypeNSEC, rdata))
	},
	"strings": func(request *dns.Msg, n int) *message {
		m := newMessage(request)
		if n == 0 {
			m = newMessage(request, soaRecord(1))
		}
		return m.fill(rawRecord([]byte{0}, dns.TypeTXT, slices.Repeat([]byte{0}, 60_000)))
	},
	"small messages": func(request *dns.Msg, n int) *message {
		if n == 0 {
			return newMessage(request, soaRecord(1))
		}
		m := newMessage(request)
		m.raw, m.records = append(m.raw, rawRecord([]byte{0}, dns.TypeA, []byte{192, 0, 2, 1})...), 1
		return m
	},
	"other classes": func(request *dns.Msg, n int) *message {
		m := newMessage(request)
		if n == 0 {
			m = newMessage(request, soaRecord(1))
		}
		record := rawRecord([]byte{0}, dns.TypeA, []byte{192, 0, 2, 1})
		record[4] = dns.ClassCHAOS
		return m.fill(record)
	},
	// Steps without end, of nothing but SOAs.
	"incremental": func(request *dns.Msg, n int) *message {
		if n == 0 {
			return newMessage(request, soaRecord(1<<30), soaRecord(1))
		}
		m := newMessage(request)
		for i := range 400 {
			serial := uint32(1 + (n-1)*400 + i)
			m.raw = append(m.raw, newMessage(request, soaRecord(serial+1), soaRecord(serial+1)).raw[12:]...)
			m.records += 2
		}
		return m
	},
}

// TestBombs: whatever a server sends, a transfer ends with an error that names the limit, and takes a few times the memory
// that it allows. Without the limits each of these takes gigabytes, or does not end.
func TestBombs(t *testing.T) {
	const limit = 16 << 20
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			cost := heap.OfChild(t, func() string {
				return hostileServer(t, func(request *dns.Msg, write func([]byte) error) {
					for n, err := 0, error(nil); err == nil; n++ {
						err = write(bomb(request, n).bytes())
					}
				}).String()
			}, func(server string) {
				var from *rrset.SOA
				if name == "incremental" {
					from = &rrset.SOA{MName: "ns.", RName: "hm.", Serial: 1}
				}
				_, err := wire.Transfer(t.Context(), netip.MustParseAddrPort(server), zone, from, nil, wire.WithLimits(wire.Limits{Bytes: limit}))
				if !errors.Is(err, wire.ErrTooLarge) || !strings.Contains(err.Error(), "at "+server+": the zone exceeds the limit of 16777216 bytes, which --max-zone-bytes sets") {
					t.Errorf("error %v", err)
				}
			})
			t.Logf("at most %d MiB taken, given up after %s", cost.Bytes>>20, cost.Time)
			if cost.Bytes > 5*limit {
				t.Errorf("%d MiB taken with a limit of %d", cost.Bytes>>20, limit>>20)
			}
		})
	}
}

// TestSlowBytes: a transfer whose message comes byte by byte, without end, is given up and takes nothing.
func TestSlowBytes(t *testing.T) {
	cost := heap.OfChild(t, func() string {
		return tcpserver.Start(t, func(conn net.Conn) {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				if _, err := conn.Write([]byte{0xff}); err != nil {
					return
				}
				<-tick.C
			}
		}).String()
	}, func(server string) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var timeout net.Error
		if _, err := wire.Transfer(ctx, netip.MustParseAddrPort(server), zone, nil, nil); !errors.As(err, &timeout) || !timeout.Timeout() || ctx.Err() != nil {
			t.Errorf("error %v", err)
		}
	})
	t.Logf("at most %d MiB taken, given up after %s", cost.Bytes>>20, cost.Time)
	if cost.Bytes > 8<<20 {
		t.Errorf("%d MiB taken", cost.Bytes>>20)
	}
}

// TestLargeListOfNames: one record must not take a thousand times its size while it is decoded.
func TestLargeListOfNames(t *testing.T) {
	server := hostileServer(t, func(request *dns.Msg, write func([]byte) error) {
		rdata := slices.Concat([]byte{1, 1, 0, 1, 0, 0}, make([]byte, 30_000))
		_ = write(newMessage(request, soaRecord(1)).fill(rawRecord([]byte{0}, dns.TypeHIP, rdata)).bytes())
	})
	_, err := wire.Transfer(t.Context(), server, zone, nil, nil)
	if !errors.Is(err, wire.ErrTooLarge) || !strings.Contains(err.Error(), "a HIP record exceeds the limit of 4096 bytes") {
		t.Errorf("error %v", err)
	}
}

// TestLargeReply: only a transfer may be large.
func TestLargeReply(t *testing.T) {
	server := hostileServer(t, func(request *dns.Msg, write func([]byte) error) {
		m := newMessage(request)
		_ = write(m.fill(rawRecord([]byte{0}, dns.TypeA, []byte{192, 0, 2, 1})).bytes())
	})
	_, err := wire.Query(t.Context(), server, zone, dns.TypeSOA, wire.WithTCP())
	if !errors.Is(err, wire.ErrReply) {
		t.Errorf("error %v", err)
	}
}

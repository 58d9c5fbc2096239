package wire_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/named"
)

// unsign takes the signature off a reply.
func unsign(reply []byte) []byte {
	m := new(dns.Msg)
	if err := m.Unpack(reply); err != nil || m.IsTsig() == nil {
		return reply
	}
	m.Extra = m.Extra[:len(m.Extra)-1]
	out, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return out
}

// flip changes one bit of the reply's first record behind its header: somewhere in owner, type, TTL or rdata.
func flip(reply []byte) []byte {
	out := slices.Clone(reply)
	out[len(out)/3] ^= 1
	return out
}

// TestForgedReplies: a reply to a signed request counts only when it is signed by the same key and was not changed.
func TestForgedReplies(t *testing.T) {
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Records: "www A 192.0.2.1"}}})
	p := named.StartProxy(t, s.Addr)
	calls := map[string]func(context.Context) error{
		"query over UDP": func(ctx context.Context) error {
			_, err := wire.Query(ctx, p.Addr, zone, dns.TypeSOA, wire.WithKey(&s.Transfer))
			return err
		},
		"query over TCP": func(ctx context.Context) error {
			_, err := wire.Query(ctx, p.Addr, zone, dns.TypeSOA, wire.WithKey(&s.Transfer), wire.WithTCP())
			return err
		},
		"transfer": func(ctx context.Context) error {
			_, err := wire.Transfer(ctx, p.Addr, zone, nil, &s.Transfer)
			return err
		},
		"notify": func(ctx context.Context) error { return wire.Notify(ctx, p.Addr, zone, 1, &s.Transfer) },
		"update": func(ctx context.Context) error {
			conn, err := wire.Dial(ctx, p.Addr, &s.Update)
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Exchange(ctx, update(t, "a."+zone+" 60 A 192.0.2.9"))
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			p.Filter(func(_ string, reply []byte) ([]byte, error) { return unsign(reply), nil })
			err := call(t.Context())
			if e, ok := errors.AsType[*wire.Error](err); !errors.Is(err, wire.ErrUnsigned) || !ok || e.Transient() || e.Reason() != "BadSignature" {
				t.Errorf("unsigned: %v", err)
			}
			p.Filter(func(_ string, reply []byte) ([]byte, error) { return flip(reply), nil })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // Some go on waiting for the true reply.
			defer cancel()
			if err := call(ctx); err == nil {
				t.Error("changed: no error")
			}
			p.Filter(func(_ string, reply []byte) ([]byte, error) { return reply, nil })
			if err := call(t.Context()); err != nil {
				t.Errorf("as it is: %v", err)
			}
		})
	}
}

// TestForgedTransfer: every message of a long transfer counts.
func TestForgedTransfer(t *testing.T) {
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "h%d TXT %q\n", i, strings.Repeat("x", 50))
	}
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Records: many.String()}}})
	p := named.StartProxy(t, s.Addr)
	var messages int
	p.Filter(func(_ string, reply []byte) ([]byte, error) { messages++; return reply, nil })
	if _, err := wire.Transfer(t.Context(), p.Addr, zone, nil, &s.Transfer); err != nil || messages < 3 {
		t.Fatalf("%d messages, error %v", messages, err)
	}
	for name, forge := range map[string]func([]byte) ([]byte, error){
		"unsigned": func(reply []byte) ([]byte, error) { return unsign(reply), nil },
		"changed":  func(reply []byte) ([]byte, error) { return flip(reply), nil },
		"left out": func([]byte) ([]byte, error) { return nil, nil },
		"cut off":  func([]byte) ([]byte, error) { return nil, named.ErrHangUp },
	} {
		for at := range messages {
			t.Run(fmt.Sprintf("%s, message %d of %d", name, at+1, messages), func(t *testing.T) {
				n, p := -1, named.StartProxy(t, s.Addr) // Another one: what the last transfer left behind on its connection does not count.
				p.Filter(func(_ string, reply []byte) ([]byte, error) {
					if n++; n == at {
						return forge(reply)
					}
					return reply, nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := wire.Transfer(ctx, p.Addr, zone, nil, &s.Transfer); err == nil {
					t.Error("no error")
				}
			})
		}
	}
}

// TestLostDatagram: a question is repeated within its time, and from another port after half of that.
func TestLostDatagram(t *testing.T) {
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	p := named.StartProxy(t, s.Addr)
	var asked atomic.Int32
	lose := func(lost int32) {
		asked.Store(0)
		p.Filter(func(_ string, reply []byte) ([]byte, error) {
			if asked.Add(1) <= lost {
				return nil, nil
			}
			return reply, nil
		})
	}
	ask := func(limit time.Duration) error {
		_, err := wire.Query(t.Context(), p.Addr, zone, dns.TypeSOA, wire.WithTimeout(limit))
		return err
	}
	const answered, unanswered = 6 * time.Second, 300 * time.Millisecond
	for _, lost := range []int32{1, 2, 4} {
		lose(lost)
		// One copy more may leave the first port at the moment in which the question moves to the other one.
		if err, n := ask(answered), asked.Load(); err != nil || n <= lost || n > lost+2 {
			t.Errorf("%d lost: asked %d times, error %v", lost, n, err)
		}
	}
	lose(math.MaxInt32)
	var e *wire.Error
	if err := ask(unanswered); !errors.As(err, &e) || e.Reason() != "Timeout" {
		t.Errorf("all lost: asked %d times, error %v", asked.Load(), err)
	}
	// Replies to other questions are no replies.
	for name, forge := range map[string]func([]byte){
		"other ID": func(reply []byte) { reply[0]++ },
		"question": func(reply []byte) { reply[13]++ },
		"no reply": func(reply []byte) { reply[2] &^= 0x80 },
		"garbage":  func(reply []byte) { binary.BigEndian.PutUint16(reply[6:], 9999) },
	} {
		p.Filter(func(_ string, reply []byte) ([]byte, error) { forge(reply); return reply, nil })
		if err := ask(unanswered); !errors.As(err, &e) || e.Reason() != "Timeout" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClocks: whatever is sent by a clock that is too far ahead of the server's, or behind it, is answered by BADTIME, which comes signed and
// tells a wrong clock from a wrong key. Once the clocks agree everything works at once.
func TestClocks(t *testing.T) {
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	exchanges := map[string]func() error{
		"transfer": func() error {
			_, err := wire.Transfer(t.Context(), s.Addr, zone, nil, &s.Transfer)
			return err
		},
		"query": func() error {
			_, err := wire.Query(t.Context(), s.Addr, zone, dns.TypeSOA, wire.WithKey(&s.Transfer))
			return err
		},
		"notify": func() error { return wire.Notify(t.Context(), s.Addr, zone, 1, &s.Transfer) },
		"update": func() error {
			c, err := wire.Dial(t.Context(), s.Addr, &s.Update)
			if err != nil {
				return err
			}
			defer c.Close()
			m := new(dns.Msg)
			m.SetUpdate(zone)
			_, err = c.Exchange(t.Context(), m)
			return err
		},
	}
	for name, exchange := range exchanges {
		for _, d := range []time.Duration{-310 * time.Second, time.Hour} {
			t.Run(name+" "+d.String(), func(t *testing.T) {
				wire.ShiftClock(t, d)
				checkError(t, exchange(), dns.RcodeNotAuth, dns.RcodeBadTime, "BadTime", true)
			})
		}
		for _, d := range []time.Duration{200 * time.Second, -200 * time.Second, 0} {
			t.Run(name+" within the window "+d.String(), func(t *testing.T) {
				wire.ShiftClock(t, d)
				if err := exchange(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestTransferLimits: a transfer that keeps the limits is taken, one that exceeds any of them by one is not.
func TestTransferLimits(t *testing.T) {
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "h%d TXT %q\n", i, strings.Repeat("x", 50))
	}
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Records: many.String()}}})
	var reserved int64
	full, err := wire.Transfer(t.Context(), s.Addr, zone, nil, &s.Transfer, wire.WithLimits(wire.Limits{Reserve: func(n int64) error { reserved += n; return nil }}))
	if err != nil {
		t.Fatal(err)
	}
	records := len(full.Records) + 2 // and its SOA twice
	if least := int64(5000 * (50 + 200)); reserved < least || reserved > 2*least {
		t.Errorf("%d bytes reserved for records of at least %d", reserved, least)
	}
	failure := errors.New("no memory left")
	for name, tc := range map[string]struct {
		limits wire.Limits
		want   error
		text   string
	}{
		"as many records": {wire.Limits{Records: records}, nil, ""},
		"one record less": {wire.Limits{Records: records - 1}, wire.ErrTooLarge,
			fmt.Sprintf("transfer of %s at %s: the zone exceeds the limit of %d records, which --max-zone-records sets", zone, s.Addr, records-1)},
		"as many bytes": {wire.Limits{Bytes: reserved}, nil, ""},
		"half of the bytes": {wire.Limits{Bytes: reserved / 2}, wire.ErrTooLarge,
			fmt.Sprintf("transfer of %s at %s: the zone exceeds the limit of %d bytes, which --max-zone-bytes sets", zone, s.Addr, reserved/2)},
		"no memory": {wire.Limits{Reserve: func(int64) error { return failure }}, failure, fmt.Sprintf("transfer of %s at %s: no memory left", zone, s.Addr)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wire.Transfer(t.Context(), s.Addr, zone, nil, &s.Transfer, wire.WithLimits(tc.limits))
			if !errors.Is(err, tc.want) || err != nil && err.Error() != tc.text {
				t.Errorf("%v", err)
			}
			if e, ok := errors.AsType[*wire.Error](err); errors.Is(err, wire.ErrTooLarge) && (!ok || e.Transient() || e.Reason() != "TooLarge") {
				t.Errorf("%s, transient %t", e.Reason(), e.Transient())
			}
		})
	}
}

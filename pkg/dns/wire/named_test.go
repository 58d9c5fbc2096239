package wire_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/named"
)

const zone = "example.test."

// update is an UPDATE that adds one record.
func update(t *testing.T, record string) *dns.Msg {
	t.Helper()
	rr, err := dns.NewRR(record)
	if err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg)
	m.SetUpdate(zone)
	m.Ns = []dns.RR{rr}
	return m
}

func TestQuery(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	for i := range 60 {
		fmt.Fprintf(&long, "big TXT \"%d %s\"\n", i, strings.Repeat("x", 100))
	}
	long.WriteString("odd HTTPS 1 . ipv6hint=::ffff:192.0.2.1\nodd SVCB 1 . key65535=x\nodd APL \\# 5 0003180101\n")
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 7, Records: long.String()}}})

	for name, tc := range map[string]struct {
		name    string
		qtype   uint16
		opts    []wire.Option
		rcode   int
		answers int
	}{
		"SOA":               {zone, dns.TypeSOA, nil, dns.RcodeSuccess, 1},
		"signed":            {zone, dns.TypeSOA, []wire.Option{wire.WithKey(&s.Transfer)}, dns.RcodeSuccess, 1},
		"TCP":               {zone, dns.TypeSOA, []wire.Option{wire.WithTCP()}, dns.RcodeSuccess, 1},
		"truncated":         {"big." + zone, dns.TypeTXT, nil, dns.RcodeSuccess, 60},
		"truncated, signed": {"big." + zone, dns.TypeTXT, []wire.Option{wire.WithKey(&s.Transfer)}, dns.RcodeSuccess, 60},
		"undecodable":       {"odd." + zone, dns.TypeHTTPS, []wire.Option{wire.WithKey(&s.Transfer)}, dns.RcodeSuccess, 1},
		"no such name":      {"none." + zone, dns.TypeA, nil, dns.RcodeNameError, 0},
		"other case":        {"EXAMPLE.test.", dns.TypeSOA, nil, dns.RcodeSuccess, 1},
		"not hosted":        {"other.test.", dns.TypeSOA, nil, dns.RcodeRefused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := wire.Query(t.Context(), s.Addr, tc.name, tc.qtype, tc.opts...)
			if err != nil {
				t.Fatal(err)
			}
			if reply.Msg.Rcode != tc.rcode || len(reply.Msg.Answer) != tc.answers {
				t.Errorf("rcode %d with %d answers, want %d with %d", reply.Msg.Rcode, len(reply.Msg.Answer), tc.rcode, tc.answers)
			}
			if reply.RTT <= 0 {
				t.Errorf("RTT %s", reply.RTT)
			}
		})
	}
}

// TestKeyTrouble: NOTAUTH for a key and NOTAUTH for a zone are different things.
func TestKeyTrouble(t *testing.T) {
	t.Parallel()
	powerless := named.NewKey("powerless.")
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}, Keys: []wire.Key{powerless}})
	wrong := named.NewKey(s.Update.Name)
	unknown := named.NewKey("unknown.")

	for name, tc := range map[string]struct {
		key       *wire.Key
		zone      string
		rcode     int
		tsig      uint16
		reason    string
		transient bool
	}{
		"unknown key":     {&unknown, zone, dns.RcodeNotAuth, dns.RcodeBadKey, "BadKey", false},
		"wrong secret":    {&wrong, zone, dns.RcodeNotAuth, dns.RcodeBadSig, "BadSignature", false},
		"key without use": {&powerless, zone, dns.RcodeRefused, 0, "Refused", false},
		"zone not hosted": {&s.Update, "other.test.", dns.RcodeNotAuth, 0, "NotLoaded", true},
	} {
		t.Run("transfer, "+name, func(t *testing.T) {
			_, err := wire.Transfer(t.Context(), s.Addr, tc.zone, nil, tc.key)
			checkError(t, err, tc.rcode, tc.tsig, tc.reason, tc.transient)
		})
		t.Run("update, "+name, func(t *testing.T) {
			conn, err := wire.Dial(t.Context(), s.Addr, tc.key)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			m := update(t, "www."+zone+" 60 A 192.0.2.9")
			m.Question[0].Name = tc.zone
			reply, err := conn.Exchange(t.Context(), m)
			if err == nil {
				err = &wire.Error{Rcode: reply.Rcode}
			}
			checkError(t, err, tc.rcode, tc.tsig, tc.reason, tc.transient)
		})
	}
}

func checkError(t *testing.T, err error, rcode int, tsig uint16, reason string, transient bool) {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *wire.Error", err)
	}
	if e.Rcode != rcode || e.TSIGError != tsig || e.Reason() != reason || e.Transient() != transient || e.Sent {
		t.Errorf("%v: rcode %d, TSIG error %d, reason %s, transient %t, sent %t; want %d, %d, %s, %t",
			err, e.Rcode, e.TSIGError, e.Reason(), e.Transient(), e.Sent, rcode, tsig, reason, transient)
	}
}

// TestConnReuse: many signed messages on one connection, the message passed in never changed.
func TestConnReuse(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	conn, err := wire.Dial(t.Context(), s.Addr, &s.Update)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m := update(t, "www."+zone+" 60 A 192.0.2.9")
	before := m.Copy()
	for range 5 {
		reply, err := conn.Exchange(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Rcode != dns.RcodeSuccess {
			t.Fatalf("rcode %s", dns.RcodeToString[reply.Rcode])
		}
	}
	if m.String() != before.String() {
		t.Errorf("the message was changed:\n%s\nto\n%s", before, m)
	}
}

// TestConnObeysContext: nothing is sent once the context is over, whatever it waited for.
func TestConnObeysContext(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	conn, err := wire.Dial(t.Context(), s.Addr, &s.Update)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	for range 20 {
		_, err := conn.Exchange(ctx, update(t, "www."+zone+" 60 A 192.0.2.9"))
		if e, ok := errors.AsType[*wire.Error](err); !ok || e.Sent || !errors.Is(err, over) {
			t.Fatalf("the error is %v", err)
		}
	}
}

// TestConnSurvivesRestart: a server that went away and came back is found again, without sending anything twice.
func TestConnSurvivesRestart(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	conn, err := wire.Dial(t.Context(), s.Addr, &s.Update)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s.Stop()
	_, err = conn.Exchange(t.Context(), update(t, "a."+zone+" 60 A 192.0.2.9"))
	if e, ok := errors.AsType[*wire.Error](err); !ok || e.Sent || e.Reason() != "ConnectionRefused" || !e.Transient() {
		t.Errorf("with the server stopped: %v", err)
	}
	s.Restart(t)
	if _, err := conn.Exchange(t.Context(), update(t, "a."+zone+" 60 A 192.0.2.9")); err != nil {
		t.Errorf("with the server back: %v", err)
	}
}

func TestSilence(t *testing.T) {
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	conn, err := wire.Dial(t.Context(), s.Addr, &s.Update)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s.Pause()
	defer s.Resume()
	calls := map[string]func(context.Context) error{
		"query": func(ctx context.Context) error {
			_, err := wire.Query(ctx, s.Addr, zone, dns.TypeSOA)
			return err
		},
		"transfer": func(ctx context.Context) error {
			_, err := wire.Transfer(ctx, s.Addr, zone, nil, &s.Transfer)
			return err
		},
		"notify": func(ctx context.Context) error { return wire.Notify(ctx, s.Addr, zone, 1, &s.Transfer) },
		"update": func(ctx context.Context) error {
			_, err := conn.Exchange(ctx, update(t, "a."+zone+" 60 A 192.0.2.9"))
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			err := call(ctx)
			if e, ok := errors.AsType[*wire.Error](err); !ok || e.Reason() != "Timeout" || !e.Transient() || e.Sent != (name == "update") {
				t.Errorf("error %v", err)
			}
		})
		t.Run(name+", canceled", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			if err := call(ctx); !errors.Is(err, context.Canceled) { // not that its own time is over
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "h%d A 198.51.100.%d\n", i, i%256)
	}
	many.WriteString("odd HTTPS 1 . ipv6hint=::ffff:192.0.2.1\nodd SVCB 1 . key65535=x\nodd APL \\# 5 0003180101\n") // miekg/dns reads none of these.
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 10, Records: many.String()}}})
	full, err := wire.Transfer(t.Context(), s.Addr, zone, nil, &s.Transfer)
	if err != nil {
		t.Fatal(err)
	}
	if !full.Full || len(full.Records) != 5005 || full.SOA.Serial != 10 || full.SOA.MName != "ns1."+zone {
		t.Fatalf("full transfer: %d records, SOA %+v", len(full.Records), full.SOA)
	}
	same, err := wire.Transfer(t.Context(), s.Addr, zone, &full.SOA, &s.Transfer)
	if err != nil || !same.UpToDate || same.Full || same.SOA != full.SOA {
		t.Fatalf("transfer of nothing: %+v, %v", same, err)
	}

	conn, err := wire.Dial(t.Context(), s.Addr, &s.Update)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, record := range []string{"a." + zone + " 60 A 192.0.2.9", "b." + zone + " 60 TXT x", "h1." + zone + " 60 A 192.0.2.9"} {
		if _, err := conn.Exchange(t.Context(), update(t, record)); err != nil {
			t.Fatal(err)
		}
	}
	changes, err := wire.Transfer(t.Context(), s.Addr, zone, &full.SOA, &s.Transfer)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, d := range changes.Deltas {
		steps = append(steps, fmt.Sprintf("%d-%d -%d +%d", d.From.Serial, d.To.Serial, len(d.Deleted), len(d.Added)))
	}
	want := []string{"10-11 -0 +1", "11-12 -0 +1", "12-13 -1 +2"} // the last changes the TTL of the RRset
	if !slices.Equal(steps, want) || changes.SOA.Serial != 13 {
		t.Errorf("steps %q to %d, want %q", steps, changes.SOA.Serial, want)
	}
	// A serial that the server never had: everything is sent.
	strange := full.SOA
	for _, serial := range []uint32{5, 4000, 13 + 1<<30} {
		strange.Serial = serial
		again, err := wire.Transfer(t.Context(), s.Addr, zone, &strange, &s.Transfer)
		if err != nil || !again.Full || len(again.Records) != 5008 {
			t.Errorf("transfer from serial %d: full %t, %d records, %v", serial, again.Full, len(again.Records), err)
		}
	}
}

func TestNotify(t *testing.T) {
	t.Parallel()
	primary, secondaries := named.StartFleet(t, 1, named.Zone{Name: zone})
	unknown := named.NewKey("unknown.")
	if err := wire.Notify(t.Context(), secondaries[0].Addr, zone, 2, &primary.Transfer); err != nil {
		t.Error(err)
	}
	checkError(t, wire.Notify(t.Context(), secondaries[0].Addr, zone, 2, &unknown), dns.RcodeNotAuth, dns.RcodeBadKey, "BadKey", false)
	err := wire.Notify(t.Context(), secondaries[0].Addr, "other.test.", 2, &primary.Transfer)
	checkError(t, err, dns.RcodeNotAuth, 0, "NotLoaded", true)
}

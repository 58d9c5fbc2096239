package wire

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// parse reads messages, one a line, with records apart by ";". "S5" is an SOA with serial 5, "a1" an A record.
func parse(t testing.TB, lines ...string) []*dns.Msg {
	t.Helper()
	var messages []*dns.Msg
	for _, line := range lines {
		m := new(dns.Msg)
		for _, f := range strings.Fields(line) {
			text := "example.test. 60 SOA ns. hm. " + f[1:] + " 1 2 3 4"
			if f[0] != 'S' {
				text = f[:1] + ".example.test. 60 A 192.0.2." + f[1:]
			}
			rr, err := dns.NewRR(text)
			if err != nil {
				t.Fatal(err)
			}
			m.Answer = append(m.Answer, rr)
		}
		messages = append(messages, m)
	}
	return messages
}

// partsOf is a message as the assembler takes it.
func partsOf(m *dns.Msg) (rcode, answers int, records iter.Seq2[dns.RR, error]) {
	return m.Rcode, len(m.Answer), func(yield func(dns.RR, error) bool) {
		for _, rr := range m.Answer {
			if !yield(rr, nil) {
				return
			}
		}
	}
}

// show is a result in one line.
func (r TransferResult) show() string {
	list := func(records []Record) string {
		var s []string
		for _, rec := range records {
			s = append(s, rec.Name[:1]+strings.TrimPrefix(rec.Rdata, "192.0.2."))
		}
		return "[" + strings.Join(s, " ") + "]"
	}
	switch {
	case r.UpToDate:
		return fmt.Sprintf("up to date at %d", r.SOA.Serial)
	case r.Full:
		return fmt.Sprintf("full at %d %s", r.SOA.Serial, list(r.Records))
	}
	out := fmt.Sprintf("steps to %d", r.SOA.Serial)
	for _, d := range r.Deltas {
		out += fmt.Sprintf(" %d-%d -%s +%s", d.From.Serial, d.To.Serial, list(d.Deleted), list(d.Added))
	}
	return out
}

func TestAssembler(t *testing.T) {
	soa := func(serial uint32) *rrset.SOA { return &rrset.SOA{Serial: serial, MName: "ns.", RName: "hm."} }
	for name, tc := range map[string]struct {
		from     *rrset.SOA
		messages []string
		want     string
		err      error
	}{
		"full":                           {nil, []string{"S5 a1 b2 S5"}, "full at 5 [a1 b2]", nil},
		"full, a record in each message": {nil, []string{"S5", "a1", "b2", "S5"}, "full at 5 [a1 b2]", nil},
		"full, empty":                    {nil, []string{"S5 S5"}, "full at 5 []", nil},
		"full, changed under way":        {nil, []string{"S5 a1 S6"}, "", ErrReply},
		"no SOA first":                   {nil, []string{"a1 S5"}, "", ErrReply},
		"no records":                     {nil, []string{""}, "", ErrReply},
		"records behind the end":         {nil, []string{"S5 a1 S5 b2"}, "", ErrReply},

		"nothing new":                     {soa(5), []string{"S5"}, "up to date at 5", nil},
		"server behind":                   {soa(5), []string{"S4"}, "", errNeedFull},
		"server behind, round the corner": {soa(2), []string{"S4294967295"}, "", errNeedFull},
		"one step":                        {soa(5), []string{"S6 S5 a1 S6 b2 S6"}, "steps to 6 5-6 -[a1] +[b2]", nil},
		"additions only":                  {soa(5), []string{"S6 S5 S6 b2 S6"}, "steps to 6 5-6 -[] +[b2]", nil},
		"an empty step":                   {soa(5), []string{"S6 S5 S6 S6"}, "steps to 6 5-6 -[] +[]", nil},
		"two steps":                       {soa(5), []string{"S7 S5 a1 S6 b2 S6 b2 S7 c3 S7"}, "steps to 7 5-6 -[a1] +[b2] 6-7 -[b2] +[c3]", nil},
		"a record in each message":        {soa(5), []string{"S7", "S5", "a1", "S6", "b2", "S6", "S7", "c3", "S7"}, "steps to 7 5-6 -[a1] +[b2] 6-7 -[] +[c3]", nil},
		"steps round the corner":          {soa(4294967295), []string{"S1 S4294967295 a1 S1 b2 S1"}, "steps to 1 4294967295-1 -[a1] +[b2]", nil},
		"full instead":                    {soa(5), []string{"S9 a1 S9"}, "full at 9 [a1]", nil},
		"full instead, SOA first alone":   {soa(5), []string{"S9", "a1 S9"}, "full at 9 [a1]", nil},
		"a gap between steps":             {soa(5), []string{"S9 S5 a1 S6 b2 S7 S9 S9"}, "", ErrReply},
		"steps from elsewhere":            {soa(5), []string{"S9 S8 a1 S9 b2 S9"}, "", ErrReply},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAssembler(transferRequest("example.test.", tc.from), limitsOf(nil))
			var err error
			for i, m := range parse(t, tc.messages...) {
				if a.complete {
					t.Fatalf("complete before message %d", i)
				}
				if err = a.addMessage(partsOf(m)); err != nil {
					break
				}
			}
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if err != nil {
				return
			}
			if !a.complete {
				t.Error("not complete")
			}
			if diff := cmp.Diff(tc.want, a.result.show()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAssemblerRcodes(t *testing.T) {
	for name, tc := range map[string]struct {
		from  *rrset.SOA
		rcode int
		full  bool
	}{
		"IXFR not implemented": {&rrset.SOA{Serial: 1}, dns.RcodeNotImplemented, true},
		"IXFR not understood":  {&rrset.SOA{Serial: 1}, dns.RcodeFormatError, true},
		"IXFR refused":         {&rrset.SOA{Serial: 1}, dns.RcodeRefused, false},
		"AXFR not implemented": {nil, dns.RcodeNotImplemented, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := new(dns.Msg)
			m.Rcode = tc.rcode
			err := newAssembler(transferRequest("example.test.", tc.from), limitsOf(nil)).addMessage(partsOf(m))
			if _, ok := errors.AsType[*Error](err); errors.Is(err, errNeedFull) != tc.full || ok == tc.full {
				t.Errorf("error %v", err)
			}
		})
	}
}

// FuzzAssembler: whatever comes, no panic, and what is taken for complete is consistent.
func FuzzAssembler(f *testing.F) {
	f.Add([]byte("5S5S6aS6"), true)
	f.Add([]byte("5abS5"), false)
	f.Fuzz(func(t *testing.T, script []byte, incremental bool) {
		var from *rrset.SOA
		if incremental {
			from = &rrset.SOA{Serial: 5, MName: "ns.", RName: "hm."}
		}
		a := newAssembler(transferRequest("example.test.", from), limitsOf(nil))
		for _, c := range script {
			text := fmt.Sprintf("%c1", 'a'+c%26)
			if c < 'a' {
				text = fmt.Sprintf("S%d", c%8)
			}
			if a.addMessage(partsOf(parse(t, text)[0])) != nil || a.complete {
				break
			}
		}
		r := a.result
		if !a.complete || r.Full || r.UpToDate {
			return
		}
		at := from.Serial
		for _, d := range r.Deltas {
			if d.From.Serial != at {
				t.Fatalf("%s: a step does not follow", r.show())
			}
			at = d.To.Serial
		}
		if at != r.SOA.Serial {
			t.Fatalf("%s: the end is missing", r.show())
		}
	})
}

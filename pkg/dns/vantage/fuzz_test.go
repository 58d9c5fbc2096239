package vantage

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// FuzzResponse: whatever a vantage sends, each question has one answer, in bounds, and without words of the vantage's.
func FuzzResponse(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte, questions uint8) {
		answers, err := readAnswers(bytes.NewReader(body), int(questions))
		if err != nil {
			return
		}
		if len(answers) != int(questions) {
			t.Fatalf("%d answers to %d questions", len(answers), questions)
		}
		q := Question{Address: netip.MustParseAddrPort("192.0.2.1:53")}
		for _, a := range answers {
			o := a.observation(q, "z.test.", time.Unix(0, 0))
			if o.Server != q.Address || o.Rcode != observe.NoReply && o.Rcode&^0xfff != 0 || o.RTT < 0 || o.RTT > time.Minute {
				t.Errorf("observation %+v", o)
			}
			if len(o.ServerID) > 64 || strings.ContainsFunc(o.ServerID, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("server %q", o.ServerID)
			}
			if len(o.SOA.MName)+len(o.SOA.RName) > maxNames {
				t.Errorf("SOA names of %d and %d bytes", len(o.SOA.MName), len(o.SOA.RName))
			}
			if (o.Err != nil) != (a.Failure != "") || o.Err != nil && o.Authoritative {
				t.Errorf("failure %q became %v", a.Failure, o.Err)
			}
			if o.Err != nil && len(a.Failure) > 9 && strings.Contains(o.Err.Error(), string(a.Failure)) {
				t.Errorf("its own words are passed on: %v", o.Err)
			}
		}
	})
}

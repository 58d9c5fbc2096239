package rfc2136

import (
	"errors"
	"fmt"
	"testing"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

func TestUpdatesAreCountedByRcode(t *testing.T) {
	updates.Reset()
	countUpdate(nil, errors.New("i/o timeout"))
	for rcode := range 4096 { // Whatever a server answers adds few series.
		countUpdate(&dns.Msg{MsgHdr: dns.MsgHdr{Rcode: rcode}}, nil)
	}
	if n, most := testutil.CollectAndCount(updates), len(dns.RcodeToString)+2; n > most {
		t.Errorf("%d series, want at most %d", n, most)
	}
	for _, rcode := range []string{"none", "NOERROR", "REFUSED"} {
		if n := testutil.ToFloat64(updates.WithLabelValues(rcode)); n != 1 {
			t.Errorf("%s: %v messages, want 1", rcode, n)
		}
	}

	updates.Reset()
	for want, e := range map[string]*wire.Error{
		"BADKEY": {Rcode: dns.RcodeNotAuth, TSIGError: dns.RcodeBadKey}, "BADSIG": {Rcode: dns.RcodeNotAuth, TSIGError: dns.RcodeBadSig},
		"NOTAUTH": {Rcode: dns.RcodeNotAuth, Err: wire.ErrUnsigned}, "none": {Sent: true, Err: wire.ErrUnsigned},
	} {
		countUpdate(nil, fmt.Errorf("updating: %w", e))
		if n := testutil.ToFloat64(updates.WithLabelValues(want)); n != 1 {
			t.Errorf("%s: %v messages, want 1", want, n)
		}
	}
}

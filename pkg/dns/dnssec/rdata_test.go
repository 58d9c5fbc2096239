package dnssec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// TestNamesInRdata: BIND signs names in the data of records in lower case, where RFC 4034 section 6.2 has them so, and as they are where RFC
// 6840 section 5.1 does. NSAP-PTR is left out: BIND has it in lower case, too, against both.
func TestNamesInRdata(t *testing.T) {
	const zone = "Rdata.Test."
	z := &liveZone{name: zone, dir: t.TempDir()}
	newKeys(t, zone, z.dir, "ECDSAP256SHA256")
	var text strings.Builder
	fmt.Fprintf(&text, "$ORIGIN %s\n%s", zone, liveApex)
	for _, data := range []string{
		"CNAME Target.X", "DNAME Target.X", "PTR Target.X", "MX 1 Target.X", "SRV 1 2 3 Target.X", "NAPTR 1 2 \"S\" \"SIP+D2U\" \"\" Target.X", "AFSDB 1 Target.X", "RP Mail.X Text.X",
		"KX 1 Target.X", "PX 1 Map822.X MapX400.X", "RT 1 Target.X", "MB Target.X", "MG Target.X", "MR Target.X", "MINFO R.X E.X", "SVCB 1 Target.X alpn=h2", "HTTPS 1 Target.X",
		"LP 1 Target.X", "L32 1 192.0.2.1", "TALINK A.X B.X", "HIP 2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc5EMzxTs9LBPCIkOFH8cIvM4p9+LrV4e19WzK00+CI6zBCQTdtWsuxKbWIy87UOoJTwkUs7lBu+Upr1gsNrut79ryra+bSRGQb1slImA8YVJyuIDsj7kwzG7jnERNqnWxZ48AWkskmdHaVDP4BcelrTI3rMXdXF5D Rvs.X",
		"CAA 0 issue \"CA.Example\"", "URI 10 1 \"https://X.Example/\"", "HINFO \"CPU\" \"OS\"", "TYPE65533 \\# 3 414243", "CSYNC 1 3 A NS", "AMTRELAY 10 0 3 Relay.X",
	} {
		rrtype, _, _ := strings.Cut(data, " ")
		fmt.Fprintf(&text, "Owner-%s 300 %s\n", rrtype, data)
	}
	signed := z.sign(t, z.dir, text.String())
	now := Clock{Now: time.Now()}
	keys := Trust(zone, signed, records(t, dsFrom(signed)), now)
	if v := keys.Verdict(); v.Security != Secure {
		t.Fatalf("%+v", v)
	}
	n := 0
	for _, s := range groupRecords(signed, canonical(zone)) {
		if s.Type == dns.TypeNSEC || s.Type == dns.TypeDNSKEY {
			continue
		}
		n++
		m := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true}, Question: []dns.Question{{Name: s.Name, Qtype: s.Type, Qclass: dns.ClassINET}}}
		// As the mirror of a zone has them, too.
		for _, rr := range s.records {
			_, _, data := rrset.FromRR(rr)
			again, err := rrset.ToRR(s.Key, rr.Header().Ttl, data)
			if err != nil {
				t.Errorf("%s: %v", s.Key, err)
				continue
			}
			m.Answer = append(m.Answer, again)
		}
		for _, signature := range s.signatures {
			m.Answer = append(m.Answer, signature)
		}
		if v := keys.Judge(m, now); v.Security != Secure {
			t.Errorf("%s: %+v", s.Key, v)
		}
	}
	if n < 30 {
		t.Errorf("only %d RRsets were judged", n)
	}
}

// dsFrom are DS records of the key-signing keys of a signed zone.
func dsFrom(signed []dns.RR) string {
	var b strings.Builder
	for _, rr := range signed {
		if key, ok := rr.(*dns.DNSKEY); ok && key.Flags&dns.SEP != 0 {
			fmt.Fprintln(&b, key.ToDS(dns.SHA256))
		}
	}
	return b.String()
}

package declaration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Short forms of the specs of all kinds.
type (
	a     = v1beta1.ARecordSpec
	aaaa  = v1beta1.AAAARecordSpec
	cname = v1beta1.CNAMERecordSpec
	ns    = v1beta1.NSRecordSpec
	txt   = v1beta1.TXTRecordSpec
	mx    = v1beta1.MXRecordSpec
	srv   = v1beta1.SRVRecordSpec
	caa   = v1beta1.CAARecordSpec
	ptr   = v1beta1.PTRRecordSpec
	typed = v1beta1.DNSRecordSpec
)

func recordOf(spec any) v1beta1.Record {
	switch s := spec.(type) {
	case a:
		return &v1beta1.ARecord{Spec: s}
	case aaaa:
		return &v1beta1.AAAARecord{Spec: s}
	case cname:
		return &v1beta1.CNAMERecord{Spec: s}
	case ns:
		return &v1beta1.NSRecord{Spec: s}
	case txt:
		return &v1beta1.TXTRecord{Spec: s}
	case mx:
		return &v1beta1.MXRecord{Spec: s}
	case srv:
		return &v1beta1.SRVRecord{Spec: s}
	case caa:
		return &v1beta1.CAARecord{Spec: s}
	case ptr:
		return &v1beta1.PTRRecord{Spec: s}
	case typed:
		return &v1beta1.DNSRecord{Spec: s}
	}
	panic(fmt.Sprintf("no kind for %T", spec))
}

func TestRecordData(t *testing.T) {
	for name, test := range map[string]struct {
		spec any
		want []string
	}{
		"A":                   {a{IPv4Addresses: []string{"192.0.2.2", "192.0.2.1", "192.0.2.2"}}, []string{"192.0.2.1", "192.0.2.2"}},
		"A, older form":       {a{IPv4Address: "192.0.2.1"}, []string{"192.0.2.1"}},
		"A, both forms":       {a{IPv4Address: "192.0.2.1", IPv4Addresses: []string{"192.0.2.0"}}, []string{"192.0.2.0", "192.0.2.1"}},
		"AAAA":                {aaaa{IPv6Addresses: []string{"2001:DB8:0::1"}}, []string{"2001:db8::1"}},
		"AAAA, older form":    {aaaa{IPv6Address: "2001:db8::1"}, []string{"2001:db8::1"}},
		"PTR absolute":        {ptr{Target: "WWW.Example.org."}, []string{"www.example.org."}},
		"PTR relative":        {ptr{Target: "web"}, []string{"web.example.com."}},
		"CNAME absolute":      {cname{Target: "WWW.Example.org."}, []string{"www.example.org."}},
		"CNAME relative":      {cname{Target: "web"}, []string{"web.example.com."}},
		"CNAME relative deep": {cname{Target: "a.b"}, []string{"a.b.example.com."}},
		"CNAME to the zone":   {cname{Target: "@"}, []string{"example.com."}},
		"NS":                  {ns{Nameserver: "ns1.sub"}, []string{"ns1.sub.example.com."}},
		"TXT":                 {txt{Text: []string{"v=spf1 -all"}}, []string{`"v=spf1 -all"`}},
		"TXT strings":         {txt{Text: []string{`a"b`, `c\d`}}, []string{`"a\"b" "c\\d"`}},
		"TXT UTF-8":           {txt{Text: []string{"ü"}}, []string{`"\195\188"`}},
		"TXT split":           {txt{Text: []string{strings.Repeat("x", 300)}}, []string{`"` + strings.Repeat("x", 255) + `" "` + strings.Repeat("x", 45) + `"`}},
		"MX":                  {mx{Priority: 10, MailServer: "Mail.example.com."}, []string{"10 mail.example.com."}},
		"MX, no mail":         {mx{MailServer: "."}, []string{"0 ."}},
		"SRV":                 {srv{Priority: 1, Weight: 2, Port: 65535, Target: "host"}, []string{"1 2 65535 host.example.com."}},
		"SRV, no service":     {srv{Target: "."}, []string{"0 0 0 ."}},
		"CAA":                 {caa{Tag: "Issue", Value: "letsencrypt.org"}, []string{`0 issue "letsencrypt.org"`}},
		"CAA, nobody":         {caa{Flags: 128, Tag: "issue", Value: ";"}, []string{`128 issue ";"`}},
		"CAA, empty value":    {caa{Tag: "issue"}, []string{`0 issue ""`}},
		"HTTPS":               {typed{Type: "https", Data: []string{"1 . alpn=h3,h2", "2 Web alpn=h2"}}, []string{`1 . alpn="h3,h2"`, `2 Web.example.com. alpn="h2"`}},
		"TLSA":                {typed{Type: "TLSA", Data: []string{"3 1 1 AB CD"}}, []string{"3 1 1 abcd"}},
		"DS":                  {typed{Type: "DS", Data: []string{"12345 13 9 0123456789ABCDEF"}}, []string{"12345 13 9 0123456789ABCDEF"}},
		"NAPTR, relative":     {typed{Type: "NAPTR", Data: []string{`10 100 "S" "SIP+D2U" "" _sip._udp`}}, []string{`10 100 "S" "SIP+D2U" "" _sip._udp.example.com.`}},
		"RP":                  {typed{Type: "RP", Data: []string{"Admin.Example.org. ."}}, []string{"admin.example.org. ."}},
		"DNAME, the zone":     {typed{Type: "DNAME", Data: []string{"@"}}, []string{"example.com."}},
		"MX as DNSRecord":     {typed{Type: "MX", Data: []string{" 10  Mail", "20 backup.example.org."}}, []string{"10 mail.example.com.", "20 backup.example.org."}},
		"A as DNSRecord":      {typed{Type: "A", Data: []string{"192.0.2.1"}}, []string{"192.0.2.1"}},
		"TXT as DNSRecord":    {typed{Type: "TXT", Data: []string{`"a b" c`}}, []string{`"a b" "c"`}},
		"unknown type":        {typed{Type: "TYPE65280", Data: []string{`\# 4 0A000001`, `\# 0`}}, []string{`\# 0`, `\# 4 0a000001`}},
		"PTR to a service":    {ptr{Target: "Büro 2._ipp._tcp"}, []string{`b\195\188ro\0322._ipp._tcp.example.com.`}},
	} {
		t.Run(name, func(t *testing.T) {
			record := recordOf(test.spec)
			rrtype, got, err := RecordData(record, "example.com")
			if err != nil {
				t.Fatal(err)
			}
			if want := RecordType(record); rrtype != want || want == 0 {
				t.Errorf("type %s, want %s", dns.Type(rrtype), dns.Type(want))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			for _, s := range got {
				if again, err := rrset.Parse(rrset.Key{Type: rrtype}, s); err != nil || again != s {
					t.Errorf("%q is not canonical: %q, %v", s, again, err)
				}
			}
		})
	}
}

func TestRecordDataRefuses(t *testing.T) {
	many := make([]string, 4001)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	for name, test := range map[string]struct {
		spec    any
		message string
	}{
		"A without address":       {a{}, "spec.ipv4Addresses: there is no address"},
		"A with a name":           {a{IPv4Addresses: []string{"192.0.2.1", "www"}}, "spec.ipv4Addresses[1]: "},
		"A with IPv6":             {a{IPv4Address: "2001:db8::1"}, "spec.ipv4Address: "},
		"A with too many":         {a{IPv4Addresses: many}, "there are 4001 values; at most 4000 fit into an answer"},
		"A too large":             {a{IPv4Addresses: many[:3900]}, "the data takes 61200 bytes; at most 60000 fit"},
		"AAAA with IPv4":          {aaaa{IPv6Addresses: []string{"192.0.2.1"}}, "spec.ipv6Addresses[0]: "},
		"CNAME without target":    {cname{}, "spec.target: the name is empty"},
		"CNAME to the root":       {cname{Target: "."}, "spec.target: "},
		"CNAME to an address":     {cname{Target: "192.0.2.1"}, "publish its address with an ARecord"},
		"CNAME to IPv6":           {cname{Target: "2001:db8::1"}, "publish its address with an AAAARecord"},
		"CNAME zone repeated":     {cname{Target: "www.example.com"}, `or "www.example.com." with the final dot`},
		"CNAME IDN":               {cname{Target: "bücher.example."}, `"xn--bcher-kva.example."`},
		"NS to an address":        {ns{Nameserver: "192.0.2.1."}, "spec.nameserver: "},
		"TXT without text":        {txt{}, "spec.text: a TXT record needs at least one string"},
		"TXT too long":            {txt{Text: []string{strings.Repeat("x", 60000)}}, "spec.text: the data takes 60"},
		"TXT much too long":       {txt{Text: []string{strings.Repeat("x", 70000)}}, "spec.text: the strings take 70"},
		"MX priority":             {mx{Priority: 65536, MailServer: "mail"}, "spec.priority: 65536"},
		"MX negative priority":    {mx{Priority: -1, MailServer: "mail"}, "spec.priority: -1"},
		"MX without server":       {mx{}, "spec.mailServer: "},
		"SRV weight":              {srv{Weight: 70000, Target: "host"}, "spec.weight: 70000"},
		"SRV port":                {srv{Port: -5, Target: "host"}, "spec.port: -5"},
		"CAA flags":               {caa{Flags: 256, Tag: "issue"}, "spec.flags: 256"},
		"CAA tag":                 {caa{Tag: "is sue"}, "letters and digits"},
		"CAA without tag":         {caa{}, "letters and digits"},
		"CAA much too long value": {caa{Tag: "issue", Value: strings.Repeat("x", 70000)}, "bytes"},
		"no type":                 {typed{Data: []string{"x"}}, `spec.type: "" is not a record type`},
		"a type of one maker":     {typed{Type: "alias", Data: []string{"x"}}, "spec.type: ALIAS is PowerDNS' own: its server answers with the addresses of another name; declare these"},
		"a type that is none":     {typed{Type: "BOGUS", Data: []string{"x"}}, `spec.type: "BOGUS" is not a record type; write one of the IANA registry, such as HTTPS`},
		"SOA":                     {typed{Type: "SOA", Data: []string{"x"}}, "spec.type: the DNSZone declares the SOA record"},
		"RRSIG":                   {typed{Type: "RRSIG", Data: []string{"x"}}, "spec.type: servers maintain RRSIG records"},
		"NSEC3PARAM by number":    {typed{Type: "TYPE51", Data: []string{"x"}}, "spec.type: servers maintain NSEC3PARAM records"},
		"a meta type":             {typed{Type: "OPT", Data: []string{"x"}}, "spec.type: OPT is no data of a zone"},
		"a question":              {typed{Type: "ANY", Data: []string{"x"}}, "spec.type: ANY is no data of a zone"},
		"no data":                 {typed{Type: "HTTPS"}, "spec.data: there is no data"},
		"the third is wrong":      {typed{Type: "HTTPS", Data: []string{"1 .", "2 .", "x"}}, `spec.data[2]: HTTPS rdata "x": `},
		"the wrong length":        {typed{Type: "TYPE65280", Data: []string{`\# 3 0a000001`}}, "spec.data[0]: TYPE65280 rdata"},
		"several lines":           {typed{Type: "LOC", Data: []string{"1 N\n2"}}, `spec.data[0]: LOC rdata "1 N\n2": rdata must be one line`},
		"two DNAMEs":              {typed{Type: "DNAME", Data: []string{"a", "b"}}, "spec.data: a DNAME has one target, and there are 2 (RFC 6672 section 2.4)"},
		"PTR to an address":       {typed{Type: "PTR", Data: []string{"192.0.2.1"}}, `spec.data[0]: "192.0.2.1" is an address`},
		"MX without a number":     {typed{Type: "MX", Data: []string{"mail"}}, "spec.data[0]: MX rdata"},
	} {
		t.Run(name, func(t *testing.T) {
			_, got, err := RecordData(recordOf(test.spec), "example.com")
			if err == nil {
				t.Fatalf("accepted as %q", got)
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("message %q does not say %q", err, test.message)
			}
		})
	}
	if _, _, err := RecordData(nil, "example.com"); err == nil {
		t.Error("no record was accepted")
	}
}

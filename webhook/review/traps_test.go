package review

import (
	"fmt"
	"strings"
	"testing"
)

// Each case wants the traps that are warned of, in order, whichever kind the data comes by.
func TestTraps(t *testing.T) {
	txt := func(texts string) string { return record("TXTRecord", "a", `{name: a, text: [`+texts+`]}`) }
	caa := func(rest string) string { return record("CAARecord", "a", `{name: a, flags: 0, `+rest+`}`) }
	long := strings.Repeat("x", 255)
	for name, tc := range map[string]struct {
		object string
		want   string
	}{
		"one text":                    {txt(`"v=spf1 mx -all"`), ""},
		"two records":                 {txt(`"v=spf1 mx -all", "site-verification=abc123"`), "txt-list"},
		"two records, other order":    {txt(`"google-site-verification=abc123", "v=spf1 mx -all"`), "txt-list"},
		"words of an SPF text":        {txt(`"v=spf1", "mx", "-all"`), "txt-list"},
		"joined words of an SPF text": {txt(`"v=spf1 mx", "-all"`), "txt-list"},
		"strings of an SPF text":      {txt(`"v=spf1 mx ", "-all"`), ""},
		"strings of a key":            {txt(`"v=DKIM1; k=rsa; p=MIIBIjANBg", "kqhkiG9w0BAQ=="`), ""},
		"what begins after a break":   {txt(`"` + long + `", "v=spf1 mx"`), ""},
		"one long text":               {txt(`"` + long + `v=spf1 mx"`), ""},
		"records by an endpoint":      {endpoint(`{dnsName: a.example.com, recordType: TXT, targets: ["v=spf1 mx -all", "site-verification=abc"]}`), ""},
		"strings by an endpoint":      {endpoint(`{dnsName: a.example.com, recordType: TXT, targets: ['"v=spf1 mx -all" "site-verification=abc"']}`), "txt-list"},
		"strings by a DNSRecord":      {record("DNSRecord", "a", `{name: a, type: TXT, data: ['"v=spf1 mx -all" "MS=ms1"']}`), "txt-list"},

		"tags of DMARC":        {txt(`"v=DMARC1; p=none", "rua=mailto:a@b.test"`), "txt-list"},
		"tags of DKIM":         {txt(`"v=DKIM1; k=rsa; p=MIIB", "t=s"`), "txt-list"},
		"tags with semicolons": {txt(`"v=DMARC1; p=none;", "rua=mailto:a@b.test"`), ""},
		"semicolon and blank":  {txt(`"v=DMARC1; p=none; ", "rua=mailto:a@b.test"`), ""},
		"end of a key":         {txt(`"v=DKIM1; k=rsa; p=MIIB", "ab=="`), ""},

		"printed quotes":              {txt(`"“v=spf1 mx -all”"`), "quotes"},
		"printed quotes within":       {txt(`"say “hello” to all"`), ""},
		"escaped semicolons":          {txt(`'v=DKIM1\; k=rsa\; p=MIIB'`), "quotes"},
		"escaped quotes":              {txt(`'say \"hello\" to all'`), "quotes"},
		"a backslash":                 {txt(`'C:\dir'`), ""},
		"escapes of an endpoint":      {endpoint(`{dnsName: a.example.com, recordType: TXT, targets: ['"v=DKIM1\; k=rsa"']}`), ""},
		"quotes":                      {txt(`'"v=spf1 mx -all"'`), "quotes"},
		"quotes of several strings":   {txt(`'"v=DKIM1; k=rsa; p=MIIBIjANBg" "kqhkiG9w0BAQ=="'`), "quotes"},
		"quotes between strings":      {txt(`'v=DKIM1; k=rsa; p=MIIBIjANBg" "kqhkiG9w0BAQ=='`), "quotes"},
		"quotes over several strings": {txt(`'"v=DKIM1; k=rsa', 'p=MIIBIjANBg"'`), "quotes"},
		"apostrophes":                 {txt(`"'v=spf1 mx -all'"`), "quotes"},
		"quotes within":               {txt(`'say "hello" to all'`), ""},
		"one quote":                   {txt(`'"'`), ""},
		"notation of an endpoint":     {endpoint(`{dnsName: a.example.com, recordType: TXT, targets: ['"v=spf1 mx -all"']}`), ""},
		"quotes in an endpoint":       {endpoint(`{dnsName: a.example.com, recordType: TXT, targets: ['"\"v=spf1 mx -all\""']}`), "quotes"},
		"quotes in another's":         {endpoint(`{dnsName: a.elsewhere.test, recordType: TXT, targets: ['"\"v=spf1 mx -all\""']}`), ""},
		"quotes in a DNSRecord":       {record("DNSRecord", "a", `{name: a, type: TXT, data: ['"\"x\""']}`), "quotes"},
		"quotes in CAA":               {caa(`tag: issue, value: '"letsencrypt.org"'`), "quotes"},
		"quotes without a zone":       {strings.Replace(txt(`'"v=spf1 mx -all"'`), "namespace: dns", "namespace: elsewhere", 1), "quotes"},

		"line end":               {txt(`"v=spf1 mx -all\n"`), "line-end"},
		"line ends within":       {txt(`"a\r\nb"`), "line-end"},
		"line end of CAA":        {caa(`tag: issue, value: "letsencrypt.org\n"`), "line-end"},
		"line end of a target":   {endpoint(`{dnsName: a.example.com, recordType: TXT, targets: ["x\n"]}`), "line-end"},
		"two traps of one value": {txt(`"v=spf1 mx -all\n", "MS=ms1\n"`), "txt-list"},

		"CA":                   {caa(`tag: issue, value: letsencrypt.org`), ""},
		"CA, parameters":       {caa(`tag: issue, value: "letsencrypt.org; validationmethods=dns-01; accounturi=https://acme.test/acct/1"`), ""},
		"no CA":                {caa(`tag: issuewild, value: ";"`), ""},
		"no CA, empty":         {caa(`tag: issuewild, value: ""`), ""},
		"no domain name":       {caa(`tag: issue, value: "not a domain!"`), "caa-value"},
		"one label":            {caa(`tag: issue, value: letsencrypt`), "caa-value"},
		"final dot":            {caa(`tag: issue, value: letsencrypt.org.`), "caa-value"},
		"URL":                  {caa(`tag: ISSUE, value: "https://letsencrypt.org"`), "caa-value"},
		"bad parameter":        {caa(`tag: issue, value: "letsencrypt.org; dns-01"`), "caa-value"},
		"mail":                 {caa(`tag: issuemail, value: authority.example`), ""},
		"report":               {caa(`tag: iodef, value: "mailto:a@b.test"`), ""},
		"report without a URL": {endpoint(`{dnsName: a.example.com, recordType: CAA, targets: ['0 iodef "a@b.test"']}`), "caa-value"},
		"unknown tag":          {caa(`tag: isue, value: letsencrypt.org`), "caa-value"},
		"flag of 1":            {strings.Replace(caa(`tag: issue, value: letsencrypt.org`), "flags: 0", "flags: 1", 1), "caa-value"},
		"critical":             {strings.Replace(caa(`tag: issue, value: letsencrypt.org`), "flags: 0", "flags: 128", 1), ""},

		"a policy without underscore": {record("TXTRecord", "a", `{name: dmarc, text: ["v=DMARC1; p=none"]}`), "service-name"},
		"a policy":                    {record("TXTRecord", "a", `{name: _dmarc, text: ["v=DMARC1; p=none"]}`), ""},
		"a policy for an alias":       {record("TXTRecord", "a", `{name: customer.dmarc, text: ["v=DMARC1; p=none"]}`), ""},
		"beside a policy":             {record("TXTRecord", "a", `{name: dmarc, text: ["managed by DMARC1"]}`), ""},
		"a policy at the web server":  {endpoint(`{dnsName: mta-sts.example.com, recordType: TXT, targets: ["v=STSv1; id=1"]}`), "service-name"},
		"reports":                     {record("TXTRecord", "a", `{name: _smtp.tls, text: ["v=TLSRPTv1; rua=mailto:a@b.test"]}`), "service-name"},
		"a key without selector":      {record("TXTRecord", "a", `{name: _domainkey, text: ["v=DKIM1; p=MIIB"]}`), "service-name"},
		"a key for an alias":          {record("TXTRecord", "a", `{name: s1.domainkey, text: ["v=DKIM1; p=MIIB"]}`), ""},
		"a service without any":       {record("SRVRecord", "a", `{name: sip.tcp, priority: 0, weight: 0, port: 1, target: www}`), "service-name"},
		"a service":                   {record("SRVRecord", "a", `{name: _sip._tcp, priority: 0, weight: 0, port: 1, target: www}`), ""},
		"an instance of a service":    {record("SRVRecord", "a", `{name: office._ipp._tcp, priority: 0, weight: 0, port: 1, target: www}`), ""},
		"a certificate at the host":   {record("DNSRecord", "a", `{name: mail, type: TLSA, data: ["3 1 1 abcd"]}`), "service-name"},
		"a certificate":               {record("DNSRecord", "a", `{name: _25._tcp.mail, type: TLSA, data: ["3 1 1 abcd"]}`), ""},

		"relative":                       {record("MXRecord", "a", `{name: a, priority: 1, mailServer: mx.test}`), "relative-target"},
		"relative, of data":              {record("DNSRecord", "a", `{name: a, type: CNAME, data: [cdn.test]}`), "relative-target"},
		"relative, of a service":         {record("DNSRecord", "a", `{name: a, type: HTTPS, data: ['1 svc.test alpn="h2"']}`), "relative-target"},
		"relative, of a substitution":    {record("DNSRecord", "a", `{name: a, type: NAPTR, data: ['1 1 "s" "SIP+D2U" "" _sip._udp.test']}`), "relative-target"},
		"complete, of a service":         {record("DNSRecord", "a", `{name: a, type: HTTPS, data: ['1 svc.test. alpn="h2.x"', '0 .', '2 @']}`), ""},
		"one label in an endpoint":       {endpoint(`{dnsName: a.example.com, recordType: CNAME, targets: [cdn]}`), "relative-target"},
		"one label behind a number":      {endpoint(`{dnsName: a.example.com, recordType: MX, targets: ["10 mx.example.com", "20 mx2."]}`), "relative-target"},
		"no host, and this one":          {endpoint(`{dnsName: a.example.com, recordType: MX, targets: ["0 ."]}, {dnsName: b.example.com, recordType: CNAME, targets: [localhost]}`), ""},
		"an address, complete":           {record("DNSRecord", "a", `{name: a, type: HTTPS, data: ['1 192.0.2.1. alpn=h2']}`), "address-target"},
		"an address, relative":           {record("DNSRecord", "a", `{name: a, type: HTTPS, data: ['1 "192.0.2.1" alpn=h2']}`), "address-target"},
		"an IPv6 address":                {record("DNSRecord", "a", `{name: a, type: SVCB, data: ['1 2001:db8::1.']}`), "address-target"},
		"an IPv6 address, relative":      {record("DNSRecord", "a", `{name: a, type: SVCB, data: ['1 2001:db8::1']}`), "address-target"},
		"an address for a substitution":  {record("DNSRecord", "a", `{name: a, type: NAPTR, data: ['1 1 "s" "SIP+D2U" "" 192.0.2.1.']}`), "address-target"},
		"an address for a key exchanger": {record("DNSRecord", "a", `{name: a, type: KX, data: ['1 192.0.2.1.']}`), "address-target"},
		"an address by an endpoint":      {endpoint(`{dnsName: a.example.com, recordType: HTTPS, targets: ["1 192.0.2.1"]}`), "address-target"},
		"almost an address":              {record("CNAMERecord", "a", `{name: a, target: 192.0.2.256.}`), "address-target"},
		"almost an address of mail":      {record("MXRecord", "a", `{name: a, priority: 1, mailServer: 192.0.2.}`), "address-target"},
		"almost an address of a server":  {record("NSRecord", "a", `{name: a, nameserver: 192.0.2.1.5.}`), "address-target"},
		"almost an address of a service": {record("SRVRecord", "a", `{name: _a._tcp, priority: 0, weight: 0, port: 1, target: 192.0.2.1.5.}`), "address-target"},
		"a URL":                          {endpoint(`{dnsName: a.example.com, recordType: CNAME, targets: ["https://cdn.test/"]}`), "address-target"},
		"a port":                         {endpoint(`{dnsName: _a._tcp.example.com, recordType: SRV, targets: ["0 0 80 cdn.test:80"]}`), "address-target"},
		"an instance for people":         {endpoint(`{dnsName: _ipp._tcp.example.com, recordType: PTR, targets: ['2\. OG: rot._ipp._tcp.example.com']}`), ""},
		"a number in the zone":           {record("CNAMERecord", "a", `{name: a, target: "10"}`), ""},
		"an address without a zone":      {strings.Replace(record("DNSRecord", "a", `{name: a, type: HTTPS, data: ['1 192.0.2.1.']}`), "namespace: dns", "namespace: elsewhere", 1), "address-target"},
		"an alias that leads back":       {record("CNAMERecord", "a", `{name: www, target: blog}`), "alias-circle"},
		"an alias beside it":             {record("CNAMERecord", "a", `{name: a, target: blog}`), ""},
		"an alias, however written":      {record("DNSRecord", "a", `{name: www, type: CNAME, data: [blog]}`), "alias-circle"},
		"an endpoint's redirection":      {endpoint(`{dnsName: a.example.com, recordType: DNAME, targets: [b.example.com]}`), ""},
		"a zone, as a network":           {zone("z", `zoneName: 192.0.2.0/24, clusterRef: c`), "reverse-name"},
		"a zone of too high a number":    {zone("z", `zoneName: 2.0.300.in-addr.arpa, clusterRef: c`), "reverse-name"},
		"a zone of groups":               {zone("z", `zoneName: 0db8.2001.ip6.arpa, clusterRef: c`), "reverse-name"},
		"a reverse zone":                 {zone("z", `zoneName: 8.b.d.0.1.0.0.2.ip6.arpa, clusterRef: c`), ""},
		"a part of a reverse zone":       {zone("z", `zoneName: 0/25.2.0.192.in-addr.arpa, clusterRef: c`), ""},
		"a zone that expires":            {strings.Replace(zone("z", `zoneName: other.test, clusterRef: c`), "soaRecord: {", "soaRecord: {refresh: 86400, expire: 86400, ", 1), "soa-timers"},
		"a zone that lasts":              {strings.Replace(zone("z", `zoneName: other.test, clusterRef: c`), "soaRecord: {", "soaRecord: {refresh: 3600, retry: 600, expire: 4200, ", 1), ""},
		"the zone twice":                 {record("MXRecord", "a", `{name: a, priority: 1, mailServer: mail.Example.com.example.com.}`), "zone-twice"},
		"the zone twice, of a service":   {record("DNSRecord", "a", `{name: a, type: HTTPS, data: ["1 www.example.com.example.com."]}`), "zone-twice"},
		"the zone twice, of a name":      {endpoint(`{dnsName: www.example.com.example.com, recordType: A, targets: [192.0.2.1]}`), "zone-twice"},
		"the zone twice, of a target":    {endpoint(`{dnsName: a.example.com, recordType: MX, targets: ["10 mail.example.com.example.com"]}`), "zone-twice"},
		"almost the zone twice":          {record("MXRecord", "a", `{name: a, priority: 1, mailServer: mail.anexample.com.example.com.}`), ""},
		"the zone itself":                {record("MXRecord", "a", `{name: a, priority: 1, mailServer: example.com.}`), ""},
		"a type that nobody reads":       {record("DNSRecord", "a", `{name: a, type: SPF, data: ['"v=spf1 -all"']}`), "spf-type"},
		"no text":                        {record("DNSRecord", "a", `{name: a, type: CNAME, data: [cdn.test.]}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := NewHandler(example(t)).Handle(quick(t), request(t, tc.object, ""))
			var found []string
			for _, warning := range answer.Warnings {
				if i := strings.LastIndex(warning, " ["); i >= 0 && strings.HasPrefix(warning, "spec.") {
					found = append(found, strings.Trim(warning[i:], " []"))
				}
			}
			if got := strings.Join(found, " "); !answer.Allowed || got != tc.want {
				t.Errorf("allowed = %t (%v), warnings %q, want %q", answer.Allowed, answer.Result, answer.Warnings, tc.want)
			}
		})
	}
}

// One line for each of thousands of values would hide everything else.
func TestTrapsOfOneObject(t *testing.T) {
	var endpoints []string
	for i := range maxWarnings + 3 {
		endpoints = append(endpoints, fmt.Sprintf(`{dnsName: a%d.example.com, recordType: TXT, targets: ["x\n"]}`, i))
	}
	answer := NewHandler(example(t)).Handle(quick(t), request(t, endpoint(strings.Join(endpoints, ", ")), ""))
	if n := len(answer.Warnings); n != maxWarnings+1 || !strings.HasPrefix(answer.Warnings[n-1], "3 more values") {
		t.Errorf("%q", answer.Warnings)
	}
}

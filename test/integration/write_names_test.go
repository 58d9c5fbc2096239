package integration

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// common is what all records have, with no TTL of their own.
func common(name string) v1beta1.RecordCommon { return v1beta1.RecordCommon{Name: name} }

// txtRecord declares a TXT record of the fixture's zone.
func (f *fixture) txtRecord(object, name string, text ...string) *v1beta1.TXTRecord {
	return &v1beta1.TXTRecord{ObjectMeta: f.meta(object, f.labels()), Spec: v1beta1.TXTRecordSpec{RecordCommon: common(name), Text: text}}
}

// cnameRecord declares an alias in the fixture's zone.
func (f *fixture) cnameRecord(object, name, target string) *v1beta1.CNAMERecord {
	return &v1beta1.CNAMERecord{ObjectMeta: f.meta(object, f.labels()), Spec: v1beta1.CNAMERecordSpec{RecordCommon: common(name), Target: target}}
}

// nsRecord declares a name server in the fixture's zone.
func (f *fixture) nsRecord(object, name, server string) *v1beta1.NSRecord {
	return &v1beta1.NSRecord{ObjectMeta: f.meta(object, f.labels()), Spec: v1beta1.NSRecordSpec{RecordCommon: common(name), Nameserver: server}}
}

// All ten kinds reach every server, at the apex, below a wildcard and under names with underscores.
func writeEveryKind(f *fixture) {
	f.create(f.everyKind()...)
	f.waitServed("anything.kinds.example", "A", "192.0.2.7")
	f.waitServed("kinds.example", "AAAA", "2001:db8::1")
	f.waitServed("alias.kinds.example", "CNAME", "Host.Example.NET.")
	f.waitServed("sub.kinds.example", "NS", "ns.example.net.")
	f.waitServed("_dmarc.kinds.example", "TXT", `"v=DMARC1; \"p\"=none"`)
	f.waitServed("kinds.example", "MX", "10 mail.example.net.")
	f.waitServed("_sip._tcp.kinds.example", "SRV", "1 2 5060 sip.example.net.")
	f.waitServed("kinds.example", "CAA", `0 issue "ca.example.net"`)
	f.waitServed("10.kinds.example", "PTR", "Host.Example.NET.")
	f.waitServed("www.kinds.example", "HTTPS", `1 . alpn="h2"`)
}

// everyKind returns a record of each kind.
func (f *fixture) everyKind() []client.Object {
	label := f.labels()
	return []client.Object{
		f.aRecord(f.object+"-a", "*", "192.0.2.7"),
		&v1beta1.AAAARecord{ObjectMeta: f.meta(f.object+"-aaaa", label), Spec: v1beta1.AAAARecordSpec{RecordCommon: common("@"), IPv6Addresses: []string{"2001:DB8:0::1"}}},
		f.cnameRecord(f.object+"-cname", "alias", "Host.Example.NET."),
		f.nsRecord(f.object+"-ns", "sub", "ns.example.net."),
		f.txtRecord(f.object+"-txt", "_dmarc", `v=DMARC1; "p"=none`),
		&v1beta1.MXRecord{ObjectMeta: f.meta(f.object+"-mx", label), Spec: v1beta1.MXRecordSpec{RecordCommon: common("@"), Priority: 10, MailServer: "mail.example.net."}},
		&v1beta1.SRVRecord{ObjectMeta: f.meta(f.object+"-srv", label), Spec: v1beta1.SRVRecordSpec{RecordCommon: common("_sip._tcp"), Priority: 1, Weight: 2, Port: 5060, Target: "sip.example.net."}},
		&v1beta1.CAARecord{ObjectMeta: f.meta(f.object+"-caa", label), Spec: v1beta1.CAARecordSpec{RecordCommon: common("@"), Flags: 0, Tag: "issue", Value: "ca.example.net"}},
		&v1beta1.PTRRecord{ObjectMeta: f.meta(f.object+"-ptr", label), Spec: v1beta1.PTRRecordSpec{RecordCommon: common("10"), Target: "Host.Example.NET."}},
		f.dnsRecord(f.object+"-dns", "www", "HTTPS", "1 . alpn=h2"),
	}
}

// Every way to write a name, as docs/reference/zones.md has it.
func writeNames(f *fixture) {
	label := strings.Repeat("x", 63)
	for i, name := range []string{"@", "www", "a.b.c.d.e", "*", "*.dev", "_sip._tcp", "WEB.Eu", "xn--bcher-kva", "0-15/28", label + "." + label} {
		f.create(f.aRecord("names-"+string(rune('a'+i)), name, "192.0.2.1"))
	}
	f.waitSameContent(kube.Settle, contains(
		"names.example. 3600 A 192.0.2.1", "www.names.example. 3600 A 192.0.2.1", "a.b.c.d.e.names.example. 3600 A 192.0.2.1",
		"*.names.example. 3600 A 192.0.2.1", "*.dev.names.example. 3600 A 192.0.2.1", "_sip._tcp.names.example. 3600 A 192.0.2.1",
		"web.eu.names.example. 3600 A 192.0.2.1", "xn--bcher-kva.names.example. 3600 A 192.0.2.1",
		"0-15/28.names.example. 3600 A 192.0.2.1", label+"."+label+".names.example. 3600 A 192.0.2.1"))
	f.waitServed("whatever.dev.names.example", "A", "192.0.2.1")
	for name, words := range map[string][]string{
		"www.names.example": {"spec.name", `"www"`},
		"www.other.org.":    {"spec.name"},
		"bücher":            {"spec.name"},
		"a*":                {"spec.name", "*"},
		"a..b":              {"spec.name"},
		label + "x":         {"spec.name", "63"},
	} {
		err := f.client.Create(f.Context(), f.aRecord("names-bad", name, "192.0.2.1"), client.DryRunAll)
		if err == nil || !containsAll(err.Error(), words) {
			f.Errorf("%q: %v, want a refusal with %q", name, err, words)
		}
	}
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// Text comes out of DNS as it went in, whatever is in it and however long it is.
func writeText(f *fixture) {
	long := strings.Repeat("0123456789", 60)
	f.create(
		f.txtRecord("text-long", "long", long),
		f.txtRecord("text-signs", "signs", `a\b "quoted"; (semi)`, "@ $ORIGIN"),
		f.txtRecord("text-utf8", "utf8", "grüße"),
	)
	f.waitSameContent(kube.Settle, contains(
		`long.text.example. 3600 TXT "`+long[:255]+`" "`+long[255:510]+`" "`+long[510:]+`"`,
		`signs.text.example. 3600 TXT "a\\b \"quoted\"; (semi)" "@ $ORIGIN"`,
		`utf8.text.example. 3600 TXT "gr\195\188\195\159e"`))
}

// The zone's own name servers: they need addresses, and addresses that nobody declares any more leave.
func writeNameServers(f *fixture) {
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	change(f, zone, func(z *v1beta1.DNSZone) {
		z.Spec.NameServers = []v1beta1.NameServer{
			{Hostname: "ns2.servers.example.", IPv4Address: "192.0.2.53", IPv6Address: "2001:db8::53"}, {Hostname: "ns.example.net.", IPv4Address: "192.0.2.54"}}
	})
	f.waitSameContent(kube.Settle, contains("servers.example. 3600 NS ns.example.net. | ns1.servers.example. | ns2.servers.example.",
		"ns2.servers.example. 3600 A 192.0.2.53", "ns2.servers.example. 3600 AAAA 2001:db8::53"))
	f.runSub("removed with its addresses", func(f *fixture) {
		change(f, zone, func(z *v1beta1.DNSZone) { z.Spec.NameServers = nil })
		f.waitSameContent(kube.Settle, passesBoth(contains("servers.example. 3600 NS ns1.servers.example."), containsNo("ns2.servers.example.")))
	})
	f.runSub("an address of its own replaces those of the servers", func(f *fixture) {
		record := &v1beta1.AAAARecord{ObjectMeta: f.meta("servers-ns1", f.labels()),
			Spec: v1beta1.AAAARecordSpec{RecordCommon: common("ns1"), IPv6Addresses: []string{"2001:db8::1"}}}
		f.create(record)
		f.waitSameContent(kube.Settle, passesBoth(contains("ns1.servers.example. 3600 AAAA 2001:db8::1"), containsNo("ns1.servers.example. 3600 A")))
		if err := f.client.Delete(f.Context(), record); err != nil {
			f.Fatal(err)
		}
		f.waitGone(record)
		f.waitSameContent(kube.Settle, containsNo("ns1.servers.example. 3600 AAAA"))
	})
	f.runSub("an NS record at the apex", func(f *fixture) {
		record := f.nsRecord("servers-apex", "@", "ns3")
		f.create(record)
		f.waitSameContent(kube.Settle, contains("servers.example. 3600 NS ns1.servers.example. | ns3.servers.example."))
		f.waitReady(record)
		if err := f.client.Delete(f.Context(), record); err != nil {
			f.Fatal(err)
		}
		f.waitGone(record)
		f.waitSameContent(kube.Settle, passesBoth(contains("servers.example. 3600 NS ns1.servers.example."), containsNo("ns3.servers.example.")))
	})
}

// Several objects may declare values of one name; each owns its own, and the lowest TTL is served.
func writeUnited(f *fixture) {
	one, two := f.aRecord("united-one", "www", "192.0.2.1"), f.aRecord("united-two", "www", "192.0.2.2", "192.0.2.1")
	low := int64(60)
	two.Spec.TTL = &low
	f.create(one, two)
	f.waitSameContent(kube.Settle, contains("www.united.example. 60 A 192.0.2.1 | 192.0.2.2"))
	waitCondition(f, v1beta1.Record(one), recordConditions, "Accepted", "True", "Accepted", "TTL 60", "united-two")

	if err := f.client.Delete(f.Context(), two); err != nil {
		f.Fatal(err)
	}
	f.waitGone(two)
	f.waitSameContent(kube.Settle, contains("www.united.example. 3600 A 192.0.2.1"))
	waitCondition(f, v1beta1.Record(one), recordConditions, "Accepted", "True", "Accepted")
}

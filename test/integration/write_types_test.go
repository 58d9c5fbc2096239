package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// dnsRecord declares records of any type in the fixture's zone.
func (f *fixture) dnsRecord(object, name, rrtype string, data ...string) *v1beta1.DNSRecord {
	return &v1beta1.DNSRecord{ObjectMeta: f.meta(object, f.labels()), Spec: v1beta1.DNSRecordSpec{RecordCommon: common(name), Type: rrtype, Data: data}}
}

// otherTypes are data of types without a kind of their own.
var otherTypes = map[string]string{
	"OPENPGPKEY": "AQIDBA==",
	"SMIMEA":     "3 0 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	"CERT":       "PKIX 12345 8 AQIDBA==",
	"SVCB":       `1 dot.types.example. alpn="dot" port="853"`,
	"LOC":        "51 30 12.748 N 0 7 39.612 W 0.00m 1m 10000m 10m",
	"URI":        `10 1 "ftp://ftp.types.example/public"`,
	"SSHFP":      "4 2 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	"DNAME":      "new.example.net.",
	"RP":         "hostmaster.types.example. info.types.example.",
}

// Records of all types reach BIND as they are declared, and SyncStatuses show them; so do names of services for people, in upper and lower
// case and with UTF-8 (RFC 6763), and a zone of a part of a network (RFC 2317).
func TestAllTypes(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "types.example", 1, 1)
	const printer = `Office\032Printer\0322\.\032floor._ipp._tcp`
	f.create(
		f.nsRecord("delegation", "team", "ns.example.net."),
		f.dnsRecord("ds", "team", "DS", "12345 13 2 0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF"),
		f.dnsRecord("https", "www", "HTTPS", "1 . alpn=h3,h2 ipv4hint=192.0.2.10"),
		f.dnsRecord("tlsa", "_25._tcp.mail", "TLSA", "3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
		f.dnsRecord("naptr", "sip", "NAPTR", `10 100 "S" "SIP+D2U" "" _sip._udp`),
		f.dnsRecord("raw", "raw", "TYPE65280", `\# 4 0A000001`),
		f.dnsRecord("printers", "_ipp._tcp", "PTR", printer, `Büro._ipp._tcp`),
		&v1beta1.SRVRecord{ObjectMeta: f.meta("printer", f.labels()), Spec: v1beta1.SRVRecordSpec{RecordCommon: common(printer), Port: 631, Target: "Printer"}},
	)
	f.waitServed("www.types.example", "HTTPS", `1 . alpn="h3,h2" ipv4hint="192.0.2.10"`)
	f.waitServed("_25._tcp.mail.types.example", "TLSA", "3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	f.waitServed("team.types.example", "DS", "12345 13 2 0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF")
	f.waitServed("sip.types.example", "NAPTR", `10 100 "S" "SIP+D2U" "" _sip._udp.types.example.`)
	f.waitServed("_ipp._tcp.types.example", "PTR", `B\195\188ro._ipp._tcp.types.example.`, `Office\ Printer\ 2\.\ floor._ipp._tcp.types.example.`)
	f.waitServed(`Office\ Printer\ 2\.\ floor._ipp._tcp.types.example.`, "SRV", "0 0 631 Printer.types.example.")
	f.waitServedType("raw.types.example", 65280, `\# 4 0a000001`)
	for object, want := range map[string]string{
		"dnsrecord.https": `1 . alpn="h3,h2" ipv4hint="192.0.2.10"`, "dnsrecord.raw": `\# 4 0a000001`, "dnsrecord.ds": "12345 13 2 ",
		"dnsrecord.tlsa": "3 1 1 ", "dnsrecord.naptr": `"SIP+D2U"`, "dnsrecord.printers": `office\032printer\0322\.\032floor._ipp._tcp.types.example.`,
	} {
		f.waitShown(object, want)
	}
	for rrtype, data := range otherTypes {
		f.create(f.dnsRecord(strings.ToLower(rrtype), strings.ToLower(rrtype), rrtype, data))
	}
	for rrtype, data := range otherTypes {
		f.waitServedData(strings.ToLower(rrtype)+".types.example.", rrtype, data)
		f.waitShown("dnsrecord."+strings.ToLower(rrtype), strings.Fields(data)[0])
	}
	f.create(
		f.dnsZone("classless", "0/29.2.0.192.in-addr.arpa"),
		&v1beta1.PTRRecord{ObjectMeta: f.meta("one", map[string]string{"zone": "classless"}), Spec: v1beta1.PTRRecordSpec{RecordCommon: common("1"), Target: "mail.types.example."}},
	)
	f.waitServed("1.0/29.2.0.192.in-addr.arpa", "PTR", "mail.types.example.")
}

// waitServedType is waitServed for a type without a name.
func (f *fixture) waitServedType(name string, rrtype uint16, want string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		for pod, server := range servers {
			got, err := queryRdata(server, dns.Fqdn(name), rrtype)
			if err != nil {
				return fmt.Errorf("%s: %w", pod, err)
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], want) {
				return fmt.Errorf("%s answers %q for %s %s, want %q", pod, got, name, rrset.TypeName(rrtype), want)
			}
		}
		return err
	})
}

// waitServedData is waitServed for one value that every server has to give back, in whichever form.
func (f *fixture) waitServedData(name, rrtype, data string) {
	f.Helper()
	key := rrset.Key{Name: name, Type: dns.StringToType[rrtype]}
	want, err := rrset.Parse(key, data)
	if err != nil {
		f.Fatal(err)
	}
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		for pod, server := range servers {
			reply, err := kube.Query(server, name, key.Type, kube.QueryTimeout)
			if err != nil {
				return fmt.Errorf("%s: %w", pod, err)
			}
			if len(reply.Answer) != 1 {
				return fmt.Errorf("%s answers %v for %s %s", pod, reply.Answer, name, rrtype)
			}
			if _, _, got := rrset.FromRR(reply.Answer[0]); got != want {
				return fmt.Errorf("%s answers %q for %s %s, want %q", pod, got, name, rrtype, want)
			}
		}
		return err
	})
}

// waitShown waits until a SyncStatus is in sync and shows data.
func (f *fixture) waitShown(object, want string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		s := &syncv1.SyncStatus{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: object}, s); err != nil {
			return err
		}
		if shown := fmt.Sprint(s.RRsets); s.Status.Phase != syncv1.PhaseInSync || !strings.Contains(shown, want) {
			return fmt.Errorf("%s is %s and shows %s, want %q", object, s.Status.Phase, shown, want)
		}
		return nil
	})
}

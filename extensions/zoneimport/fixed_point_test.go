package zoneimport

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
	"github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/webhook/offline"
)

// lax has named load what other servers serve.
const lax = "check-names ignore;"

// everything has each type and each notation that objects express.
const everything = `$TTL 3600
@ SOA ns1 host\.master.example.net. 2026112201 7200 900 1209600 300
@ NS ns1
@ NS ns2
@ NS ns3
@ NS ns.example.net.
ns3 60 A 192.0.2.56
ns1 A 192.0.2.53
ns1 AAAA 2001:db8::53
ns2 A 192.0.2.54
ns2 A 192.0.2.55
@ 300 A 192.0.2.1
@ MX 10 mail
@ MX 20 mail.example.net.
@ TXT "v=spf1 mx -all"
@ TXT "google-site-verification=abc"
@ CAA 0 issue "letsencrypt.org"
@ CAA 128 iodef "mailto:security@example.com"
@ CAA 0 iodef "x:y"
www A 192.0.2.1
www A 192.0.2.2
www AAAA 2001:db8::1
blog 60 CNAME www
WWW2 CNAME www.example.net.
* A 192.0.2.9
*.apps 0 A 192.0.2.9
ttls 60 A 192.0.2.1
ttls 30 A 192.0.2.2
ttls 90 A 192.0.2.3
apart 60 A 192.0.2.1
apart2 90 A 192.0.2.1
_dmarc TXT "v=DMARC1; p=none"
dmarc TXT "another"
a-b A 192.0.2.3
a.b A 192.0.2.4
_sip._tcp SRV 10 60 5060 sip
_sip._tcp SRV 20 0 5061 sip.example.net.
_none._tcp SRV 0 0 0 .
nomail MX 0 .
oldmail MX 5 .
sip A 192.0.2.5
mapped AAAA ::ffff:192.0.2.1
10.2 PTR host.example.net.
10.2 PTR other.example.net.
long TXT "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeaaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee" "second" ""
raw TXT "\200\255 \"quoted\" \\ back"
raw TXT "\009tab"
utf TXT "grüß"
empty TXT ""
yes TXT "yes" "no" "y" "1e3" "~" "on" "null" "0777" "0o17" "0x1F" "1_000" "1:20" ".inf" "=" "<<" "2001-01-01" "" " a" "a: b" "a #b" "- a" "%a" "@a" "!a" "&a" "*a" "a'b" "{a" "[a" "?" "|" ">" "---" "..."
y CNAME n
on A 192.0.2.6
no CNAME on
1 A 192.0.2.7
1e3 A 192.0.2.7
odd\032name\@x A 192.0.2.8
odd CNAME odd\032name
sub NS ns.sub
sub NS ns.example.net.
ns.sub A 192.0.2.60
ns.sub AAAA 2001:db8::60
lab 60 NS lab
lab A 192.0.2.61
2/25 NS ns.example.net.
example.com A 192.0.2.70
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb A 192.0.2.71
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbc A 192.0.2.72
apart 30 A 192.0.2.2
apart2 120 A 192.0.2.2
apart2 100 A 192.0.2.3
big CAA 0 issue "\"\\"
`

// hosts is a zone of about so many records of the usual kinds.
func hosts(records int) string {
	var b strings.Builder
	b.WriteString("$TTL 3600\n@ SOA ns1 hostmaster 1 3600 600 604800 300\n@ NS ns1\n@ NS ns2.example.net.\nns1 A 192.0.2.53\n@ MX 10 mail\nmail A 192.0.2.25\n")
	for i := 7; i < records; i++ {
		switch i % 10 {
		case 0:
			fmt.Fprintf(&b, "host-%d AAAA 2001:db8::%x:%x\n", i, i>>16, i&0xffff)
		case 1:
			fmt.Fprintf(&b, "alias-%d 300 CNAME host-%d\n", i, i)
		case 2:
			fmt.Fprintf(&b, "_acme-challenge.host-%d TXT \"token %d\"\n", i, i)
		case 3:
			fmt.Fprintf(&b, "_https._tcp.host-%d SRV 0 0 443 host-%d\n", i, i)
		default:
			fmt.Fprintf(&b, "host-%d A 10.%d.%d.%d\n", i, i>>16, i>>8&255, i&255)
		}
	}
	return b.String()
}

// An imported zone is the zone: what the manifests declare is what the server serves, admission accepts each object, and the
// import of what they declare gives the same bytes.
func TestFixedPoint(t *testing.T) {
	for name, text := range map[string]string{"everything": everything, "10 records": hosts(10), "1,000 records": hosts(1000)} {
		for _, as := range []string{asRecords, asEndpoints} {
			t.Run(name+" as "+as, func(t *testing.T) {
				manifests, zone := importZone(t, text, as)
				reviewManifests(t, manifests)
				file := filepath.Join(t.TempDir(), "db")
				writeTest(t, file, "$ORIGIN example.com.\n"+text)
				fromFile := runImport(t, nil, "--file", file, "--as", as) // It keeps upper case in names; a transfer does not.
				if d := firstDifference(strings.ToLower(manifests), strings.ToLower(fromFile)); d != "" {
					t.Errorf("from the server (-) and from the file (+):\n%s", d)
				}
				importAgain(t, manifests, zone, as)
			})
		}
	}
}

// What is left out of these shows nothing new in a large zone, and takes long.
func TestFixedPointOfLargeZones(t *testing.T) {
	for _, as := range []string{asRecords, asEndpoints} {
		t.Run(as, func(t *testing.T) {
			if manifests, zone := importZone(t, hosts(100_000), as); as == asEndpoints {
				importAgain(t, manifests, zone, as)
			}
		})
	}
}

// importZone imports example.com from a server that serves a text. The manifests declare what the server serves.
func importZone(t *testing.T, text, as string) (manifests string, zone *source.Zone) {
	t.Helper()
	server := serve(t, "$ORIGIN example.com.\n"+text)
	manifests = importFrom(t, server, as)
	zone = buildManifests(t, manifests)
	compareZones(t, zone, server)
	return manifests, zone
}

func importAgain(t *testing.T, manifests string, zone *source.Zone, as string) {
	t.Helper()
	if d := firstDifference(manifests, importFrom(t, serve(t, zoneText(t, zone)), as)); d != "" {
		t.Errorf("once (-) and again (+):\n%s", d)
	}
}

// serve starts a server of example.com.
func serve(t *testing.T, text string) *named.Server {
	t.Helper()
	return named.Start(t, named.Options{Zones: []named.Zone{{Name: "example.com.", File: text, Extra: lax}}})
}

// importFrom imports example.com from a server, which lacks nothing.
func importFrom(t *testing.T, server *named.Server, as string) string {
	t.Helper()
	return runImport(t, nil, "--server", server.Addr.String(), "--key-file", keyFile(t, server.Transfer), "--as", as)
}

func keyFile(t *testing.T, key wire.Key) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	writeTest(t, name, fmt.Sprintf("key %q {\n\talgorithm %s;\n\tsecret %q;\n};\n", strings.TrimSuffix(key.Name, "."), strings.TrimSuffix(key.Algorithm, "."), key.Secret))
	return name
}

func writeTest(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runImport runs the command for example.com. Only the differences in want are permitted: for each, a part of its line.
func runImport(t *testing.T, want []string, args ...string) string {
	t.Helper()
	cmd := NewCommand("lockstep", nil)
	var out, log strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	cmd.SetArgs(append([]string{"--zone", "example.com", "--cluster", "dns"}, args...))
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, ErrIncomplete) && (err != nil || len(want) > 0) {
		t.Fatalf("%v\n%s", err, log.String())
	}
	var lines []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, ": left out: ") || strings.Contains(line, ": changed: ") || strings.Contains(line, ": kept: ") {
			lines = append(lines, line)
		}
	}
	for i := range max(len(lines), len(want)) {
		if i >= len(lines) || i >= len(want) || !strings.Contains(lines[i], want[i]) {
			t.Errorf("on standard error is\n%swant\n%s", strings.Join(lines, ""), strings.Join(want, "\n"))
			break
		}
	}
	return out.String()
}

// readManifests returns the objects of a stream.
func readManifests(t *testing.T, text string) (*v1beta1.DNSZone, []source.Object) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	var zone *v1beta1.DNSZone
	var objects []source.Object
	// Piece by piece: the untyped form of 100,000 objects takes more than a gigabyte.
	for some := range slices.Chunk(strings.SplitAfter(text, "---\n"), 1000) {
		found, faults := manifest.Parse("stream", []byte(strings.Join(some, "")))
		if len(faults) > 0 {
			t.Fatalf("%v\n%s", faults, text)
		}
		for _, o := range found {
			typed, err := scheme.New(o.GroupVersionKind())
			if err != nil {
				t.Fatal(err)
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
				t.Fatal(err)
			}
			if z, ok := typed.(*v1beta1.DNSZone); ok {
				zone = z
			} else {
				objects = append(objects, typed.(source.Object))
			}
		}
	}
	return zone, objects
}

// buildManifests returns what the controller makes of manifests, all of which it accepts and selects.
func buildManifests(t *testing.T, text string) *source.Zone {
	t.Helper()
	zone, objects := readManifests(t, text)
	for _, o := range objects {
		if !maps.Equal(o.GetLabels(), zone.Spec.RecordsFrom[0].Selector.MatchLabels) {
			t.Fatalf("the zone does not select %s", source.KeyOf(o))
		}
	}
	built, err := source.Build(zone, objects, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range built.Declarations.All() {
		if !d.Accepted {
			t.Errorf("%s is refused: %s", d.Ref, d.Message)
		}
	}
	return built
}

// compareZones compares what is declared with what a server serves.
func compareZones(t *testing.T, zone *source.Zone, server *named.Server) {
	t.Helper()
	result, err := wire.Transfer(t.Context(), server.Addr, "example.com.", nil, &server.Transfer)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(result.SOA, zone.SOA); d != "" {
		t.Errorf("SOA: served (-), declared (+):\n%s", d)
	}
	served := map[rrset.Key]rrset.RRset{}
	for _, r := range result.Records {
		served[r.Key] = rrset.New(r.Key, r.TTL, append(served[r.Key].Rdata, r.Rdata)...)
	}
	declared := map[rrset.Key]rrset.RRset{}
	for set := range zone.All() {
		declared[set.Key] = set
	}
	if len(served) < 5 {
		t.Fatalf("%d RRsets are served", len(served))
	}
	if !maps.EqualFunc(served, declared, rrset.RRset.Equal) {
		t.Errorf("served (-), declared (+):\n%s", cmp.Diff(served, declared))
	}
}

// reviewManifests asks admission.
func reviewManifests(t *testing.T, text string) {
	t.Helper()
	checker, err := offline.NewChecker()
	if err != nil {
		t.Fatal(err)
	}
	objects, faults := manifest.Parse("stream", []byte(text))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	findings, checked, err := checker.Check(t.Context(), objects, nil, "dns")
	if err != nil || checked != len(objects) {
		t.Fatalf("%d of %d checked: %v", checked, len(objects), err)
	}
	for _, f := range findings {
		if f.Level == offline.Error {
			t.Errorf("refused: %s", f.Text())
		}
	}
}

// zoneText is a zone as a file.
func zoneText(t *testing.T, zone *source.Zone) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintln(&b, rrset.ToSOA(zone.Name, zone.SOA))
	for set := range zone.All() {
		for _, rdata := range set.Rdata {
			fmt.Fprintf(&b, "%s %d IN %s\n", set.Name, set.TTL, strings.TrimPrefix(set.Key.String(), set.Name+" ")+" "+rdata)
		}
	}
	return b.String()
}

// firstDifference keeps reports short.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, x[i], y[i])
		}
	}
	if len(x) != len(y) {
		return fmt.Sprintf("%d lines and %d lines", len(x), len(y))
	}
	return ""
}

// What is imported from a hidden primary is what it has: nothing would change there, neither MNAME nor the name servers that it notifies, nor
// the serial.
func TestHiddenPrimaryIsImportedAsItIs(t *testing.T) {
	server := serve(t, `$ORIGIN example.com.
$TTL 300
@ SOA hidden hostmaster 2026112601 7200 900 1209600 60
@ NS ns1.example.net.
@ NS ns2
ns2 A 192.0.2.54
www A 192.0.2.80
mail MX 10 www
alias CNAME www
`)
	for _, as := range []string{"records", "endpoints"} {
		t.Run(as, func(t *testing.T) {
			text := importFrom(t, server, as)
			zone := buildManifests(t, text)
			compareZones(t, zone, server)
			servers, _ := zone.Get(rrset.Key{Name: "example.com.", Type: dns.TypeNS})
			if want := []string{"ns1.example.net.", "ns2.example.com."}; zone.SOA.MName != "hidden.example.com." || !slices.Equal(servers.Rdata, want) {
				t.Errorf("MNAME is %s, the name servers are %v", zone.SOA.MName, servers.Rdata)
			}
			reviewManifests(t, text)
		})
	}
}

// A primary that is none of the name servers stays hidden: MNAME and the NS records are those of the file, and nothing is to be reported.
func TestHiddenPrimaryStaysHidden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	writeTest(t, file, `$TTL 300
@ SOA hidden hostmaster 2026112601 7200 900 1209600 60
@ NS ns1.example.net.
@ NS ns2.example.net.
hidden A 192.0.2.7
`)
	text := runImport(t, nil, "--file", file)
	zone := buildManifests(t, text)
	servers, _ := zone.Get(rrset.Key{Name: "example.com.", Type: dns.TypeNS})
	if diff := cmp.Diff([]string{"ns1.example.net.", "ns2.example.net."}, servers.Rdata); diff != "" || zone.SOA.MName != "hidden.example.com." || zone.SOA.Serial != 2026112601 {
		t.Errorf("SOA %+v, name servers (-want +got):\n%s", zone.SOA, diff)
	}
	reviewManifests(t, text)
}

// What no object expresses, with its line.
func TestDifferences(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	writeTest(t, file, `$TTL 3600
@ SOA hid+den host@master 7 0 600 86400 60
@ 86400 NS ns1
@ NS ns.example.net.
ns1 A 192.0.2.53
host HINFO "PC" "Linux"
host A 192.0.2.1
web HTTPS 1 . alpn=h2
sub NS ns.example.net.
sub DS 1 8 2 00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF
sub TXT "beside the cut"
www.sub A 192.0.2.1
ns.deep.sub NS ns.deep.sub
zero 0 NAPTR 1 1 "S" "SIP+D2U" "" host
www CNAME host
www A 192.0.2.2
*.wild NS ns.example.net.
www 300 RRSIG A 8 3 300 20300101000000 20200101000000 1 example.com. AAAA
@ 86400 NS gone
old UID 100
mail MX 10 192.0.2.25.
mail MX 20 host
moved DNAME example.net.
www.moved A 192.0.2.1
`)
	text := runImport(t, []string{
		`db:2: example.com. SOA: changed: MNAME hid+den.example.com. becomes gone.example.com., which BIND does not notify of changes any more:`,
		`db:2: example.com. SOA: changed: RNAME host\@master.example.com. becomes hostmaster.example.com.:`,
		`db:2: example.com. SOA: changed: refresh 0 becomes 1:`,
		`db:3: example.com. NS: changed: its TTL of 86400 seconds becomes 3600`,
		`db:3: gone.example.com. A: changed: the zone has no address of this name server`,
		`db:11: sub.example.com. TXT: left out: the delegation of sub.example.com. hides it`,
		`db:12: www.sub.example.com. A: left out: the delegation of sub.example.com. hides it`,
		`db:13: ns.deep.sub.example.com. NS: left out: the delegation`,
		`db:15: www.example.com. CNAME: left out: `,
		`db:17: *.wild.example.com. NS: left out: `,
		`db:20: old.example.com. UID: left out: UID data is read in the form of RFC 3597 only`,
		`db:21: mail.example.com. MX: left out: "10 192.0.2.25." holds an address where a host name belongs`,
		`db:24: www.moved.example.com. A: left out: the DNAME at moved.example.com. hides it`,
	}, "--file", file)
	zone := buildManifests(t, text)
	if n := zone.Len(); n != 11 {
		t.Errorf("%d RRsets, want the other 11: NS, ns1, host HINFO, host A, web HTTPS, sub NS, sub DS, zero NAPTR, www, moved, mail MX of one value", n)
	}
	reviewManifests(t, text)
}

package zoneimport

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/named"
)

// Names say what their objects are about, are DNS labels, and are different.
func TestObjectNames(t *testing.T) {
	long := strings.Repeat("a", 63)
	text := runImport(t, nil, "--file", writeZone(t, `$TTL 60
@ SOA ns1 hostmaster 7 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.53
ns1 A 192.0.2.54
@ A 192.0.2.1
* A 192.0.2.1
*.apps A 192.0.2.1
_dmarc TXT "v=DMARC1; p=none"
dmarc TXT "x"
_sip._tcp SRV 10 60 5060 sip1
_sip._tcp SRV 20 60 5060 sip2
@ MX 10 mail
@ MX 20 mail.example.net.
@ TXT "v=spf1 mx -all"
@ TXT "google-site-verification=abc"
@ TXT ""
@ CAA 0 issue "letsencrypt.org"
@ CAA 0 issuewild ";"
a.b A 192.0.2.1
a-b A 192.0.2.1
xn--bcher-kva A 192.0.2.1
10 PTR www
- A 192.0.2.1
`+long+"."+long+` A 192.0.2.1
`+long+".b"+long[1:]+` A 192.0.2.1
`))
	_, objects := readManifests(t, text)
	var got []string
	for _, o := range objects {
		got = append(got, source.KeyOf(o).Kind+" "+o.GetName())
		if problems := validation.IsDNS1123Label(o.GetName()); len(problems) > 0 {
			t.Errorf("%s: %v", o.GetName(), problems)
		}
	}
	want := []string{
		"ARecord example-com", "MXRecord example-com-mail-example-com", "MXRecord example-com-mail-example-net",
		"TXTRecord example-com", "TXTRecord example-com-google-site-verification", "TXTRecord example-com-v-spf1",
		"CAARecord example-com-issue-letsencrypt", "CAARecord example-com-issuewild",
	}
	if d := cmp.Diff(want, got[:len(want)]); d != "" {
		t.Errorf("want (-), got (+):\n%s", d)
	}
	for _, name := range []string{
		"ARecord wildcard-example-com", "ARecord wildcard-apps-example-com", "TXTRecord dmarc-example-com", "SRVRecord sip-tcp-example-com-sip1",
		"SRVRecord sip-tcp-example-com-sip2", "ARecord a-b-example-com", "ARecord xn--bcher-kva-example-com", "PTRRecord 10-example-com",
		"ARecord ns1-example-com",
	} {
		if !slices.Contains(got, name) {
			t.Errorf("there is no %s", name)
		}
	}
	slices.Sort(got)
	if unique := slices.Compact(slices.Clone(got)); len(unique) != len(got) {
		t.Errorf("names come twice: %q", got)
	}
}

func writeZone(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "db")
	writeTest(t, name, text)
	return name
}

// What a name cannot say, a hash does: the same for the same object, whatever else there is.
func TestChooseName(t *testing.T) {
	n := newObjectNames()
	first := n.choose("ARecord", "a", "www")
	again := n.choose("ARecord", "b", "www")
	other := n.choose("AAAARecord", "b", "www")
	if first != "www" || other != "www" || again != withHash("www", "b") {
		t.Errorf("%q, %q, %q", first, again, other)
	}
	if again != newObjectNamesWith("ARecord/www").choose("ARecord", "b", "www") {
		t.Error("the hash depends on more than the object")
	}
	if third := n.choose("ARecord", "b", "www"); third == again {
		t.Error("a name came twice")
	}
	if empty := n.choose("ARecord", "", "-", ""); empty != "record" {
		t.Errorf("%q for nothing", empty)
	}
}

func newObjectNamesWith(taken ...string) *objectNames {
	n := newObjectNames()
	for _, name := range taken {
		n.taken[name] = struct{}{}
	}
	return n
}

// Where the kinds' definitions refuse a value, the import does not write it into a record.
func TestRecordFields(t *testing.T) {
	owners := []string{"@", "*", "a", "A.b", "_x._y", "a/b", "*.a", "a.*", "a\\.b", "a\\032b", "a+b", "a!", strings.Repeat("a.", 120) + "a", "example.com"}
	hosts := []string{"a.", "www.example.net.", ".", "1.2.3.4.", "a_b.c/d.", "*.a.", "a\\.b.c.", "a!.b.", strings.Repeat("a.", 126)}
	texts := []string{"", "a", "ü", "\x00", "\xff", "\n", "\u2028", strings.Repeat("x", 255), `"\`, "=", " "}
	var sets []rrset.RRset
	add := func(owner string, rrtype uint16, rdata ...string) {
		name := owner + ".example.com."
		if owner == "@" {
			name = "example.com."
		}
		canonical, err := rrset.CanonicalName(name)
		if err != nil {
			return
		}
		var values []string
		for _, value := range rdata {
			value, err := rrset.Parse(rrset.Key{Type: rrtype}, value)
			if err != nil {
				return
			}
			values = append(values, value)
		}
		sets = append(sets, rrset.New(rrset.Key{Name: canonical, Type: rrtype}, 0, values...))
	}
	for _, owner := range owners {
		add(owner, dns.TypeA, "192.0.2.1")
		add(owner, dns.TypeNS, "ns.example.net.")
	}
	for i, host := range hosts {
		owner := fmt.Sprint("h", i)
		add(owner, dns.TypeCNAME, host)
		add(owner, dns.TypeNS, host)
		add(owner, dns.TypePTR, host)
		add(owner, dns.TypeMX, "0 "+host)
		add(owner, dns.TypeMX, "65535 "+host)
		add(owner, dns.TypeSRV, "0 65535 1 "+host)
	}
	for i, text := range texts {
		owner := fmt.Sprint("t", i)
		if rdata, err := rrset.TXT(text, text); err == nil {
			add(owner, dns.TypeTXT, rdata)
		}
		for _, tag := range []string{"issue", "iodef", "x1"} {
			if rdata, err := rrset.CAA(255, tag, text+"mailto:x"+text); err == nil {
				add(owner, dns.TypeCAA, rdata)
			}
		}
	}
	add("www", dns.TypeHTTPS, `1 . alpn="h2"`)
	add("odd", 65280, `\# 2 0a0b`)
	add("many", dns.TypeTXT, strings.Repeat(`"x" `, 256))
	add("more", dns.TypeTXT, strings.Repeat(`"x" `, 257))
	add("large", dns.TypeTXT, strings.Repeat(`"`+strings.Repeat("x", 255)+`" `, 236))
	add("mailto", dns.TypeCAA, `0 iodef "mailto:x"`)
	add("value", dns.TypeCAA, `0 issue "`+strings.Repeat("x", 1024)+`"`)
	add("value2", dns.TypeCAA, `0 issue "`+strings.Repeat("x", 1025)+`"`)
	for _, a := range []string{"2001:db8::1", "::ffff:192.0.2.1", "::", "::192.0.2.1"} {
		add("six", dns.TypeAAAA, a)
	}
	checkSets(t, sets)
}

// checkSets declares each set as the import would, and asks the definitions.
func checkSets(t *testing.T, sets []rrset.RRset) {
	t.Helper()
	kinds := map[string]int{}
	for _, set := range sets {
		var objects []source.Object
		for i, record := range recordsOf(set, "example.com.", nil) {
			record.GetObjectKind().SetGroupVersionKind(v1beta1.KindOf(record).GroupVersionKind())
			record.SetName(fmt.Sprint("r", i))
			objects = append(objects, record)
		}
		if objects == nil {
			kinds["none"]++
			endpoint, err := newEndpoint(set, 0)
			if err != nil {
				continue // It is left out, and said.
			}
			object := &v1alpha1.DNSEndpoint{Spec: v1alpha1.DNSEndpointSpec{Endpoints: []*v1alpha1.Endpoint{endpoint}}}
			object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("DNSEndpoint"))
			object.SetName("e")
			objects = []source.Object{object}
		}
		var b strings.Builder
		if err := writeStream(&b, objects); err != nil {
			t.Fatal(err)
		}
		reviewManifests(t, b.String())
		_, read := readManifests(t, b.String())
		for _, o := range read {
			kinds[source.KeyOf(o).Kind]++
		}
		checkData(t, set, read)
	}
	for _, kind := range append(slices.Collect(kindNames()), "none", "DNSEndpoint") {
		if kinds[kind] == 0 {
			t.Errorf("there is no case of %s", kind)
		}
	}
}

func kindNames() func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, k := range v1beta1.RecordKinds {
			if !yield(k.Kind) {
				return
			}
		}
	}
}

// checkData compares what objects say with a set.
func checkData(t *testing.T, set rrset.RRset, objects []source.Object) {
	t.Helper()
	var values []string
	for _, o := range objects {
		var key rrset.Key
		var rdata []string
		var err error
		if record, ok := o.(v1beta1.Record); ok {
			key.Name, _ = declaration.OwnerName(record.RecordName(), "example.com.")
			key.Type, rdata, err = declaration.RecordData(record, "example.com.")
		} else {
			key, rdata, err = declaration.EndpointData(o.(*v1alpha1.DNSEndpoint).Spec.Endpoints[0])
		}
		if err != nil || key != set.Key {
			t.Errorf("%s became %s: %v", set, key, err)
		}
		values = append(values, rdata...)
	}
	if got := rrset.New(set.Key, set.TTL, values...); !got.Equal(set) {
		t.Errorf("%s became %s", set, got)
	}
}

// A server's refusal comes with what to do, for the server that refuses as for the key that is wrong.
func TestTransferErrors(t *testing.T) {
	server := serve(t, "$TTL 60\n@ SOA ns1 h 1 1 1 1 1\n@ NS ns1\nns1 A 192.0.2.1\n")
	other, wrong := named.NewKey("other."), server.Transfer
	wrong.Secret = other.Secret
	noRight := server.ControlKey
	tests := map[string]struct {
		args []string
		want []string
	}{
		"no key":          {[]string{"--server", server.Addr.String()}, []string{"answered REFUSED", "--key-file"}},
		"unknown key":     {[]string{"--server", server.Addr.String(), "--key-file", keyFile(t, other)}, []string{"BADKEY", `"other." is none`}},
		"wrong secret":    {[]string{"--server", server.Addr.String(), "--key-file", keyFile(t, wrong)}, []string{"BADSIG", "compare the secret"}},
		"no right":        {[]string{"--server", server.Addr.String(), "--key-file", keyFile(t, noRight)}, []string{"answered REFUSED", `allow-transfer { key "rndc-key."; };`}},
		"another zone":    {[]string{"--server", server.Addr.String(), "--key-file", keyFile(t, server.Transfer), "--zone", "example.net"}, []string{"answered NOTAUTH", "is example.net. the name of the zone"}},
		"nobody there":    {[]string{"--server", "127.0.0.1:1"}, []string{"connection refused"}},
		"no such key":     {[]string{"--server", "192.0.2.1", "--key-file", "/nonexistent"}, []string{"--key-file: open /nonexistent"}},
		"a bad port":      {[]string{"--server", "ns1.example.com:dns"}, []string{`"dns" is no port`}},
		"neither":         {nil, []string{"either --server=ADDRESS or --file=ZONEFILE"}},
		"both":            {[]string{"--server", "192.0.2.1", "--file", "x"}, []string{"either"}},
		"flags at odds":   {[]string{"--file", "x", "--key-file", "y", "--as", "z", "-n", "A", "--cluster", "_", "--instances", "-=b", "--max-zone-bytes", "0"}, []string{"--key-file goes with --server", `--as="z"`, "--namespace=A", "--cluster=_", "--instances", "--max-zone-bytes"}},
		"no provider":     {[]string{"corp"}, []string{`"corp"`, "dnsprovider/NAME"}},
		"another kind":    {[]string{"dnszone/corp"}, []string{"dnsprovider/NAME"}},
		"two places":      {[]string{"dnsprovider/corp", "--server", "192.0.2.1"}, []string{"either"}},
		"a bad zone name": {[]string{"--file", "x", "--zone", "*.example.com"}, []string{"--zone: ", "wildcard"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := NewCommand("lockstep", nil)
			var out strings.Builder
			cmd.SetOut(&out)
			cmd.SetErr(io.Discard)
			cmd.SetArgs(append([]string{"--zone", "example.com"}, tc.args...))
			err := cmd.ExecuteContext(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if out.Len() > 0 {
				t.Errorf("written although it failed: %s", out.String())
			}
			for _, key := range []string{other.Secret, server.Transfer.Secret} {
				if strings.Contains(err.Error(), key) {
					t.Errorf("%q has a secret", err)
				}
			}
		})
	}
}

// An address may have a port, and one of IPv6 brackets.
func TestResolveServer(t *testing.T) {
	for server, want := range map[string]string{
		"192.0.2.53": "192.0.2.53:53", "192.0.2.53:5353": "192.0.2.53:5353", "2001:db8::53": "[2001:db8::53]:53", "[2001:db8::53]": "[2001:db8::53]:53",
		"[2001:db8::53]:5353": "[2001:db8::53]:5353", "192.0.2.53:dns": "",
	} {
		all, err := resolveServer(t.Context(), server)
		if (err == nil) != (want != "") || want != "" && (len(all) != 1 || all[0].String() != want) {
			t.Errorf("%s: %v, %v", server, all, err)
		}
	}
}

func TestReadKeyFile(t *testing.T) {
	tests := map[string]struct {
		text string
		want string // the key, or a part of the error
	}{
		"tsig-keygen":      {"key \"Import\" {\n\talgorithm hmac-sha256;\n\tsecret \"c2VjcmV0\";\n};\n", "import. (hmac-sha256.)"},
		"without quotes":   {"key import. { secret c2VjcmV0; algorithm HMAC-SHA512; };", "import. (hmac-sha512.)"},
		"comments":         {"# key \"a\" {\n// };\n/* key \"b\" { \n } */ key \"c\" { algorithm hmac-sha256; // x\n secret \"c2Vj//0=\"; };", "c. (hmac-sha256.)"},
		"two":              {"key \"a\" { algorithm hmac-sha256; secret \"c2VjcmV0\"; }; key \"b\" { algorithm hmac-sha256; secret \"c2VjcmV0\"; };", "there are 2 key clauses"},
		"none":             {"options { };", "there are 0 key clauses"},
		"no secret":        {"key \"a\" { algorithm hmac-sha256; };", "lacks an algorithm or a secret"},
		"an old algorithm": {"key \"a\" { algorithm hmac-md5; secret \"c2VjcmV0\"; };", "hmac-md5"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			key, err := readKeyFile(writeZone(t, tc.text))
			got := fmt.Sprint(key)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) || strings.Contains(got, "c2Vj") {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A folder gets a file for each kind, has never a part of an older import, and holds the same objects.
func TestWriteFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "dns")
	args := []string{"--file", writeZone(t, hosts(5000)), "-n", "team-dns"}
	if text := runImport(t, nil, append(args, "--output", folder)...); text != "" {
		t.Errorf("on standard output as well: %s", text)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		parts[e.Name()] = string(text)
	}
	want := []string{"aaaarecord.yaml", "arecord-001.yaml", "arecord-002.yaml", "arecord-003.yaml", "cnamerecord.yaml", "dnszone.yaml", "mxrecord.yaml", "srvrecord.yaml", "txtrecord.yaml"}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(parts))); d != "" {
		t.Errorf("want (-), got (+):\n%s", d)
	}
	stream := runImport(t, nil, args...)
	if got, want := strings.Count(strings.Join(slices.Collect(maps.Values(parts)), "---\n"), "\nkind: "), strings.Count(stream, "\nkind: "); got != want {
		t.Errorf("%d objects, %d in the stream", got, want)
	}
	if strings.Contains(stream, "status") || strings.Contains(stream, "creationTimestamp") {
		t.Error("manifests have fields that a server sets")
	}
	if n := strings.Count(stream, "  namespace: team-dns\n"); n != strings.Count(stream, "\nkind: ") {
		t.Errorf("%d objects are in the namespace", n)
	}
	cmd := NewCommand("lockstep", nil)
	cmd.SetArgs(append([]string{"--zone", "example.com", "--output", folder}, args...))
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "the folder is not empty") {
		t.Errorf("%v", err)
	}
}

// A signed zone is said to be one, once; its data is imported without what signs it.
func TestSignedZone(t *testing.T) {
	cmd := NewCommand("lockstep", nil)
	var out, log strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	cmd.SetArgs([]string{"--zone", "example.com", "--file", writeZone(t, start+`ns1 A 192.0.2.53
ns1 60 RRSIG A 8 3 300 20300101000000 20200101000000 1 example.com. AAAA
@ 60 DNSKEY 257 3 8 AAAA
@ 60 NSEC ns1 A
`)})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "is signed: its 3 records of DNSSEC"); n != 1 || strings.Contains(out.String(), "DNSKEY") {
		t.Errorf("said %d times:\n%s%s", n, log.String(), out.String())
	}
	if !strings.Contains(log.String(), "nobody is to serve the zone yet") {
		t.Errorf("no word about servers:\n%s", log.String())
	}
}

// More values than servers take unless they are told to are in the manifests, and listed. More than they can be told to are left out.
func TestManyValuesAreKept(t *testing.T) {
	file := writeZone(t, "$TTL 60\n@ SOA ns1 hostmaster 7 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.53\n"+
		"$GENERATE 1-100 few A 192.0.2.$\n$GENERATE 1-120 pool A 198.51.100.$\n$GENERATE 1-4001 most TXT $\n")
	for _, as := range []string{asRecords, asEndpoints} {
		text := runImport(t, []string{"pool.example.com. A: kept: it has 120 values, and servers take 100 of one name and type unless maxRecordsPerType of their cluster, instance",
			"most.example.com. TXT: left out: it has 4001 values, and maxRecordsPerType is at most 4000"}, "--file", file, "--as", as)
		if strings.Contains(text, "most") || strings.Count(text, "198.51.100.") != 120 || strings.Count(text, "192.0.2.") != 101 {
			t.Errorf("as %s: the manifests have %d addresses of pool", as, strings.Count(text, "198.51.100."))
		}
		reviewManifests(t, text)
	}
	for most, want := range map[int]int{0: 1, 119: 1, 120: 0} {
		report := &differenceReport{}
		r := newContentReader("example.com.", wire.Limits{Records: 10_000, Bytes: 1 << 20}, report, func(int) {})
		if err := r.readZoneFile(nil, writeZone(t, start+"ns1 A 192.0.2.53\n$GENERATE 1-120 pool A 198.51.100.$\n"), ""); err != nil {
			t.Fatal(err)
		}
		content, err := r.finish()
		if err != nil {
			t.Fatal(err)
		}
		if err := (&manifestBuilder{content: content, report: report, maxRecords: most}).build(); err != nil || report.count() != want {
			t.Errorf("of a provider that takes %d: %v, %d differences", most, err, report.count())
		}
	}
}

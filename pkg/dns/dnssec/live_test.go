package dnssec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// liveZone is a random zone as BIND's tools sign it, or with a fault.
type liveZone struct {
	name, kind string
	// text is the zone file before it is signed.
	text string
	// names are the owner names, relative to the zone.
	names []string
	// dir has the keys, anchor is the public key-signing key. An unsigned zone has none.
	dir    string
	chain  []string
	anchor *dns.DNSKEY
	// records are what servers serve.
	records []dns.RR
	// denials are the RRsets of NSEC and NSEC3 records with their signatures.
	denials  [][]dns.RR
	children []*liveZone
}

var (
	algorithms = []string{"ECDSAP256SHA256", "RSASHA256", "ED25519"}
	// chains are options of dnssec-signzone. -A is opt-out.
	chains = []string{"", "", "-3 - -H 0", "-3 aabb -H 7", "-3 - -H 0 -A", "-3 cc -H 9 -A", "-3 - -H 50"}
)

// newLiveZone makes a zone, and the zones below it.
func newLiveZone(t *testing.T, r *rand.Rand, name string, withChildren bool) *liveZone {
	z := &liveZone{name: name, dir: t.TempDir()}
	algorithm, chain := algorithms[r.IntN(len(algorithms))], chains[r.IntN(len(chains))]
	fault := faults[max(0, r.IntN(2*len(faults))-len(faults))]
	z.kind, z.chain = fmt.Sprintf("%s %q, %s", algorithm, chain, fault.name), strings.Fields(chain)
	z.anchor = newKeys(t, name, z.dir, algorithm)
	z.text = z.randomRecords(t, r, withChildren)
	z.records = fault.apply(t, r, z)
	for _, s := range groupRecords(z.records, z.name) {
		if s.Type == dns.TypeNSEC || s.Type == dns.TypeNSEC3 {
			set := slices.Clone(s.records)
			for _, signature := range s.signatures {
				set = append(set, signature)
			}
			z.denials = append(z.denials, set)
		}
	}
	return z
}

// newKeys makes the keys of a zone, and returns the key-signing key.
func newKeys(t *testing.T, zone, dir, algorithm string) *dns.DNSKEY {
	base := run(t, dir, "dnssec-keygen", "-q", "-a", algorithm, "-f", "KSK", zone)
	run(t, dir, "dnssec-keygen", "-q", "-a", algorithm, zone)
	text, err := os.ReadFile(filepath.Join(dir, strings.TrimSpace(base)+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return records(t, string(text))[0].(*dns.DNSKEY)
}

func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	command := exec.Command(program, args...)
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %q (`apt-get install bind9 bind9-utils`): %v\n%s%s", program, args, err, out, stderr.String())
	}
	return string(out)
}

// sign signs a zone file with the keys of a directory.
func (z *liveZone) sign(t *testing.T, dir, text string, options ...string) []dns.RR {
	t.Helper()
	file := filepath.Join(dir, "zone")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "dnssec-signzone", slices.Concat([]string{"-q", "-P", "-S", "-n", "1", "-o", z.name, "-O", "full"}, z.chain, options, []string{"zone"})...)
	signed, err := os.ReadFile(file + ".signed")
	if err != nil {
		t.Fatal(err)
	}
	return records(t, string(signed))
}

const liveApex = `$TTL 300
@ SOA ns1 hostmaster 1 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.1
`

// randomRecords writes a zone with few names, so that they are above, below and beside each other.
func (z *liveZone) randomRecords(t *testing.T, r *rand.Rand, withChildren bool) string {
	var b strings.Builder
	var ends []string // What is below these names is not in the zone.
	fmt.Fprintf(&b, "$ORIGIN %s\n%s", z.name, liveApex)
	for range 16 {
		name := randomName(r)
		if slices.Contains(z.names, name) {
			continue
		}
		z.names = append(z.names, name)
		switch kind := r.IntN(10); {
		case kind <= 3 && strings.HasPrefix(name, "*"), kind <= 3 && slices.ContainsFunc(ends, func(end string) bool {
			return rrset.IsSubdomain(name+".", end+".") || rrset.IsSubdomain(end+".", name+".")
		}):
			fmt.Fprintln(&b, name, "TXT x")
		case kind < 3 && withChildren:
			ends = append(ends, name)
			fmt.Fprint(&b, name, " NS ns1\n", z.newChild(t, r, name))
		case kind == 3:
			ends = append(ends, name)
			fmt.Fprintln(&b, name, "DNAME", randomName(r))
		case kind <= 5:
			fmt.Fprintln(&b, name, "CNAME", randomTarget(r))
		case kind == 6:
			fmt.Fprintln(&b, name, "MX 10 mail")
		default:
			fmt.Fprintf(&b, "%[1]s A 192.0.2.9\n%[1]s A 192.0.2.7\n%[1]s TXT x\n", name)
		}
	}
	return b.String()
}

// newChild makes a zone below and returns its DS records: none, those of the zone, or of an algorithm that nobody knows.
func (z *liveZone) newChild(t *testing.T, r *rand.Rand, name string) (ds string) {
	var child *liveZone
	switch kind := r.IntN(4); kind {
	case 0:
		child = newLiveZone(t, r, name+"."+z.name, false)
		ds = name + strings.TrimPrefix(child.anchor.ToDS([...]uint8{dns.SHA1, dns.SHA256, dns.SHA384}[r.IntN(3)]).String(), child.name) + "\n"
	default:
		child = &liveZone{name: name + "." + z.name, kind: "unsigned"}
		child.text = child.randomRecords(t, r, false)
		child.records = records(t, child.text)
		ds = [...]string{"", "", name + " DS 1 13 2 " + strings.Repeat("00", 32) + "\n", name + " DS 1 200 2 " + strings.Repeat("00", 32) + "\n"}[kind]
	}
	z.children = append(z.children, child)
	return ds
}

func randomName(r *rand.Rand) string {
	labels := []string{string(rune('a' + r.IntN(6)))}
	for len(labels) < 3 && r.IntN(2) == 0 {
		labels = append(labels, string(rune('a'+r.IntN(6))))
	}
	if r.IntN(6) == 0 {
		labels[0] = "*"
	}
	return strings.Join(labels, ".")
}

// elsewhere is an unsigned zone.
const elsewhere = "elsewhere.test."

func randomTarget(r *rand.Rand) string {
	if r.IntN(8) == 0 {
		return randomName(r) + "." + elsewhere
	}
	return randomName(r)
}

// faults are what can be wrong with a signed zone. In the first one nothing is.
var faults = []struct {
	name  string
	apply func(t *testing.T, r *rand.Rand, z *liveZone) []dns.RR
}{
	{"as signed", func(t *testing.T, _ *rand.Rand, z *liveZone) []dns.RR { return z.sign(t, z.dir, z.text) }},
	{"signatures expired", signedAt("-s", "20200101000000", "-e", "20200201000000")},
	{"signatures not yet valid", signedAt("-s", "+864000")},
	{"signatures wrong", func(t *testing.T, r *rand.Rand, z *liveZone) []dns.RR {
		return changeSignatures(r, z.sign(t, z.dir, z.text), func(signature *dns.RRSIG) []dns.RR {
			raw := decode(t, signature.Signature)
			raw[r.IntN(len(raw))] ^= 1 << r.IntN(8)
			signature.Signature = encode(raw)
			return []dns.RR{signature}
		})
	}},
	{"signatures missing", func(t *testing.T, r *rand.Rand, z *liveZone) []dns.RR {
		return changeSignatures(r, z.sign(t, z.dir, z.text), func(*dns.RRSIG) []dns.RR { return nil })
	}},
	{"denial missing", func(t *testing.T, r *rand.Rand, z *liveZone) []dns.RR {
		names := map[string]bool{}
		return slices.DeleteFunc(z.sign(t, z.dir, z.text), func(rr dns.RR) bool {
			name := rr.Header().Name
			if _, ok := names[name]; !ok {
				names[name] = r.IntN(3) == 0
			}
			return isDenial(rr) && names[name]
		})
	}},
	{"denial of another version", func(t *testing.T, r *rand.Rand, z *liveZone) []dns.RR {
		kept := map[string]bool{"@": true, "ns1": true, "$TTL": true, "$ORIGIN": true}
		for _, name := range z.names {
			kept[name] = r.IntN(4) > 0
		}
		var other string
		for line := range strings.Lines(z.text) {
			if kept[strings.Fields(line)[0]] {
				other += line
			}
		}
		return exchangeRecords(z.sign(t, z.dir, z.text), z.sign(t, z.dir, other), isDenial)
	}},
	{"signatures by an unknown key", func(t *testing.T, r *rand.Rand, z *liveZone) []dns.RR {
		all := z.sign(t, z.dir, z.text)
		for _, file := range glob(t, filepath.Join(z.dir, "K*")) {
			if !strings.Contains(file, fmt.Sprintf("+%05d.", z.anchor.KeyTag())) {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
		}
		run(t, z.dir, "dnssec-keygen", "-q", "-a", dns.AlgorithmToString[z.anchor.Algorithm], z.name)
		return exchangeSignatures(r, all, z.sign(t, z.dir, z.text))
	}},
	{"other keys", func(t *testing.T, _ *rand.Rand, z *liveZone) []dns.RR {
		dir := t.TempDir()
		newKeys(t, z.name, dir, dns.AlgorithmToString[z.anchor.Algorithm])
		return z.sign(t, dir, z.text)
	}},
	{"unsigned", func(t *testing.T, _ *rand.Rand, z *liveZone) []dns.RR { return records(t, z.text) }},
}

func glob(t *testing.T, pattern string) []string {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(pattern, err)
	}
	return files
}

// covered is the type of a record, or what it signs.
func covered(rr dns.RR) uint16 {
	if signature, ok := rr.(*dns.RRSIG); ok {
		return signature.TypeCovered
	}
	return rr.Header().Rrtype
}

func isDenial(rr dns.RR) bool { return covered(rr) == dns.TypeNSEC || covered(rr) == dns.TypeNSEC3 }

// exchangeRecords takes some records from another version of the zone.
func exchangeRecords(zone, other []dns.RR, which func(dns.RR) bool) []dns.RR {
	return append(slices.DeleteFunc(zone, which), slices.DeleteFunc(other, func(rr dns.RR) bool { return !which(rr) })...)
}

// changeSignatures changes a third of the signatures, but none of the DNSKEY RRset.
func changeSignatures(r *rand.Rand, zone []dns.RR, change func(*dns.RRSIG) []dns.RR) (changed []dns.RR) {
	for _, rr := range zone {
		if signature, ok := rr.(*dns.RRSIG); ok && signature.TypeCovered != dns.TypeDNSKEY && r.IntN(3) == 0 {
			changed = append(changed, change(signature)...)
			continue
		}
		changed = append(changed, rr)
	}
	return changed
}

// exchangeSignatures takes a third of the signatures from another version of the zone.
func exchangeSignatures(r *rand.Rand, zone, other []dns.RR) []dns.RR {
	signatures := map[rrset.Key]dns.RR{}
	for _, rr := range other {
		if signature, ok := rr.(*dns.RRSIG); ok {
			signatures[rrset.Key{Name: signature.Hdr.Name, Type: signature.TypeCovered}] = signature
		}
	}
	return changeSignatures(r, zone, func(signature *dns.RRSIG) []dns.RR {
		return []dns.RR{signatures[rrset.Key{Name: signature.Hdr.Name, Type: signature.TypeCovered}]}
	})
}

func signedAt(times ...string) func(t *testing.T, r *rand.Rand, z *liveZone) []dns.RR {
	return func(t *testing.T, r *rand.Rand, z *liveZone) []dns.RR {
		return exchangeSignatures(r, z.sign(t, z.dir, z.text), z.sign(t, z.dir, z.text, times...))
	}
}

// file is the zone as servers serve it.
func (z *liveZone) file() string {
	var b strings.Builder
	for _, rr := range z.records {
		fmt.Fprintln(&b, rr)
	}
	return b.String()
}

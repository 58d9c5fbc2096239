package dnssec

import (
	"crypto"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// key is a DNSKEY record and its private part.
type key struct {
	*dns.DNSKEY
	private crypto.Signer
}

var keyBits = map[uint8]int{dns.ECDSAP256SHA256: 256, dns.ECDSAP384SHA384: 384, dns.ED25519: 256, dns.RSASHA256: 2048}

func newKey(t testing.TB, zone string, algorithm uint8, flags uint16) key {
	t.Helper()
	k := &dns.DNSKEY{Hdr: header(zone, dns.TypeDNSKEY), Flags: flags, Protocol: 3, Algorithm: algorithm}
	private, err := k.Generate(keyBits[algorithm])
	if err != nil {
		t.Fatal(err)
	}
	return key{k, private.(crypto.Signer)}
}

func header(name string, rrtype uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: 60}
}

// validity is when signatures are valid.
type validity struct{ from, to time.Time }

// lasting is the validity of signatures after which nobody looks.
func lasting() validity {
	return validity{time.Now().Add(-24 * time.Hour), time.Now().Add(30 * 24 * time.Hour)}
}

// signer signs a zone.
type signer struct {
	t        testing.TB
	zone     string
	ksk, zsk key
	// nsec3 are the parameters of the chain that proves what does not exist; nil for NSEC.
	nsec3 *dns.NSEC3PARAM
}

func newSigner(t testing.TB, zone string, algorithm uint8, nsec3 *dns.NSEC3PARAM) *signer {
	t.Helper()
	return &signer{t, zone, newKey(t, zone, algorithm, dns.ZONE|dns.SEP), newKey(t, zone, algorithm, dns.ZONE), nsec3}
}

// ds is the DS record of the zone's keys.
func (s *signer) ds() *dns.DS { return s.ksk.ToDS(dns.SHA256) }

// params are parameters of NSEC3.
func params(zone string, iterations uint16, salt string) *dns.NSEC3PARAM {
	return &dns.NSEC3PARAM{Hdr: header(zone, dns.TypeNSEC3PARAM), Hash: dns.SHA1, Iterations: iterations, SaltLength: uint8(len(salt) / 2), Salt: salt}
}

// content is all records of a zone.
type content []dns.RR

// unsigned is the content of a zone before it is signed.
func unsigned(t testing.TB, zone string, serial uint32, records string) (all content) {
	t.Helper()
	text := fmt.Sprintf("$ORIGIN %s\n$TTL 300\n@ SOA ns1 hostmaster %d 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n%s\n", zone, serial, records)
	p := dns.NewZoneParser(strings.NewReader(text), "", "")
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		all = append(all, rr)
	}
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// sign adds keys, denial and signatures.
func (s *signer) sign(records content, v validity) content {
	all := append(slices.Clone(records), s.ksk.DNSKEY, s.zsk.DNSKEY)
	if s.nsec3 != nil {
		all = append(all, s.nsec3)
	}
	return s.signatures(append(all, s.denial(all)...), v)
}

// rrset names an RRset.
type rrset struct {
	name   string
	rrtype uint16
}

func (k rrset) String() string { return k.name + " " + dns.TypeToString[k.rrtype] }

func keyOf(rr dns.RR) rrset { return rrset{rr.Header().Name, rr.Header().Rrtype} }

// signatures adds a signature to each RRset that the zone has authority over.
func (s *signer) signatures(all content, v validity) content {
	sets := map[rrset][]dns.RR{}
	for _, rr := range all {
		sets[keyOf(rr)] = append(sets[keyOf(rr)], rr)
	}
	cuts := all.cuts(s.zone)
	for k, set := range sets {
		if !isCut(cuts, k) {
			all = append(all, s.signature(set, v))
		}
	}
	return all
}

func (s *signer) signature(set []dns.RR, v validity) *dns.RRSIG {
	by := s.zsk
	if set[0].Header().Rrtype == dns.TypeDNSKEY {
		by = s.ksk
	}
	sig := &dns.RRSIG{
		Hdr: header(set[0].Header().Name, dns.TypeRRSIG), KeyTag: by.KeyTag(), SignerName: s.zone, Algorithm: by.Algorithm,
		Inception: uint32(v.from.Unix()), Expiration: uint32(v.to.Unix()),
	}
	sorted := slices.Clone(set)
	if err := sig.Sign(by.private, sorted); err != nil {
		s.t.Error(err)
	}
	return sig
}

// cuts are the delegations of a zone.
func (c content) cuts(zone string) map[string]bool {
	cuts := map[string]bool{}
	for _, rr := range c {
		if rr.Header().Rrtype == dns.TypeNS && rr.Header().Name != zone {
			cuts[rr.Header().Name] = true
		}
	}
	return cuts
}

// isCut is true for what a zone has without authority: name servers at a delegation, and all that is below.
func isCut(cuts map[string]bool, k rrset) bool {
	if cuts[k.name] {
		return k.rrtype == dns.TypeNS
	}
	for cut := range cuts {
		if dns.IsSubDomain(cut, k.name) {
			return true
		}
	}
	return false
}

// denial is the chain of NSEC or NSEC3 records.
func (s *signer) denial(all content) content {
	cuts, types := all.cuts(s.zone), map[string][]uint16{}
	for _, rr := range all {
		if k := keyOf(rr); !isCut(cuts, k) || k.rrtype == dns.TypeNS && cuts[k.name] {
			types[k.name] = append(types[k.name], k.rrtype)
		}
	}
	if s.nsec3 == nil {
		return s.nsecs(types)
	}
	return s.nsec3s(types, cuts)
}

func (s *signer) nsecs(types map[string][]uint16) (chain content) {
	names := slices.SortedFunc(maps.Keys(types), compareNames)
	for i, name := range names {
		chain = append(chain, &dns.NSEC{
			Hdr: header(name, dns.TypeNSEC), NextDomain: names[(i+1)%len(names)], TypeBitMap: bitmap(append(types[name], dns.TypeNSEC, dns.TypeRRSIG)),
		})
	}
	return chain
}

func (s *signer) nsec3s(types map[string][]uint16, cuts map[string]bool) (chain content) {
	for name := range maps.Clone(types) { // Names that exist only above others.
		for ; name != s.zone; name = name[strings.Index(name, ".")+1:] {
			types[name] = append([]uint16(nil), types[name]...)
		}
	}
	hashes := map[string]string{}
	for name := range types {
		hashes[dns.HashName(name, s.nsec3.Hash, s.nsec3.Iterations, s.nsec3.Salt)] = name
	}
	sorted := slices.Sorted(maps.Keys(hashes))
	for i, hash := range sorted {
		bits := types[hashes[hash]]
		if len(bits) > 0 && (!cuts[hashes[hash]] || slices.Contains(bits, dns.TypeDS)) {
			bits = append(slices.Clone(bits), dns.TypeRRSIG)
		}
		chain = append(chain, &dns.NSEC3{
			Hdr: header(strings.ToLower(hash)+"."+s.zone, dns.TypeNSEC3), Hash: s.nsec3.Hash, Iterations: s.nsec3.Iterations, SaltLength: s.nsec3.SaltLength,
			Salt: s.nsec3.Salt, HashLength: 20, NextDomain: sorted[(i+1)%len(sorted)], TypeBitMap: bitmap(bits),
		})
	}
	return chain
}

func bitmap(types []uint16) []uint16 {
	slices.Sort(types)
	return slices.Compact(types)
}

// compareNames orders names as RFC 4034 section 6.1 does.
func compareNames(a, b string) int {
	labels := func(name string) []string {
		all := dns.SplitDomainName(name)
		slices.Reverse(all)
		return all
	}
	return slices.Compare(labels(a), labels(b))
}

// text is the zone file.
func (c content) text() string {
	var b strings.Builder
	for _, rr := range c {
		fmt.Fprintln(&b, rr)
	}
	return b.String()
}

// with replaces the records for which change returns others; nil for none.
func (c content) with(change func(dns.RR) []dns.RR) (out content) {
	for _, rr := range c {
		out = append(out, change(rr)...)
	}
	return out
}

// without leaves records out.
func (c content) without(is func(dns.RR) bool) content {
	return slices.DeleteFunc(slices.Clone(c), is)
}

// covers is the type that a signature covers; 0 for other records.
func covers(rr dns.RR) uint16 {
	if sig, ok := rr.(*dns.RRSIG); ok {
		return sig.TypeCovered
	}
	return 0
}

func isSignatureOf(k rrset) func(dns.RR) bool {
	return func(rr dns.RR) bool { return rr.Header().Name == k.name && covers(rr) == k.rrtype }
}

// flip changes one bit of a text in base64.
func flip(text string, bit int) string {
	raw, _ := base64.StdEncoding.DecodeString(text)
	raw[bit/8%len(raw)] ^= 1 << (bit % 8)
	return base64.StdEncoding.EncodeToString(raw)
}

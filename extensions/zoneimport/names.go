package zoneimport

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// maxObjectName is the length of a DNS label (RFC 1123), which names of objects and values of labels may have.
const maxObjectName = 63

// nameDigits is how much of a hash makes a name unique.
const nameDigits = 8

// objectNames gives objects names: those of one kind have different ones.
type objectNames struct{ taken map[string]struct{} }

func newObjectNames() *objectNames { return &objectNames{map[string]struct{}{}} }

// choose returns a name for an object of a kind: the parts joined, or, if that is too long or taken, with a hash of what the
// object is about.
func (n *objectNames) choose(kind, about string, parts ...string) string {
	name := cmp.Or(strings.Trim(strings.Join(parts, "-"), "-"), "record")
	candidate := name
	for salt := about; ; salt += "'" {
		_, taken := n.taken[kind+"/"+candidate]
		if !taken && len(candidate) <= maxObjectName {
			break
		}
		candidate = withHash(name, salt)
	}
	n.taken[kind+"/"+candidate] = struct{}{}
	return candidate
}

func withHash(name, about string) string {
	sum := sha256.Sum256([]byte(about))
	short := strings.TrimRight(name[:min(len(name), maxObjectName-nameDigits-1)], "-")
	return short + "-" + hex.EncodeToString(sum[:])[:nameDigits]
}

// nameOfOwner returns an owner name as a part of an object's name: _sip._tcp.example.com. becomes sip-tcp-example-com,
// *.example.com. wildcard-example-com.
func nameOfOwner(owner string) string {
	if below, wild := strings.CutPrefix(owner, "*."); wild {
		owner = "wildcard." + below
	}
	return nameOfText(owner)
}

// nameOfText keeps lower-case letters, digits and hyphens; what is between words becomes one hyphen.
func nameOfText(text string) string {
	out := make([]byte, 0, len(text))
	between := false
	for _, c := range []byte(strings.ToLower(text)) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			between = len(out) > 0
			continue
		}
		if between {
			out = append(out, '-')
		}
		out, between = append(out, c), false
	}
	return strings.Trim(string(out), "-")
}

// namesOfValues returns what distinguishes the values of an RRset, as parts of objects' names: the first label of hosts, or
// the whole name where several have that label; the tag and authority of CAA; the first word of texts.
func namesOfValues(rrtype uint16, rdata []string) []string {
	names, seen := make([]string, len(rdata)), map[string]int{}
	for i, value := range rdata {
		names[i] = nameOfText(firstWord(rrtype, value))
		seen[names[i]]++
	}
	for i, value := range rdata {
		if seen[names[i]] > 1 && rrtype != dns.TypeTXT && rrtype != dns.TypeCAA {
			names[i] = nameOfText(hostOf(value))
		}
	}
	return names
}

// firstWord returns what says most about a value in few characters.
func firstWord(rrtype uint16, rdata string) string {
	const enough = 24
	switch rrtype {
	case dns.TypeTXT:
		texts, err := rrset.ParseStrings(rdata)
		if err != nil || len(texts) == 0 {
			return "text"
		}
		word, _, _ := strings.Cut(texts[0], " ")
		return word[:min(len(word), enough)]
	case dns.TypeCAA:
		_, property, _ := strings.Cut(rdata, " ")
		tag, value, _ := strings.Cut(property, " ")
		value, _, _ = strings.Cut(value, ".")
		return tag + " " + value[:min(len(value), enough)]
	}
	label, _, _ := strings.Cut(hostOf(rdata), ".")
	return label
}

// hostOf returns the host at the end of rdata.
func hostOf(rdata string) string { return rdata[strings.LastIndexByte(rdata, ' ')+1:] }

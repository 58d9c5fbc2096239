package coredns

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// value is what a key holds, in the JSON of SkyDNS; CoreDNS ignores fields that it does not know.
type value struct {
	Host        string `json:"host,omitempty"`
	Port        int    `json:"port,omitempty"`
	Priority    int    `json:"priority,omitempty"`
	Weight      int    `json:"weight,omitempty"`
	Text        string `json:"text,omitempty"`
	Mail        bool   `json:"mail,omitempty"`
	TTL         uint32 `json:"ttl,omitempty"`
	TargetStrip int    `json:"targetstrip,omitempty"`
	Group       string `json:"group,omitempty"`
	Marker      marker `json:"lockstep,omitzero"`
}

// marker says whose a value is, and which RRset it is of.
type marker struct {
	Owner string `json:"owner"`
	Zone  string `json:"zone"`
	Type  string `json:"type"`
}

// encodeJSON returns a value's JSON, which is the same for the same value.
func encodeJSON(v value) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // strings and numbers: it cannot fail
	return strings.TrimSuffix(out.String(), "\n")
}

// layout is where the values of one zone are, and whose they are. The prefix has a slash at the beginning and none at the end.
type layout struct {
	prefix, owner, zone string
}

// pathOf returns the key of a name without escapes: its labels from the right, below the prefix.
func (l layout) pathOf(name string) string {
	path := append(make([]byte, 0, len(l.prefix)+len(name)+64), l.prefix...) // and what follows the name
	for end := len(name) - 1; end > 0; {
		dot := strings.LastIndexByte(name[:end], '.')
		path = append(append(path, '/'), name[dot+1:end]...)
		end = dot
	}
	return string(path)
}

// nameOf returns the name of a key, or "" if it is none of the zone's.
func (l layout) nameOf(key string) string {
	rest, ok := strings.CutPrefix(key, l.prefix)
	if !ok {
		return ""
	}
	name := make([]byte, 0, len(rest))
	for end := len(rest); end > 0; {
		slash := strings.LastIndexByte(rest[:end], '/')
		name = append(append(name, rest[slash+1:end]...), '.')
		end = slash
	}
	if !rrset.IsSubdomain(string(name), l.zone) {
		return ""
	}
	return string(name)
}

// The names below the zone's apex where CoreDNS looks for the apex' addresses and for its name servers.
const (
	apexLabels       = "apex.dns."
	nameServerLabels = "ns.dns."
)

// placeOf returns the name at which the values of an RRset are kept.
func (l layout) placeOf(key rrset.Key) string {
	if key.Name == l.zone && isAddress(key.Type) {
		return apexLabels + l.zone
	}
	return key.Name
}

// ownerOf is the reverse of placeOf.
func (l layout) ownerOf(place string) string {
	if place == apexLabels+l.zone {
		return l.zone
	}
	return place
}

// lastPart returns the last part of the key of a value. It begins with "!", so that it sorts before the labels of names, and has
// capital letters, so that no query reaches it: CoreDNS asks for lower case.
func lastPart(rrtype uint16, rdata string) string {
	sum := sha256.Sum256([]byte(rdata))
	return "!" + dns.Type(rrtype).String() + "-" + hex.EncodeToString(sum[:10])
}

func isAddress(rrtype uint16) bool { return rrtype == dns.TypeA || rrtype == dns.TypeAAAA }

// isExact reports whether CoreDNS looks for a type at the name's own key.
func isExact(rrtype uint16) bool { return rrtype == dns.TypeCNAME || rrtype == dns.TypePTR }

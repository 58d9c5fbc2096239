package coredns

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
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

// encodeJSON always writes the same text for the same value.
func encodeJSON(v *value) string {
	if isPlain(v) {
		var buffer [usualSize]byte
		return string(appendPlain(buffer[:0], v))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // strings and numbers: it cannot fail
	return strings.TrimSuffix(out.String(), "\n")
}

// decodeJSON is not ok if CoreDNS cannot read the value. JSON that is, byte by byte, what encodeJSON writes of the fields in it needs no
// general decoder.
func decodeJSON(raw []byte) (v value, ok bool) {
	v = guessPlain(string(raw))
	var buffer [usualSize]byte
	if isPlain(&v) && bytes.Equal(appendPlain(buffer[:0], &v), raw) {
		return v, true
	}
	v = value{}
	err := json.Unmarshal(raw, &v)
	return v, err == nil
}

// layout is where the values of one zone are, and whose they are. The prefix has a slash at the beginning and none at the end.
type layout struct {
	prefix, owner, zone string
}

// pathOf is the key of a name without escapes: its labels from the right, below the prefix.
func (l layout) pathOf(name string) string {
	var buffer [usualSize]byte
	path := append(buffer[:0], l.prefix...)
	for end := len(name) - 1; end > 0; {
		dot := strings.LastIndexByte(name[:end], '.')
		path = append(append(path, '/'), name[dot+1:end]...)
		end = dot
	}
	return string(path)
}

// nameOf is the name of a key, or "" if it is none of the zone's.
func (l layout) nameOf(key string) string {
	rest, ok := strings.CutPrefix(key, l.prefix)
	if !ok {
		return ""
	}
	var buffer [usualSize]byte
	name := buffer[:0]
	for end := len(rest); end > 0; {
		slash := strings.LastIndexByte(rest[:end], '/')
		name = append(append(name, rest[slash+1:end]...), '.')
		end = slash
	}
	if found := string(name); rrset.IsSubdomain(found, l.zone) {
		return found
	}
	return ""
}

// The names below the zone's apex where CoreDNS looks for the apex' addresses and for its name servers.
const (
	apexLabels       = "apex.dns."
	nameServerLabels = "ns.dns."
)

// placeOf is the name at which the values of an RRset are kept.
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

// keyAt is the key of a value of a name. Its last part begins with "!", so that it sorts before the labels of names, and has capital
// letters, so that no query reaches it: CoreDNS asks for lower case.
func keyAt(path string, rrtype uint16, rdata string) string {
	sum := sha256.Sum256([]byte(rdata))
	var buffer [usualSize]byte
	key := append(append(append(buffer[:0], path...), "/!"...), dns.Type(rrtype).String()...)
	return string(hex.AppendEncode(append(key, '-'), sum[:10]))
}

func isAddress(rrtype uint16) bool { return rrtype == dns.TypeA || rrtype == dns.TypeAAAA }

// isExact is true for types that CoreDNS looks for at the name's own key.
func isExact(rrtype uint16) bool { return rrtype == dns.TypeCNAME || rrtype == dns.TypePTR }

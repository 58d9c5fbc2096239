package ledger

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// An entry is a TXT record with these character-strings:
//
//	"lockstep1 OWNER" "A 300 HASH HASH" "AAAA 300 HASH" …
//
// A type has several strings if its hashes do not fit into one.
const (
	version = "lockstep1 "
	// maxOwner is how long the name of an owner is at most.
	maxOwner = 240
	// hashText is how many characters a hash has.
	hashText = 16
	// maxPerString is how many hashes a character-string has: with the longest type and TTL it is within 255 octets (RFC 1035 section 3.3).
	maxPerString = 13
	// maxClaims and maxValues are how much of an entry is believed. Nobody can declare more.
	maxClaims = 64
	maxValues = 1 << 13
)

// Hash stands for a value: a part of the SHA-256 of its type and its canonical rdata on the wire.
type Hash [hashText * 3 / 4]byte

// HashOf returns the hash of a value, which is canonical.
func HashOf(rrtype uint16, rdata string) (h Hash) {
	form := []byte(rdata)
	if rr, err := rrset.ToRR(rrset.Key{Name: ".", Type: rrtype}, 0, rdata); err == nil {
		packed := make([]byte, dns.Len(rr)+1)
		if n, err := dns.PackRR(rr, packed, 0, nil, false); err == nil {
			form = packed[len(".")+10 : n] // What follows name, type, class, TTL and length.
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", rrtype, form))
	copy(h[:], sum[:])
	return h
}

// Claim is what an owner has declared of one RRset.
type Claim struct {
	// TTL that it has declared.
	TTL uint32
	// Values that it has declared.
	Values map[Hash]struct{}
}

// Entry is the record of one owner in a ledger.
type Entry struct {
	Owner string
	// Claims by type.
	Claims map[uint16]Claim
}

// IsOwner reports whether a text can be the name of an owner: lower-case letters, digits and a few marks, so that it can be shown as it is.
func IsOwner(text string) bool {
	return text != "" && len(text) <= maxOwner && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789.-_/:") == ""
}

// OwnerName makes the name of an owner of parts. One that would be too long ends with a hash.
func OwnerName(parts ...string) string {
	name := strings.Join(parts, "/")
	if len(name) > maxOwner {
		sum := sha256.Sum256([]byte(name))
		name = name[:maxOwner-33] + "-" + hex.EncodeToString(sum[:16])
	}
	return name
}

// claim adds values to the claim on an RRset, whose TTL is the lowest.
func (e *Entry) claim(rrtype uint16, ttl uint32, values ...Hash) {
	c, known := e.Claims[rrtype]
	if !known {
		c = Claim{ttl, map[Hash]struct{}{}}
	}
	for _, v := range values {
		c.Values[v] = struct{}{}
	}
	c.TTL = min(c.TTL, ttl)
	if e.Claims == nil {
		e.Claims = map[uint16]Claim{}
	}
	e.Claims[rrtype] = c
}

// Rdata is the record in canonical presentation form.
func (e Entry) Rdata() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%q", version+e.Owner)
	for _, rrtype := range slices.Sorted(maps.Keys(e.Claims)) {
		c := e.Claims[rrtype]
		values := slices.SortedFunc(maps.Keys(c.Values), func(a, b Hash) int { return slices.Compare(a[:], b[:]) })
		for part := range slices.Chunk(values, maxPerString) {
			fmt.Fprintf(&out, ` "%s %d`, typeName(rrtype), c.TTL)
			for _, v := range part {
				out.WriteString(" " + base64.RawURLEncoding.EncodeToString(v[:]))
			}
			out.WriteString(`"`)
		}
	}
	return out.String()
}

// typeName is the name of a type that ParseType reads.
func typeName(rrtype uint16) string {
	name := rrset.TypeName(rrtype)
	if back, ok := rrset.ParseType(name); !ok || back != rrtype {
		return fmt.Sprintf("TYPE%d", rrtype)
	}
	return name
}

// ParseEntry reads a TXT record in canonical presentation form; not ok if it is no entry.
func ParseEntry(rdata string) (e Entry, ok bool) {
	texts, ok := splitStrings(rdata)
	if !ok || !strings.HasPrefix(texts[0], version) || !IsOwner(texts[0][len(version):]) {
		return Entry{}, false
	}
	e.Owner = texts[0][len(version):]
	count := 0
	for _, text := range texts[1:] {
		rrtype, ttl, values, ok := parseClaim(text)
		if count += len(values); !ok || count > maxValues {
			return Entry{}, false
		}
		if e.claim(rrtype, ttl, values...); len(e.Claims) > maxClaims {
			return Entry{}, false
		}
	}
	return e, true
}

// splitStrings splits character-strings that have nothing escaped; not ok if one has. There is at least one.
func splitStrings(rdata string) (texts []string, ok bool) {
	inner, begins := strings.CutPrefix(rdata, `"`)
	inner, ends := strings.CutSuffix(inner, `"`)
	texts = strings.Split(inner, `" "`)
	return texts, begins && ends && !slices.ContainsFunc(texts, func(s string) bool { return strings.ContainsAny(s, `"\`) })
}

func parseClaim(text string) (rrtype uint16, ttl uint32, values []Hash, ok bool) {
	fields := strings.Split(text, " ")
	if len(fields) < 3 {
		return 0, 0, nil, false
	}
	rrtype, ok = rrset.ParseType(fields[0])
	seconds, err := strconv.ParseUint(fields[1], 10, 31)
	if !ok || err != nil {
		return 0, 0, nil, false
	}
	for _, field := range fields[2:] {
		var h Hash
		if len(field) != hashText {
			return 0, 0, nil, false
		}
		if n, err := base64.RawURLEncoding.Decode(h[:], []byte(field)); err != nil || n != len(h) {
			return 0, 0, nil, false
		}
		values = append(values, h)
	}
	return rrtype, uint32(seconds), values, true
}

// Ledger is what the owners of a name have claimed.
type Ledger struct {
	// Entries by owner; at most one of each.
	entries map[string]Entry
	// records are the rdata of all records by owner, as they are; those of none under "".
	records map[string][]string
	// owners are those who have claimed a type, and claimants those who have claimed a value; sorted.
	owners    map[uint16][]string
	claimants map[typedHash][]string
}

// typedHash is a value as an entry claims it.
type typedHash struct {
	rrtype uint16
	Hash
}

// Read reads the ledger of a name. Of two entries of an owner both count.
func Read(set rrset.RRset) Ledger {
	l := Ledger{entries: map[string]Entry{}, records: map[string][]string{}}
	for _, rdata := range set.Rdata {
		e, ok := ParseEntry(rdata)
		l.records[e.Owner] = append(l.records[e.Owner], rdata)
		if !ok {
			continue
		}
		all, known := l.entries[e.Owner]
		if !known {
			all = Entry{Owner: e.Owner}
		}
		for rrtype, c := range e.Claims {
			all.claim(rrtype, c.TTL, slices.Collect(maps.Keys(c.Values))...)
		}
		l.entries[e.Owner] = all
	}
	l.addIndex()
	return l
}

// addIndex has it cost no more to find the owners of a value where there are many entries.
func (l *Ledger) addIndex() {
	l.owners, l.claimants = map[uint16][]string{}, map[typedHash][]string{}
	for _, owner := range slices.Sorted(maps.Keys(l.entries)) {
		for rrtype, c := range l.entries[owner].Claims {
			l.owners[rrtype] = append(l.owners[rrtype], owner)
			for h := range c.Values {
				l.claimants[typedHash{rrtype, h}] = append(l.claimants[typedHash{rrtype, h}], owner)
			}
		}
	}
}

// Of returns the claim of an owner on an RRset.
func (l Ledger) Of(owner string, rrtype uint16) (Claim, bool) {
	c, ok := l.entries[owner].Claims[rrtype]
	return c, ok
}

// others returns the claims of all other owners than one on an RRset, by owner.
func (l Ledger) others(owner string, rrtype uint16) map[string]Claim {
	all := map[string]Claim{}
	for _, other := range l.owners[rrtype] {
		if other != owner {
			all[other] = l.entries[other].Claims[rrtype]
		}
	}
	return all
}

// OwnersOf returns the owners other than one that have claimed a value, sorted.
func (l Ledger) OwnersOf(rrtype uint16, rdata, but string) (owners []string) {
	if len(l.owners[rrtype]) == 0 {
		return nil
	}
	for _, owner := range l.claimants[typedHash{rrtype, HashOf(rrtype, rdata)}] {
		if owner != but {
			owners = append(owners, owner)
		}
	}
	return owners
}

// joinOwners names some owners in a message.
func joinOwners(owners []string) string {
	const most = 3
	if len(owners) <= most {
		return strings.Join(owners, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(owners[:most], ", "), len(owners)-most)
}

// with returns the rdata of the ledger with another entry of an owner; without one if that claims nothing.
func (l Ledger) with(e Entry) (all []string) {
	for owner, records := range l.records {
		if owner != e.Owner {
			all = append(all, records...)
		}
	}
	if len(e.Claims) > 0 {
		all = append(all, e.Rdata())
	}
	return all
}

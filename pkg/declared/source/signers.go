package source

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// MaxSigners is how many DS records a delegation gets by itself.
const MaxSigners = 8

// Signer is what a signed zone below another one asks it for: the DS records of its keys (RFC 4034 section 5).
type Signer struct {
	// Name is the canonical name of the zone below.
	Name string
	// Rdata are the data of the DS records in canonical form, sorted.
	Rdata []string
}

// Equal reports whether both say the same.
func (s Signer) Equal(o Signer) bool { return s.Name == o.Name && slices.Equal(s.Rdata, o.Rdata) }

// NewSigner returns the Signer of a zone with some DS records, of which it leaves out what is none: at most MaxSigners, of digest types that
// are in use, with digests of their length (RFC 4509, RFC 6605). false means that none remains.
func NewSigner(name string, records []string) (Signer, bool) {
	s := Signer{Name: name}
	key := rrset.Key{Name: name, Type: dns.TypeDS}
	for _, record := range records {
		if !isDS(record) {
			continue
		}
		if rdata, err := rrset.Parse(key, record); err == nil {
			s.Rdata = append(s.Rdata, rdata)
		}
	}
	slices.Sort(s.Rdata)
	s.Rdata = slices.Compact(s.Rdata)
	s.Rdata = s.Rdata[:min(len(s.Rdata), MaxSigners)]
	return s, len(s.Rdata) > 0
}

// digestSizes are the bytes of digests, by digest type.
var digestSizes = map[uint64]int{uint64(dns.SHA256): 32, uint64(dns.SHA384): 48}

// isDS reports whether a text is the data of a DS record that a resolver can use.
func isDS(rdata string) bool {
	f := strings.Fields(rdata)
	if len(f) != 4 {
		return false
	}
	_, errTag := strconv.ParseUint(f[0], 10, 16)
	algorithm, errAlgorithm := strconv.ParseUint(f[1], 10, 8)
	digestType, errType := strconv.ParseUint(f[2], 10, 8)
	digest, errDigest := hex.DecodeString(f[3])
	return errTag == nil && errAlgorithm == nil && algorithm > 0 && errType == nil && errDigest == nil && len(digest) == digestSizes[digestType] && len(digest) > 0
}

// withSigner adds the DS records of a signed zone below to its delegation, unless an object declares some. A delegation to a name
// server that only objects of other namespaces name gets none: the zone's own namespace says who is trusted.
func (r *zoneRevision) withSigner(n *nameNode, sets []RRset) []RRset {
	signer, asks := r.signers[n.name]
	ns := findRRset(sets, dns.TypeNS)
	if !asks || n == r.tree.apex || ns == nil || findRRset(sets, dns.TypeDS) != nil {
		return sets
	}
	for _, owners := range ns.Owners {
		if !slices.ContainsFunc(owners, func(by *Ref) bool { return by.Namespace == r.ref.Namespace }) {
			return sets
		}
	}
	key := rrset.Key{Name: n.name, Type: dns.TypeDS}
	if r.opts.MaxRecords.Excess(key, len(signer.Rdata), 0, "") != "" {
		return sets
	}
	return append(sets, r.newRRset(rrset.RRset{Key: key, TTL: r.TTL, Rdata: slices.Clone(signer.Rdata)}, r.ref))
}

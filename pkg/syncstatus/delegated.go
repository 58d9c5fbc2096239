package syncstatus

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Reasons of Delegated.
const (
	reasonDelegated    = "Delegated"
	reasonNotDelegated = "NotDelegated"
	reasonNameServers  = "NameServersDiffer"
	reasonGlue         = "GlueDiffers"
	reasonSigner       = "SignerDiffers"
	reasonNotSecure    = "SignerMissing"
	reasonUncomparable = "ContentUnknown"
)

// delegatedBy compares what the parent has of the zone with the zone, as their newest primaries hold them: the delegation and
// its glue (RFC 1034 section 4.2.2) and the signer (RFC 4035 section 2.4).
func (ev *Evaluation) delegatedBy(parent *Evaluation) status.Verdict {
	zone, above := ev.newestContent(), parent.newestContent()
	name, from := ev.ZoneName(), parent.shortName()
	switch {
	case zone == nil:
		return status.Unknown(reasonUncomparable, "no server of the zone has content to compare")
	case above == nil:
		return status.Unknown(reasonUncomparable, "no server of the parent zone "+from+" has content to compare")
	}
	apex := rrset.Key{Name: name, Type: dns.TypeNS}
	own, _ := zone.Get(apex)
	theirs, found := above.Get(apex)
	switch {
	case !found:
		return status.False(reasonNotDelegated, fmt.Sprintf("%s has no NS records for %s: resolvers do not find the zone; add an NSRecord there", from, name))
	case !slices.Equal(own.Rdata, theirs.Rdata):
		return status.False(reasonNameServers, fmt.Sprintf("%s delegates to %s, the zone has %s", from, strings.Join(theirs.Rdata, ", "), strings.Join(own.Rdata, ", ")))
	}
	for _, host := range own.Rdata {
		for _, rrtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
			k := rrset.Key{Name: host, Type: rrtype}
			have, _ := zone.Get(k)
			glue, _ := above.Get(k)
			if rrset.IsSubdomain(host, name) && !slices.Equal(have.Rdata, glue.Rdata) {
				return status.False(reasonGlue, fmt.Sprintf("for %s, %s has %s, the zone has %s", k, from, valuesText(glue), valuesText(have)))
			}
		}
	}
	return signerVerdict(zone, above, name, from, own)
}

func valuesText(s rrset.RRset) string {
	if len(s.Rdata) == 0 {
		return "none"
	}
	return strings.Join(s.Rdata, ", ")
}

// signerVerdict compares the DS records of the parent with the keys of the zone.
func signerVerdict(zone, above *observe.Mirror, name, from string, servers rrset.RRset) status.Verdict {
	keys, signed := zone.Get(rrset.Key{Name: name, Type: dns.TypeDNSKEY})
	ds, secure := above.Get(rrset.Key{Name: name, Type: dns.TypeDS})
	switch {
	case signed && !secure:
		return status.False(reasonNotSecure, fmt.Sprintf("the zone is signed, but %s has no DS records for it: resolvers do not validate its answers", from))
	case secure && !slices.ContainsFunc(ds.Rdata, func(rdata string) bool { return matchesKey(ds.Key, rdata, keys) }):
		return status.False(reasonSigner, fmt.Sprintf("%s has DS records for %s, and none is of a key of the zone: validating resolvers reject its answers", from, name))
	}
	return status.True(reasonDelegated, fmt.Sprintf("%s delegates to %s, as the zone has it", from, strings.Join(servers.Rdata, ", ")))
}

// matchesKey reports whether a DS record is the digest of one of some keys.
func matchesKey(k rrset.Key, rdata string, keys rrset.RRset) bool {
	rr, err := rrset.ToRR(k, 0, rdata)
	ds, ok := rr.(*dns.DS)
	if err != nil || !ok {
		return false
	}
	return slices.ContainsFunc(keys.Rdata, func(key string) bool {
		rr, err := rrset.ToRR(keys.Key, 0, key)
		dnskey, ok := rr.(*dns.DNSKEY)
		if err != nil || !ok || dnskey.KeyTag() != ds.KeyTag {
			return false
		}
		digest := dnskey.ToDS(ds.DigestType)
		return digest != nil && strings.EqualFold(digest.Digest, ds.Digest)
	})
}

// ofApex are the servers whose apex is the zone object's; all if none is.
func (ev *Evaluation) ofApex() []serverAnswer {
	own := slices.DeleteFunc(slices.Clone(ev.servers), func(e serverAnswer) bool { return e.shared != "" })
	if len(own) == 0 {
		return ev.servers
	}
	return own
}

// newestContent is the content of the first server that has the newest serial; nil if none has.
func (ev *Evaluation) newestContent() *observe.Mirror {
	for _, e := range ev.ofApex() {
		if e.mirror != nil && !e.mirror.IsPartial() && e.lag == 0 {
			return e.mirror
		}
	}
	return nil
}

package zoneimport

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// ownershipMark is how external-dns begins a text that says who owns a name.
const ownershipMark = `"heritage=external-dns,`

// ownedTypes are the types that external-dns publishes, as it writes them in names.
var ownedTypes = map[uint16]string{
	dns.TypeA: "a", dns.TypeAAAA: "aaaa", dns.TypeCNAME: "cname", dns.TypeNS: "ns", dns.TypeMX: "mx", dns.TypeSRV: "srv", dns.TypePTR: "ptr",
	dns.TypeNAPTR: "naptr", dns.TypeTXT: "txt",
}

// ownershipNames are external-dns' flags about the names of its TXT records: --txt-prefix, --txt-suffix and --txt-wildcard-replacement.
type ownershipNames struct{ prefix, suffix, wildcard string }

// typeInAffix stands for the type in a prefix or suffix.
const typeInAffix = "%{record_type}"

// nameOf returns where external-dns has the TXT record for an RRset: around the first label, "a-www" for an A. rrtype is empty for the form
// that releases before 0.12 wrote, which stood for all types.
func (n ownershipNames) nameOf(host, rrtype string) string {
	first, rest, _ := strings.Cut(host, ".")
	if first == "*" && n.wildcard != "" {
		first = n.wildcard
	}
	if rrtype != "" && !strings.Contains(n.prefix+n.suffix, typeInAffix) {
		first = rrtype + "-" + first
	}
	return strings.ToLower(strings.ReplaceAll(n.prefix, typeInAffix, rrtype) + first + strings.ReplaceAll(n.suffix, typeInAffix, rrtype) + "." + rest)
}

// index returns what the texts of each name may own: of the form that has the type in its name, and of the older one. Nobody but the zone itself
// owns its name servers.
func (n ownershipNames) index(zone string, sets []placedSet) (byType map[string]rrset.Key, byName map[string][]rrset.Key) {
	byType, byName = map[string]rrset.Key{}, map[string][]rrset.Key{}
	for _, set := range sets {
		if rrtype, can := ownedTypes[set.Type]; can && (set.Type != dns.TypeNS || set.Name != zone) {
			byType[n.nameOf(set.Name, rrtype)] = set.Key
			if set.Type != dns.TypeTXT {
				older := n.nameOf(set.Name, "")
				byName[older] = append(byName[older], set.Key)
			}
		}
	}
	return byType, byName
}

// ofOlderForm returns what a text without a type owns of an owner's RRsets: addresses and aliases, which is what releases that wrote such
// texts published. Of other types it may own those only that stand alone.
func ofOlderForm(keys []rrset.Key) (owned, unsure []rrset.Key) {
	for _, key := range keys {
		if key.Type == dns.TypeA || key.Type == dns.TypeAAAA || key.Type == dns.TypeCNAME {
			owned = append(owned, key)
		} else {
			unsure = append(unsure, key)
		}
	}
	if len(owned) == 0 && len(unsure) == 1 {
		return unsure, nil
	}
	return owned, unsure
}

// withoutExternalDNS takes out of a zone what external-dns has published, and the TXT records by which it knows that. It returns how many
// RRsets and how many TXT records these are. A TXT record that belongs to none is reported: what it stands for may have stayed, and would
// outlive its Service or Ingress.
func (c *zoneContent) withoutExternalDNS(names ownershipNames, report *differenceReport) (published, ownership int) {
	byType, byName := names.index(c.name, c.sets)
	owned, unsure := map[rrset.Key]bool{}, map[rrset.Key]bool{}
	for i := range c.sets {
		set := &c.sets[i]
		rest := slices.DeleteFunc(slices.Clone(set.Rdata), isOwnership)
		switch about, found := byType[set.Name]; {
		case set.Type != dns.TypeTXT:
			continue
		case len(rest) == len(set.Rdata):
			if found && about.Type != dns.TypeTXT && slices.ContainsFunc(set.Rdata, maybeEncrypted) {
				report.keep(set.place, set.Key, "it has the name of the text by which external-dns owns %s, and may be that, encrypted (--txt-encrypt-enabled): "+
					"if it is, remove both from the manifests", about)
			}
			continue
		}
		keys, others := ofOlderForm(byName[set.Name])
		if key, found := byType[set.Name]; found {
			keys, others = []rrset.Key{key}, nil
		}
		for _, key := range keys {
			owned[key] = true
		}
		for _, key := range others {
			unsure[key] = true
		}
		if len(keys)+len(others) == 0 {
			report.leaveOut(set.place, set.Key, "external-dns owns something by this text, but nothing has the name that it stands for: give the --txt-prefix, --txt-suffix "+
				"and --txt-wildcard-replacement of your external-dns, or check that nothing of it is imported")
		}
		ownership += len(set.Rdata) - len(rest)
		set.Rdata = rest
	}
	c.sets = slices.DeleteFunc(c.sets, func(set placedSet) bool {
		if unsure[set.Key] && !owned[set.Key] {
			report.keep(set.place, set.Key, "external-dns owns something of this name by a text that names no type: if it owns this, remove it from the manifests")
		}
		if owned[set.Key] && len(set.Rdata) > 0 {
			published++
		}
		return owned[set.Key] || len(set.Rdata) == 0
	})
	return published, ownership
}

// isOwnership reports whether a text says that external-dns owns a name. Some providers have kept its quotes as a part of it.
func isOwnership(text string) bool {
	return strings.HasPrefix(text, ownershipMark) || strings.HasPrefix(text, `"\"`+strings.TrimPrefix(ownershipMark, `"`))
}

// maybeEncrypted reports whether a text can be an encrypted one of external-dns: base64 of a nonce of 12 bytes, a tag of 16 and a text.
func maybeEncrypted(text string) bool {
	raw, err := base64.StdEncoding.DecodeString(strings.Trim(text, `"`))
	return err == nil && len(raw) > 12+16
}

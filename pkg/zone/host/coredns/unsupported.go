package coredns

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// recordTypes are the types that CoreDNS derives from a value. Where two of them do not get along at a name, the one that comes first
// stays.
var recordTypes = []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeCNAME, dns.TypePTR, dns.TypeMX, dns.TypeSRV}

// Unsupported has the RRsets of a zone that CoreDNS cannot hold as they are, alone or beside the others, and why.
func Unsupported(zone string, want plan.Content) map[rrset.Key]string {
	reasons, _ := layout{prefix: defaultPrefix, zone: zone}.unsupported(want)
	return reasons
}

// unsupported says why CoreDNS cannot hold RRsets of a zone, and lists those that it can hold together. The NS RRset of the apex is
// neither: CoreDNS makes it.
func (l layout) unsupported(want plan.Content) (map[rrset.Key]string, names) {
	reasons, held, doubtful := map[rrset.Key]string{}, make(names, want.Len()), map[string]bool{}
	all := slices.AppendSeq(make([]rrset.RRset, 0, want.Len()), want.All())
	alone := make([]string, len(all))
	parallel.ForRange(len(all), func(i int) { alone[i] = l.unsupportedAlone(all[i]) })
	for i, set := range all {
		switch reason := alone[i]; {
		case set.Key == rrset.Key{Name: l.zone, Type: dns.TypeNS}:
		case reason != "":
			reasons[set.Key] = reason
		default:
			held[set.Name] = append(held[set.Name], set)
			if mayDisturb(set.Type) {
				doubtful[set.Name] = true
			}
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(doubtful), rrset.CompareNames) { // a name before those below it
		held[name] = l.dropDisturbing(held, name, reasons)
	}
	return reasons, held
}

// mayDisturb is true for types whose RRsets may change the answers for others.
func mayDisturb(rrtype uint16) bool {
	return rrtype == dns.TypeMX || rrtype == dns.TypeSRV || isExact(rrtype)
}

// dropDisturbing leaves the RRsets of a name that do not change the answers for others.
func (l layout) dropDisturbing(held names, name string, reasons map[rrset.Key]string) []rrset.RRset {
	sets := slices.SortedFunc(slices.Values(held[name]), func(a, b rrset.RRset) int {
		return slices.Index(recordTypes, a.Type) - slices.Index(recordTypes, b.Type)
	})
	var kept []rrset.RRset
	for _, set := range sets {
		if reason := l.disturbs(held, kept, set); reason != "" {
			reasons[set.Key] = reason
			continue
		}
		kept = append(kept, set)
	}
	return kept
}

// disturbs says how an RRset would change the answers for others of its name, or for an alias above it.
func (l layout) disturbs(held names, kept []rrset.RRset, set rrset.RRset) string {
	if _, alias := held.get(rrset.ParentName(set.Name), dns.TypeCNAME); alias && isExact(set.Type) {
		return fmt.Sprintf("CoreDNS with etcd cannot hold a %s record directly below a CNAME record; use another name", dns.Type(set.Type))
	}
	if set.Type != dns.TypeMX && set.Type != dns.TypeSRV {
		return ""
	}
	for _, other := range kept {
		switch {
		case other.Type == dns.TypePTR, l.placeOf(other.Key) != set.Name:
		case set.Type == dns.TypeSRV && other.Type != dns.TypeTXT:
			return fmt.Sprintf("CoreDNS with etcd cannot hold an SRV record beside %s records of the same name; use another name for one of them",
				dns.Type(other.Type))
		case !areBelow(targetsOf(set), set.Name):
			return fmt.Sprintf("CoreDNS with etcd cannot hold an %s record beside %s records of the same name unless its target is that name or a name below it: "+
				"it would add an alias to their answers; use another name for one of them", dns.Type(set.Type), dns.Type(other.Type))
		}
	}
	return ""
}

func targetsOf(set rrset.RRset) (targets []string) {
	for _, rdata := range set.Rdata {
		targets = append(targets, rdata[strings.LastIndexByte(rdata, ' ')+1:])
	}
	return targets
}

func areBelow(targets []string, name string) bool {
	return !slices.ContainsFunc(targets, func(target string) bool { return !rrset.IsSubdomain(target, name) })
}

// unsupportedAlone says why CoreDNS cannot hold an RRset, whatever else there is.
func (l layout) unsupportedAlone(set rrset.RRset) string {
	if reason := l.unsupportedName(set.Key); reason != "" {
		return reason
	}
	rrtype := dns.Type(set.Type)
	switch {
	case set.Type == dns.TypeNS:
		return "CoreDNS with etcd cannot delegate a name (NS record); serve the names below it from this zone"
	case !slices.Contains(recordTypes, set.Type):
		return fmt.Sprintf("CoreDNS with etcd cannot hold %s records; it knows A, AAAA, CNAME, MX, PTR, SRV and TXT", rrtype)
	case set.TTL == 0:
		return fmt.Sprintf("CoreDNS with etcd cannot hold a %s record with TTL 0: it would answer with 300; set a TTL of at least 1", rrtype)
	}
	return l.unsupportedData(set)
}

func (l layout) unsupportedName(key rrset.Key) string {
	for label := range strings.SplitSeq(key.Name, ".") {
		if label == "*" || label == "any" {
			return fmt.Sprintf("CoreDNS with etcd has no wildcards, and takes %q in a name for one; declare each name", label)
		}
	}
	if strings.ContainsFunc(key.Name, isUnusual) {
		return fmt.Sprintf("CoreDNS with etcd cannot hold the name %s: use only letters, digits, hyphens and underscores", key.Name)
	}
	for _, taken := range []string{apexLabels, nameServerLabels} {
		if rest, below := strings.CutSuffix(key.Name, l.zone); below && (rest == taken || strings.HasSuffix(rest, "."+taken)) {
			return fmt.Sprintf("CoreDNS with etcd uses the name %s itself; use another name", taken+l.zone)
		}
	}
	if key.Name == l.zone && isExact(key.Type) {
		return fmt.Sprintf("CoreDNS with etcd cannot hold a %s record of the zone's own name; use a name below it", dns.Type(key.Type))
	}
	return ""
}

func isUnusual(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.'
}

func (l layout) unsupportedData(set rrset.RRset) string {
	for i, rdata := range set.Rdata {
		switch set.Type {
		case dns.TypeAAAA:
			if isMappedAddress(rdata) {
				return fmt.Sprintf("CoreDNS with etcd takes the AAAA record %s for an A record; declare an A record", rdata)
			}
		case dns.TypeTXT:
			if text := textOf(set, i); text == "" || rdataOfText(text) != rdata {
				return "CoreDNS with etcd cannot hold this TXT record: it needs one string of 1 to 254 characters, or strings of exactly 255 characters " +
					"before a last one, in each of which an escaped character counts as written; divide the text so"
			}
		case dns.TypeMX, dns.TypeSRV:
			if strings.HasPrefix(rdata, "0 ") {
				return fmt.Sprintf("CoreDNS with etcd cannot hold the priority 0 of an %s record: it would answer with 10; use 1 or more", dns.Type(set.Type))
			}
		case dns.TypeCNAME:
			if rrset.IsSubdomain(rdata, set.Name) {
				return "CoreDNS with etcd cannot hold a CNAME record with a target below its own name; use another target"
			}
		}
	}
	switch {
	case set.Type == dns.TypePTR && len(set.Rdata) > 1:
		return "CoreDNS with etcd holds one PTR record of a name; declare one target"
	case set.Type == dns.TypeSRV && !canHoldWeights(set):
		return "CoreDNS with etcd answers with weights of SRV records that make up 100 for each priority; use 100 for a single target, 50 and 50 for two"
	}
	return ""
}

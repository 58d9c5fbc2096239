package ledger

import (
	"errors"
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

const (
	// label is the label of all ledgers, below the zone's name.
	label = "_lockstep"
	// anyLabel stands for the label of a wildcard: a ledger at a wildcard would answer for the ledgers of other names.
	anyLabel = label + "-any"
	// TTL of a ledger.
	TTL = 60
)

// errReserved is a name that cannot have a ledger because it might be one.
var errReserved = errors.New("names with a label that begins with " + label + " are kept for ledgers")

// RecordName returns where the ledger of an owner name of a zone is. Both names are canonical.
func RecordName(zone, name string) (string, error) {
	below, ok := below(zone, name)
	switch {
	case !ok:
		return "", fmt.Errorf("%s is not in zone %s", name, zone)
	case isReserved(below):
		return "", errReserved
	}
	record := replaceLabels(below, "*", anyLabel) + label + "." + strings.TrimPrefix(zone, ".")
	if _, fits := dns.IsDomainName(record); !fits { // RFC 1035 section 3.1
		return "", fmt.Errorf("the name is too long: its ledger would be at %s, and a name has at most 255 octets", record)
	}
	return record, nil
}

// DataName returns the owner name that has its ledger at a name; not ok if none has.
func DataName(zone, record string) (string, bool) {
	ledgers := label + "." + strings.TrimPrefix(zone, ".")
	below, ok := below(ledgers, record)
	below = replaceLabels(below, anyLabel, "*")
	if !ok || isReserved(below) {
		return "", false
	}
	return below + zone, true
}

// IsBelow reports whether a name is where ledgers are.
func IsBelow(zone, name string) bool {
	_, ok := below(label+"."+strings.TrimPrefix(zone, "."), name)
	return ok
}

// below returns the labels of a name before those of an ancestor, each with its dot; none for the ancestor itself.
func below(ancestor, name string) (labels string, ok bool) {
	if !rrset.IsSubdomain(name, ancestor) {
		return "", false
	}
	if ancestor == "." && name != "." {
		return name, true
	}
	return strings.TrimSuffix(name, ancestor), true
}

func isReserved(labels string) bool {
	return strings.HasPrefix(labels, label) || strings.Contains(labels, "."+label)
}

// replaceLabels replaces whole labels of a name. An escaped dot or asterisk is part of a label.
func replaceLabels(labels, old, replacement string) string {
	if !strings.Contains(labels, old) {
		return labels
	}
	all := strings.SplitAfter(labels, ".")
	for i, l := range all {
		escaped := i > 0 && strings.HasSuffix(all[i-1], `\.`)
		if l == old+"." && !escaped {
			all[i] = replacement + "."
		}
	}
	return strings.Join(all, "")
}

package zoneimport

import (
	"net/netip"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What the fields of the record kinds take, by the rules in their definitions. Where these here are narrower, a DNSEndpoint
// takes the data; TestRecordFields holds the two against each other.
var (
	ownerField = regexp.MustCompile(`^([*]|[A-Za-z0-9_/-]{1,63})([.][A-Za-z0-9_/-]{1,63})*$`)
	hostField  = regexp.MustCompile(`^[A-Za-z0-9_/-]{1,63}([.][A-Za-z0-9_/-]{1,63})*[.]$`)
	zoneField  = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_/-]{0,61}[a-z0-9_])?([.][a-z0-9_]([a-z0-9_/-]{0,61}[a-z0-9_])?)*$`)
	mailField  = regexp.MustCompile(`^(([A-Za-z0-9_/+-]|\\[^@]){1,127}[.])*([A-Za-z0-9_/+-]|\\[^@]){1,127}[.]$`)
)

// Limits of texts.
const (
	maxOwnerField = 253
	maxTexts      = 256
	maxText       = 60000
	maxCAAValue   = 1024
)

// fitsOwner reports whether spec.name takes an owner name that is relative to its zone.
func fitsOwner(name string) bool {
	return name == "@" || (len(name) <= maxOwnerField && ownerField.MatchString(name))
}

// fitsHost reports whether fields for host names take a complete name.
func fitsHost(name string) bool {
	if _, err := netip.ParseAddr(strings.TrimSuffix(name, ".")); err == nil {
		return false
	}
	return hostField.MatchString(name)
}

// fitsAddress reports whether fields for addresses take one: Kubernetes has no IPv4 addresses in the form of IPv6.
func fitsAddress(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && !a.Is4In6()
}

// fitsText reports whether a string of bytes can be a string of Kubernetes without loss, and be read by people.
func fitsText(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

// fitsTexts reports whether spec.text of a TXTRecord takes the strings of one record.
func fitsTexts(texts []string) bool {
	size := 0
	for _, s := range texts {
		if size += len(s); !fitsText(s) {
			return false
		}
	}
	return len(texts) <= maxTexts && size <= maxText
}

// fitsCAA reports whether a CAARecord takes a property.
func fitsCAA(tag, value string) bool {
	if !fitsText(value) || len(value) > maxCAAValue {
		return false
	}
	return tag != "iodef" || iodefURL.MatchString(value)
}

var iodefURL = regexp.MustCompile(`^(mailto:|https?://).+`)

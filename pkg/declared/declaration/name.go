package declaration

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// OwnerName is the canonical owner name of a record in a zone. "@" is the zone itself; a name without a final dot is relative to the
// zone; a name with one is complete and has to be inside the zone. A relative name that ends in the zone's own name is an error, because
// it would repeat that name. Only the first label may be "*" (RFC 4592).
func OwnerName(recordName, zone string) (string, error) {
	origin, err := rrset.CanonicalName(zone)
	if err != nil {
		return "", fmt.Errorf("zone name: %w", err)
	}
	owner, err := resolveName(recordName, origin)
	if repeated := (*repeatedZoneError)(nil); errors.As(err, &repeated) {
		return "", fmt.Errorf("%s; write %q", repeated.what(), repeated.short)
	}
	if err != nil {
		return "", err
	}
	if !rrset.IsSubdomain(owner, origin) {
		return "", fmt.Errorf("%q is outside the zone %s; a record belongs to a zone that its name ends in", recordName, origin)
	}
	if err := checkWildcard(recordName, owner); err != nil {
		return "", err
	}
	return owner, nil
}

// checkWildcard refuses a "*" anywhere but as the first label.
func checkWildcard(written, owner string) error {
	if i := strings.LastIndexByte(owner, '*'); i > 0 || (i == 0 && !strings.HasPrefix(owner, "*.")) {
		return fmt.Errorf(`%q has a "*" that is not the whole first label; a wildcard is written "*" or "*.name" (RFC 4592)`, written)
	}
	return nil
}

// resolveName reads a name as a zone file does: "@" is the origin, a final dot makes a name complete, all else is relative
// to the origin.
func resolveName(name, origin string) (string, error) {
	switch {
	case name == "":
		return "", errors.New(`the name is empty; "@" is the zone itself`)
	case name == "@":
		return origin, nil
	case isAbsolute(name):
		return rrset.CanonicalName(name)
	case origin == ".":
		return rrset.CanonicalName(name + ".")
	}
	full, err := rrset.CanonicalName(name + "." + origin)
	if err != nil {
		if _, own := rrset.CanonicalName(name); own != nil {
			err = own // Quotes what the user wrote.
		}
		return "", err
	}
	if own := full[:len(full)-len(origin)]; rrset.IsSubdomain(own, origin) {
		short := "@"
		if own != origin {
			short = own[:len(own)-len(origin)-1]
		}
		return "", &repeatedZoneError{name, full, short, own}
	}
	return full, nil
}

// repeatedZoneError says that a relative name ends in the zone's own: it would be full, and should be short, or own where names may be complete.
type repeatedZoneError struct{ name, full, short, own string }

func (e *repeatedZoneError) what() string {
	return fmt.Sprintf("%q repeats the zone's name and would become %s", e.name, e.full)
}

func (e *repeatedZoneError) Error() string {
	return fmt.Sprintf("%s; write %q, or %q with the final dot", e.what(), e.short, e.own)
}

// spellName spells a canonical name of resolveName as it is written.
func spellName(name, canonical string) string {
	if name == "@" || strings.ToLower(name) == name {
		return canonical
	}
	if isAbsolute(name) {
		spelled, err := rrset.SpelledName(name)
		if err != nil || len(spelled) != len(canonical) {
			return canonical
		}
		return spelled
	}
	own, err := rrset.SpelledName(name + ".")
	if err != nil || len(own) > len(canonical) {
		return canonical
	}
	return own + canonical[len(own):]
}

// isAbsolute looks for a dot at the end that is not escaped.
func isAbsolute(name string) bool {
	if !strings.HasSuffix(name, ".") {
		return false
	}
	name = name[:len(name)-1]
	return (len(name)-len(strings.TrimRight(name, `\`)))%2 == 0
}

// HostName is the canonical form of the name of a host in a zone's object, or in one of its records.
func HostName(name, zone string) (string, error) {
	origin, err := rrset.CanonicalName(zone)
	if err != nil {
		return "", fmt.Errorf("zone name: %w", err)
	}
	return resolveName(name, origin)
}

// resolveHost brings a host name in a field of an object into canonical form; spelled is the name as it is written. The note is a remark
// for the user when the name may not be what was meant.
func resolveHost(field, name, origin string) (full, spelled, note string, err error) {
	if addr, err := netip.ParseAddr(strings.TrimSuffix(name, ".")); err == nil {
		return "", "", "", fmt.Errorf("%s: %q is an address; name a host here and publish its address with an %s", field, name, addressKind(addr))
	}
	full, err = resolveName(name, origin)
	if err != nil {
		return "", "", "", fmt.Errorf("%s: %w", field, err)
	}
	if !isAbsolute(name) && strings.Contains(name, ".") {
		note = fmt.Sprintf("%s %q has no final dot, so it is relative to the zone: %s", field, name, full)
	}
	return full, spellName(name, full), note, nil
}

func addressKind(a netip.Addr) string {
	if a.Is4() {
		return "ARecord"
	}
	return "AAAARecord"
}

// DNSName is a zone's DNS name in lower case and without the final dot: what zones of the same name have in common, however it is
// written.
func DNSName(zone *v1beta1.DNSZone) string {
	return strings.ToLower(strings.TrimSuffix(zone.Spec.ZoneName, "."))
}

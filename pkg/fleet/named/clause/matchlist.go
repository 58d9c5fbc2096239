package clause

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,62}$`)

// IsIdentifier reports whether a text may name a list or a policy of a user's own.
func IsIdentifier(text string) bool { return identifier.MatchString(text) }

// keyName has the characters that the name of a TSIG key may have in a configuration.
var keyName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./:-]*$`)

// IsKeyName reports whether a text is a TSIG key's name: a domain name, with or without the final dot, that can be sent to a server and
// stands in a configuration as it is.
func IsKeyName(text string) bool {
	_, ok := dns.IsDomainName(text)
	return ok && len(text) <= 253 && keyName.MatchString(text)
}

// IsBuiltinACL reports whether named or we define a list of that name, so that nobody else does.
func IsBuiltinACL(name string) bool {
	switch name {
	case "any", "none", "localhost", "localnets", KeyACL(KeyUpdate), KeyACL(KeyTransfer):
		return true
	}
	return false
}

// MatchList renders an address match list, each element followed by "; ". Elements are addresses, prefixes, names of
// ACLs ("NAME" or "acl:NAME") that known accepts, "key NAME", each with an optional "!" before it. Anything else is refused, so that no value
// of a field can close the list and go on with statements of its own. The error names the element of the field.
func MatchList(field string, elements []string, known func(acl string) bool) (string, error) {
	var b strings.Builder
	var problems []error
	for i, element := range elements {
		text, err := matchElement(element, known)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s[%d]: %w", field, i, err))
			continue
		}
		b.WriteString(text)
		b.WriteString("; ")
	}
	return b.String(), errors.Join(problems...)
}

func matchElement(element string, known func(acl string) bool) (string, error) {
	element = strings.TrimSuffix(strings.TrimSpace(element), ";")
	rest, negated := strings.CutPrefix(element, "!")
	rest = strings.TrimPrefix(strings.TrimSpace(rest), "acl:")
	not := ""
	if negated {
		not = "! "
	}
	if fields := strings.Fields(rest); len(fields) == 2 && fields[0] == "key" {
		name := strings.Trim(fields[1], `"`)
		if !IsKeyName(name) {
			return "", fmt.Errorf("%q is not the name of a key", name)
		}
		return fmt.Sprintf("%skey %q", not, name), nil
	}
	if addr, err := netip.ParseAddr(rest); err == nil && addr.Zone() == "" {
		return not + addr.String(), nil
	}
	if prefix, err := netip.ParsePrefix(rest); err == nil {
		return not + prefix.Masked().String(), nil
	}
	if IsBuiltinACL(rest) {
		return not + rest, nil
	}
	if IsIdentifier(rest) && known(rest) {
		return fmt.Sprintf("%s%q", not, rest), nil
	}
	return "", fmt.Errorf("%q is neither an address, a prefix, a key nor a known ACL", element)
}

// Port is where a server listens that is given without a port.
const Port = 53

// ParseServer reads "IP", "IP:port", "[IPv6]:port" or "IP port N"; the port is 0 when it is not given.
func ParseServer(entry string) (netip.AddrPort, error) {
	entry = strings.TrimSpace(entry)
	if addr, err := netip.ParseAddr(entry); err == nil && addr.Zone() == "" {
		return netip.AddrPortFrom(addr, 0), nil
	}
	if server, err := netip.ParseAddrPort(entry); err == nil && server.Addr().Zone() == "" {
		return server, nil
	}
	if fields := strings.Fields(entry); len(fields) == 3 && fields[1] == "port" {
		addr, err := netip.ParseAddr(fields[0])
		port, portErr := strconv.ParseUint(fields[2], 10, 16)
		if err == nil && portErr == nil && addr.Zone() == "" {
			return netip.AddrPortFrom(addr, uint16(port)), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("%q is not an address with an optional port", entry)
}

// Unsigned ends an entry of an also-notify list whose server gets NOTIFY without a signature.
const Unsigned = " unsigned"

// ParseNotified reads a server of an also-notify list as ParseServer does, perhaps followed by "key NAME", the key that NOTIFY to this
// server is signed with, or by Unsigned. Otherwise it is signed with the key that is given.
func ParseNotified(entry, otherwise string) (server netip.AddrPort, key string, err error) {
	address, key, signed := strings.Cut(entry, " key ")
	if signed && !IsKeyName(key) {
		return server, "", fmt.Errorf("%q is not the name of a key", key)
	}
	address, unsigned := strings.CutSuffix(address, Unsigned)
	if server, err = ParseServer(address); !signed && !unsigned {
		key = otherwise
	}
	return server, key, err
}

// ServerClause renders a server of a primaries, also-notify or forwarders list, followed by "; ". The port is left out
// when it is 0 or standard, the key when it is empty.
func ServerClause(server netip.AddrPort, standard uint16, key string) string {
	text := server.Addr().String()
	if server.Port() != 0 && server.Port() != standard {
		text += fmt.Sprintf(" port %d", server.Port())
	}
	if key != "" {
		text += fmt.Sprintf(" key %q", key)
	}
	return text + "; "
}

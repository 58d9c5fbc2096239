package outbound

import (
	"errors"
	"fmt"
	"net/netip"
)

// Forbidden describes the addresses that Permits refuses, for messages.
const Forbidden = "loopback, link-local, multicast, unspecified and metadata addresses are not allowed, nor IPv6 forms of such IPv4 addresses"

// forbiddenWithNetworks is Forbidden where NetworksFlag is set.
const forbiddenWithNetworks = Forbidden + ", nor networks of " + NetworksFlag

// metadata are the services of clouds that tell any program on a node about that node, at addresses that look like any other.
var metadata = map[netip.Addr]bool{
	netip.MustParseAddr("fd00:ec2::254"):   true, // Amazon
	netip.MustParseAddr("fd20:ce::254"):    true, // Google
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle
	netip.MustParseAddr("168.63.129.16"):   true, // Azure
}

// embeddings are the prefixes whose addresses contain an IPv4 address, with the places of its four bytes.
var embeddings = []struct {
	prefix netip.Prefix
	bytes  [][4]int
}{
	{netip.MustParsePrefix("::/96"), [][4]int{{12, 13, 14, 15}}},                                                          // IPv4-compatible, RFC 4291 section 2.5.5.1
	{netip.MustParsePrefix("2002::/16"), [][4]int{{2, 3, 4, 5}}},                                                          // 6to4, RFC 3056
	{netip.MustParsePrefix("64:ff9b::/96"), [][4]int{{12, 13, 14, 15}}},                                                   // NAT64, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}}}, // NAT64 of any length, RFC 8215
}

var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

// Permits decides whether objects of tenants may name an address. Private addresses are permitted: DNS servers have them.
func Permits(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.Zone() != "" || metadata[a] || thisNetwork.Contains(a) {
		return false
	}
	for _, inside := range embeddedIn(a) {
		if !thisNetwork.Contains(inside) && !Permits(inside) { // A prefix of another length puts zeros there.
			return false
		}
	}
	return true
}

// embeddedIn are the IPv4 addresses that an IPv6 address may contain.
func embeddedIn(a netip.Addr) (inside []netip.Addr) {
	for _, e := range embeddings {
		if !e.prefix.Contains(a) {
			continue
		}
		raw := a.As16()
		for _, at := range e.bytes {
			inside = append(inside, netip.AddrFrom4([4]byte{raw[at[0]], raw[at[1]], raw[at[2]], raw[at[3]]}))
		}
	}
	return inside
}

// ErrForbidden is the use of an address that nobody may name, or that is in forbidden networks.
var ErrForbidden = errors.New("address not allowed")

// forbiddenError says which address, and which are forbidden.
type forbiddenError struct {
	netip.Addr
	rule string
}

func (e forbiddenError) Error() string {
	return fmt.Sprintf("the address %s may not be used: %s", e.Addr, e.rule)
}

// Is implements errors.Is.
func (forbiddenError) Is(target error) bool { return target == ErrForbidden }

package rrset

import (
	"fmt"
	"net/netip"

	"github.com/miekg/dns"
)

// Addresses are canonical in the form of RFC 5952.
var (
	aCodec = rdataCodec{
		parse: func(s string) (string, error) { return canonicalAddress(s, netip.Addr.Is4, "IPv4", "192.0.2.1") },
		build: func(h dns.RR_Header, s string) (dns.RR, error) {
			a, err := parseAddress(s, netip.Addr.Is4, "IPv4", "192.0.2.1")
			return &dns.A{Hdr: h, A: a.AsSlice()}, err
		},
		text: textOf(func(a *dns.A) (string, bool) {
			addr, ok := netip.AddrFromSlice(a.A)
			return addr.Unmap().String(), ok
		}),
	}
	aaaaCodec = rdataCodec{
		parse: func(s string) (string, error) { return canonicalAddress(s, netip.Addr.Is6, "IPv6", "2001:db8::1") },
		build: func(h dns.RR_Header, s string) (dns.RR, error) {
			a, err := parseAddress(s, netip.Addr.Is6, "IPv6", "2001:db8::1")
			return &dns.AAAA{Hdr: h, AAAA: a.AsSlice()}, err
		},
		text: textOf(func(a *dns.AAAA) (string, bool) {
			addr, ok := netip.AddrFromSlice(a.AAAA)
			return addr.String(), ok
		}),
	}
)

func canonicalAddress(s string, family func(netip.Addr) bool, name, example string) (string, error) {
	a, err := parseAddress(s, family, name, example)
	if err != nil {
		return "", err
	}
	return a.String(), nil
}

func parseAddress(s string, family func(netip.Addr) bool, name, example string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil || a.Zone() != "":
		return netip.Addr{}, fmt.Errorf("not an %s address, such as %s", name, example)
	case !family(a):
		return netip.Addr{}, fmt.Errorf("an address of the other family; %s is needed here, such as %s", name, example)
	}
	return a, nil
}

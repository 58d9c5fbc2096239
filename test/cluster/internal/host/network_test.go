package host

import (
	"net/netip"
	"testing"
)

func TestNetworkOverlaps(t *testing.T) {
	n := Network{Node: netip.MustParsePrefix("10.244.0.1/24"), Services: netip.MustParsePrefix("10.96.0.0/16")}
	cases := map[string]bool{
		"192.0.2.2/24":   false,
		"10.244.1.1/24":  false,
		"10.244.0.1/24":  true,
		"10.244.3.1/16":  true,
		"10.96.12.1/24":  true,
		"fe80::1/64":     false,
		"10.0.0.1/8":     true,
		"10.244.0.77/32": true,
	}
	for used, want := range cases {
		if got := n.overlaps(netip.MustParsePrefix(used)); got != want {
			t.Errorf("overlaps(%s) = %v, want %v", used, got, want)
		}
	}
}

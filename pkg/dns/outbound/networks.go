package outbound

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// NetworksFlag is the flag that has the Networks where what tenants name may not be.
const NetworksFlag = "--forbidden-networks"

// Networks are IP networks. They implement pflag.Value: prefixes with commas between.
type Networks []netip.Prefix

// AddFlag registers NetworksFlag.
func (n *Networks) AddFlag(fs *pflag.FlagSet) {
	fs.Var(n, NetworksFlag[2:], "networks, as 10.96.0.0/12,fd00::/108, of addresses that objects of tenants may not have us connect to, besides those that nobody may; servers of instances are not concerned")
}

// Set implements pflag.Value. Each use of the flag adds networks.
func (n *Networks) Set(text string) error {
	for one := range strings.SplitSeq(text, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(one))
		if err != nil {
			return fmt.Errorf("%q is no network, such as 10.96.0.0/12", one)
		}
		if a := network.Addr(); a.Is4In6() {
			return fmt.Errorf("%s is an IPv4 network in IPv6 form, which no address is in: write it as IPv4, such as 10.96.0.0/12", network)
		}
		if network != network.Masked() {
			return fmt.Errorf("%s is an address in the network %s", network, network.Masked())
		}
		*n = append(*n, network)
	}
	return nil
}

// String implements pflag.Value.
func (n *Networks) String() string {
	texts := make([]string, len(*n))
	for i, network := range *n {
		texts[i] = network.String()
	}
	return strings.Join(texts, ",")
}

// Type implements pflag.Value.
func (*Networks) Type() string { return "networks" }

// contain reports whether an address, or an IPv4 address in it, is in one of the networks.
func (n Networks) contain(a netip.Addr) bool {
	a = a.Unmap()
	return slices.ContainsFunc(n, func(network netip.Prefix) bool {
		return network.Contains(a) || slices.ContainsFunc(embeddedIn(a), network.Contains)
	})
}

package declaration

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// readServers reads the zone's name servers: primaryNs unless it is hidden, nameServers and what nameServerIps names.
func (a *Apex) readServers(spec *v1beta1.DNSZoneSpec) error {
	var errs []error
	hidden := spec.SOARecord.HiddenPrimary
	if a.SOA.MName != "" && !hidden {
		a.Servers = []string{a.SOA.MName}
	}
	add := func(field, name string, addresses ...string) {
		server, _, _, err := resolveHost(field, name, a.Name)
		if err == nil && server == "." {
			err = fmt.Errorf(`%s: "." is the root of DNS and no host`, field)
		}
		if err == nil && hidden && server == a.SOA.MName {
			err = fmt.Errorf("%s: %s is soaRecord.primaryNs, which hiddenPrimary keeps out of the name servers: remove one of the two", field, name)
		}
		if err != nil {
			errs = append(errs, err)
			return
		}
		if !slices.Contains(a.Servers, server) {
			a.Servers = append(a.Servers, server)
		}
		for _, s := range addresses {
			addr, err := netip.ParseAddr(s)
			if err != nil || addr.Zone() != "" {
				errs = append(errs, fmt.Errorf("%s: %q is not an IP address", field, s))
				continue
			}
			a.Addresses[server] = append(a.Addresses[server], addr)
		}
	}
	for i, ns := range spec.NameServers {
		field := fmt.Sprintf("spec.nameServers[%d]", i)
		add(field+".hostname", ns.Hostname, nonEmpty(ns.IPv4Address, ns.IPv6Address)...)
		errs = append(errs, checkFamily(field+".ipv4Address", ns.IPv4Address, netip.Addr.Is4, "IPv4"),
			checkFamily(field+".ipv6Address", ns.IPv6Address, netip.Addr.Is6, "IPv6"))
	}
	for _, name := range slices.Sorted(maps.Keys(spec.NameServerIPs)) {
		add("spec.nameServerIps", name, nonEmpty(spec.NameServerIPs[name])...)
	}
	if hidden && len(spec.NameServers)+len(spec.NameServerIPs) == 0 {
		errs = append(errs, errors.New("spec.soaRecord.hiddenPrimary: the zone would have no name server: list its secondaries in spec.nameServers"))
	}
	return errors.Join(errs...)
}

func nonEmpty(values ...string) []string {
	return slices.DeleteFunc(values, func(s string) bool { return s == "" })
}

func checkFamily(field, value string, family func(netip.Addr) bool, name string) error {
	if a, err := netip.ParseAddr(value); err == nil && !family(a) {
		return fmt.Errorf("%s: %q is not an %s address", field, value, name)
	}
	return nil
}

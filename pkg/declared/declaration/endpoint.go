package declaration

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// ReadEndpoint reads an endpoint of a DNSEndpoint in a zone.
func ReadEndpoint(e *v1alpha1.DNSEndpoint, index int, zone Apex) Declared {
	endpoint := e.Spec.Endpoints[index]
	key, values, err := readEndpointData(endpoint)
	ttl, _ := endpointTTL(endpoint, zone.TTL)
	err = errors.Join(specError(e), err, endpointFields.checkApex(zone.Name, key))
	return values.declare(key, ttl, strings.TrimSuffix(endpoint.DNSName, ".")+".", err)
}

// EndpointData reads the RRset that one endpoint of a DNSEndpoint describes: its owner name and type, and its values in canonical form,
// sorted and without duplicates. Names in an endpoint are complete, with or without the final dot. What of name and type cannot be read
// is left empty. The error joins everything that is wrong with the endpoint, recordTTL included; each part begins with the name of the
// field ("targets[1]: ") and says what to write.
func EndpointData(e *v1alpha1.Endpoint) (rrset.Key, []string, error) {
	key, values, err := readEndpointData(e)
	return key, values.rdata, err
}

func readEndpointData(e *v1alpha1.Endpoint) (rrset.Key, recordValues, error) {
	name, nameErr := EndpointName(e.DNSName)
	rrtype, typeErr := endpointType(e.RecordType)
	key := rrset.Key{Name: name, Type: rrtype}
	if nameErr != nil {
		key.Name = "" // It is none.
	}
	errs := []error{nameErr, typeErr}
	if e.SetIdentifier != "" {
		errs = append(errs, fmt.Errorf("setIdentifier: %q: weighted and other routed answers are not DNS data; a zone holds one RRset for a name and type, so leave this out",
			rrset.Shorten(e.SetIdentifier)))
	}
	if _, err := endpointTTL(e, 0); err != nil {
		errs = append(errs, err)
	}
	var values recordValues
	if typeErr == nil {
		values = endpointValues(rrtype, e.Targets)
		errs = append(errs, values.err)
	}
	if nameErr == nil && values.err == nil {
		errs = append(errs, endpointFields.checkPlacement(key, values.rdata))
	}
	if err := errors.Join(errs...); err != nil {
		return key, recordValues{}, err
	}
	return key, values, nil
}

// CheckEndpointApex is why a zone cannot have what an endpoint of its own name describes.
func CheckEndpointApex(key rrset.Key, zone *v1beta1.DNSZone) error {
	return endpointFields.checkApex(DNSName(zone)+".", key)
}

// EndpointName is the canonical owner name of an endpoint. If dnsName is no DNS name, there is an error and, all the same, a name that
// ends as the written one does, by which its zone can be found.
func EndpointName(dnsName string) (string, error) {
	name, err := rrset.CanonicalName(dnsName)
	if err == nil {
		err = checkWildcard(dnsName, name)
	} else {
		name = strings.ToLower(strings.TrimSuffix(dnsName, ".")) + "."
	}
	if err != nil {
		return name, fmt.Errorf("dnsName: %w", err)
	}
	return name, nil
}

func endpointType(recordType string) (uint16, error) {
	if rrtype := rrset.DeclarableType(recordType); rrtype != 0 && recordType == strings.ToUpper(recordType) {
		return rrtype, nil
	}
	_, err := readType(recordType)
	if err == nil {
		err = fmt.Errorf("write %q, in upper case", strings.ToUpper(recordType))
	}
	return 0, fmt.Errorf("recordType: %q is not published here: %w", rrset.Shorten(recordType), err)
}

// endpointTTL is the TTL of an endpoint, or the one that applies when it sets none.
func endpointTTL(e *v1alpha1.Endpoint, otherwise uint32) (uint32, error) {
	switch ttl := e.RecordTTL; {
	case ttl == 0:
		return otherwise, nil
	case ttl < 0 || ttl > rrset.MaxTTL:
		return 0, fmt.Errorf("recordTTL: %d is not from 0 to %d seconds (RFC 2181 section 8)", ttl, rrset.MaxTTL)
	default:
		return uint32(ttl), nil
	}
}

// endpointValues reads the targets of an endpoint; its err joins what is wrong with each.
func endpointValues(rrtype uint16, targets []string) recordValues {
	d := recordValues{rrtype: rrtype, rdata: make([]string, 0, len(targets))}
	var errs []error
	for i, target := range targets {
		value, spelled, err := endpointValue(rrtype, target)
		if err != nil {
			if rest := behindHeader(rrtype, target); rest != "" {
				if _, _, unread := endpointValue(rrtype, rest); unread == nil {
					err = wholeLineError(target, rest)
				}
			}
			errs = append(errs, fmt.Errorf("targets[%d]: %w", i, err))
			continue
		}
		d.add(value, spelled)
	}
	if len(targets) == 0 {
		errs = append(errs, errors.New("targets: there is no target"))
	}
	d.err = errors.Join(errs...)
	return d.checkLimits("targets").checkSingle("targets")
}

// endpointValue reads one target in external-dns' notation, which is the presentation format of the type but for text.
func endpointValue(rrtype uint16, target string) (canonical, spelled string, err error) {
	if rrtype == dns.TypeTXT {
		canonical, err = endpointText(target)
		return canonical, canonical, err
	}
	if !rrset.HasRules(rrtype) {
		return parseTyped(rrtype, target, ".")
	}
	value, err := rrset.Parse(rrset.Key{Type: rrtype}, target)
	if err != nil {
		return "", "", err
	}
	spelled = value
	if host, named := rrset.HostOf(rrtype, value); named {
		switch addr, err := netip.ParseAddr(strings.TrimSuffix(host, ".")); {
		case err == nil:
			return "", "", fmt.Errorf("%q holds an address where a host name belongs; publish the address with recordType %s", target, addressType(addr))
		case host == "." && rrtype != dns.TypeMX && rrtype != dns.TypeSRV:
			return "", "", errors.New(`"." is the root of DNS and no host`)
		}
		spelled = spellLast(target, value, host)
	}
	return value, spelled, nil
}

// spellLast spells the host at the end of canonical rdata as the target does.
func spellLast(target, value, host string) string {
	target = strings.TrimSpace(target)
	written := target
	if value != host {
		written = target[strings.LastIndexAny(target, " \t")+1:]
	}
	if strings.HasPrefix(target, `\#`) {
		return value
	}
	if !isAbsolute(written) {
		written += "."
	}
	return strings.TrimSuffix(value, host) + spellName(written, host)
}

// endpointText reads a target that may be in quotes, as zone files have it, or is the text itself. A string of more than
// 255 bytes is split, quoted or not.
func endpointText(target string) (string, error) {
	if len(target) < 2 || target[0] != '"' || target[len(target)-1] != '"' {
		return rrset.TXT(target)
	}
	strs, err := rrset.ParseStrings(target)
	if err != nil {
		return "", err
	}
	return rrset.TXT(strs...)
}

func addressType(a netip.Addr) string {
	if a.Is4() {
		return "A"
	}
	return "AAAA"
}

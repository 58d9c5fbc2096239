package trap

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// network is how zones are called by mistake: no top-level domain is a number.
var network = regexp.MustCompile(`(^|[.])[0-9]+(/[0-9]+)?[.]$`)

// OfZone returns the traps that a zone of a canonical name is in by itself.
func OfZone(zone *v1beta1.DNSZone, name string, soa rrset.SOA) (found []Found) {
	const field = "spec.zoneName"
	switch {
	case network.MatchString(name):
		found = append(found, New(ReverseName, field, fmt.Sprintf("%s: %q is no domain, as it ends in a number; the reverse zone of 192.0.2.0/24 is called 2.0.192.in-addr.arpa", field, zone.Spec.ZoneName)))
	case (numbers.MatchString(name) || digits.MatchString(name)) && !addressNames.MatchString(name):
		found = append(found, New(ReverseName, field, fmt.Sprintf("%s: %q holds no names of addresses: those have numbers up to 255 in in-addr.arpa, and single digits in ip6.arpa, from the last to the first",
			field, zone.Spec.ZoneName)))
	}
	if soa.Expire < soa.Refresh+soa.Retry {
		found = append(found, New(SOATimers, "spec.soaRecord.expire", fmt.Sprintf("spec.soaRecord.expire: secondaries drop the zone %d s after they last reached a primary, and ask it after %d s, and again after %d s: "+
			"one lost question ends the zone; write a week or more", soa.Expire, soa.Refresh, soa.Retry)))
	}
	return found
}

// Twice returns the trap of a canonical name in a zone that has the zone's own name once more before it.
func Twice(field, name, zone string) []Found {
	own := strings.TrimSuffix(name, zone)
	if strings.Count(zone, ".") < 2 || !rrset.IsSubdomain(name, zone) || own == "" || !rrset.IsSubdomain(own, zone) { // com.com. is a name.
		return nil
	}
	return []Found{New(ZoneTwice, field, fmt.Sprintf("%s: %s ends in the zone's name twice; %s was probably meant", field, name, own))}
}

package syncstatus

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Reasons of Delegated about name servers. Those about DS records are the DNSZone's.
const (
	reasonDelegated    = "Delegated"
	reasonNotDelegated = "NotDelegated"
	reasonNameServers  = "NameServersDiffer"
	reasonGlue         = "GlueDiffers"
	reasonUncomparable = "ContentUnknown"
)

// delegated says whether the zones above have what resolvers need to reach the zone and to validate it. Name servers are compared here, if
// the parent is known. What becomes of the zone's DS records is known to the controller alone, and is in the DNSZone's own condition. The
// Status is empty if nothing is known of a zone above.
func (ev *Evaluation) delegated(parent *Evaluation) (v status.Verdict) {
	if parent != nil {
		v = ev.delegatedBy(parent)
	}
	if own := meta.FindStatusCondition(ev.zone.Status.Conditions, status.Delegated); own != nil && (v.Status == "" || v.Holds()) {
		return status.Verdict{Status: own.Status, Reason: own.Reason, Message: own.Message}
	}
	return v
}

// delegatedBy compares the delegation and its glue (RFC 1034 section 4.2.2) in the parent with those in the zone, as their newest primaries
// hold them.
func (ev *Evaluation) delegatedBy(parent *Evaluation) status.Verdict {
	zone, above := ev.newestContent(), parent.newestContent()
	name, from := ev.ZoneName(), parent.shortName()
	switch {
	case zone == nil:
		return status.Unknown(reasonUncomparable, "no server of the zone has content to compare")
	case above == nil:
		return status.Unknown(reasonUncomparable, "no server of the parent zone "+from+" has content to compare")
	}
	apex := rrset.Key{Name: name, Type: dns.TypeNS}
	own, _ := zone.Get(apex)
	theirs, found := above.Get(apex)
	switch {
	case !found:
		return status.False(reasonNotDelegated, fmt.Sprintf("%s has no NS records for %s: resolvers do not find the zone; add an NSRecord there", from, name))
	case !slices.Equal(own.Rdata, theirs.Rdata):
		return status.False(reasonNameServers, fmt.Sprintf("%s delegates to %s, the zone has %s", from, strings.Join(theirs.Rdata, ", "), strings.Join(own.Rdata, ", ")))
	}
	for _, host := range own.Rdata {
		for _, rrtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
			k := rrset.Key{Name: host, Type: rrtype}
			have, _ := zone.Get(k)
			glue, _ := above.Get(k)
			if rrset.IsSubdomain(host, name) && !slices.Equal(have.Rdata, glue.Rdata) {
				return status.False(reasonGlue, fmt.Sprintf("for %s, %s has %s, the zone has %s", k, from, valuesText(glue), valuesText(have)))
			}
		}
	}
	return status.True(reasonDelegated, fmt.Sprintf("%s delegates to %s, as the zone has it", from, strings.Join(own.Rdata, ", ")))
}

func valuesText(s rrset.RRset) string {
	if len(s.Rdata) == 0 {
		return "none"
	}
	return strings.Join(s.Rdata, ", ")
}

// ofApex are the servers whose apex is the zone object's; all if none is.
func (ev *Evaluation) ofApex() []serverAnswer {
	own := slices.DeleteFunc(slices.Clone(ev.servers), func(e serverAnswer) bool { return e.shared != "" })
	if len(own) == 0 {
		return ev.servers
	}
	return own
}

// newestContent is the content of the first server that has the newest serial; nil if none has.
func (ev *Evaluation) newestContent() *observe.Mirror {
	for _, e := range ev.ofApex() {
		if e.mirror != nil && !e.mirror.IsPartial() && e.lag == 0 {
			return e.mirror
		}
	}
	return nil
}

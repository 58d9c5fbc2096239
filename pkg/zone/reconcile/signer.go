package reconcile

import (
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
	"github.com/lockstep-dns/lockstep/pkg/zone/chain"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/kinds"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
)

// signer is who may sign a zone.
type signer interface {
	// among is the primary that signs the zone; nil if it could not be brought along, or none does.
	among(primaries []primary.State) *primary.State
	// obstacle says why nobody can tell which keys sign a zone that is signed on some primaries; empty if somebody can.
	obstacle(primaries []primary.State) string
	// shows reports whether what a primary holds says how the zone is signed.
	shows(q primary.State) bool
	// statusOf is how a zone is signed; nil if it is not, and nothing is left to be done about its DS records, of which last was decided.
	statusOf(signed *observe.Mirror, last *v1beta1.SecureDelegation, now time.Time) *v1beta1.DNSSECStatus
	// ends reports whether the zone is declared to be signed no more, or to have no DS records.
	ends() bool
	// ask completes what is known of a zone with what it asks the zones above for.
	ask(zone chain.Zone, signed *observe.Mirror, last *v1beta1.SecureDelegation, now time.Time) chain.Zone
}

// signer returns who may sign the zone: one of its instances, or the server of its only provider.
func (s scope) signer() signer {
	if s.isTheirs() {
		return theirSigner{zone: s.dnsName(), isLeaving: s.zone.Spec.DNSSECPolicy == clause.PolicyInsecure}
	}
	return ourSigner{s.signing}
}

// isTheirs reports whether others run the primaries of the zone.
func (s scope) isTheirs() bool { return s.signing.Signer == nil && len(s.servers) > 0 }

// ourSigner is an instance. It signs by a policy of the zone.
type ourSigner struct{ dnssec.Signing }

func (o ourSigner) among(primaries []primary.State) *primary.State {
	for i := range primaries {
		if q := &primaries[i]; q.Err == nil && kinds.IsServerOf(o.Signer, q.At.Server) {
			return q
		}
	}
	return nil
}

func (ourSigner) obstacle([]primary.State) string { return "" }

func (ourSigner) shows(q primary.State) bool { return q.IsOnLine() }

func (o ourSigner) statusOf(signed *observe.Mirror, _ *v1beta1.SecureDelegation, _ time.Time) *v1beta1.DNSSECStatus {
	return o.StatusOf(signed)
}

func (o ourSigner) ends() bool { return o.Ends() }

func (ourSigner) ask(zone chain.Zone, signed *observe.Mirror, _ *v1beta1.SecureDelegation, _ time.Time) chain.Zone {
	zone.Keys, zone.Announced, zone.Points = dnssec.EntryPoints(signed)
	return zone
}

// theirSigner is the primary of a provider. It signs as its operator has it, and says by CDS records which DS records it wants.
type theirSigner struct {
	zone string
	// isLeaving is true if the zone's declaration wants no DS records any more.
	isLeaving bool
}

// among is the only primary.
func (theirSigner) among(primaries []primary.State) *primary.State {
	if len(primaries) != 1 || primaries[0].Err != nil {
		return nil
	}
	return &primaries[0]
}

func (theirSigner) obstacle(primaries []primary.State) string {
	if len(primaries) < 2 {
		return ""
	}
	return fmt.Sprintf("it has %d primaries, each of which signs it with keys of its own; leave one in spec.providerRefs, from which the others transfer it", len(primaries))
}

// shows is false of a server that is read by queries, which are not about keys.
func (t theirSigner) shows(q primary.State) bool {
	return q.Host.Knows(rrset.Key{Name: t.zone, Type: dns.TypeDNSKEY})
}

func (theirSigner) statusOf(signed *observe.Mirror, last *v1beta1.SecureDelegation, now time.Time) *v1beta1.DNSSECStatus {
	keys, _, _ := dnssec.EntryPoints(signed)
	if len(keys) == 0 && !mayBeTrusted(last, now) {
		return nil
	}
	return dnssec.StatusOf(signed)
}

// mayBeTrusted reports whether resolvers may have DS records of a zone.
func mayBeTrusted(last *v1beta1.SecureDelegation, now time.Time) bool {
	if last == nil || last.TTL == 0 {
		return false
	}
	at, absent := last.ForgottenAt()
	return !absent || now.Before(at)
}

func (t theirSigner) ends() bool { return t.isLeaving }

func (t theirSigner) ask(zone chain.Zone, signed *observe.Mirror, last *v1beta1.SecureDelegation, now time.Time) chain.Zone {
	zone.IsTheirs = true
	zone.Keys, _, zone.Points = dnssec.EntryPoints(signed)
	request, err := dnssec.Requested(signed, last.Published(), now)
	switch {
	case t.isLeaving:
	case err != nil:
		zone.Objection = err.Error()
	case request.Removes:
		zone.Ends = true
	case len(request.Keys) == 0 && len(last.Published()) == 0:
		zone.Objection = "it has no CDS or CDNSKEY records (RFC 7344), by which its servers say which DS records it needs"
	default:
		zone.Announced = request.Keys
	}
	return zone
}

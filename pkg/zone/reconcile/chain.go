package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/zone/chain"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
	"github.com/lockstep-dns/lockstep/pkg/zone/registry"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// chainState is what was decided about a zone's DS records in the zones above.
type chainState struct {
	// isKnown is false before this process has decided anything: then the zone's status says what was decided.
	isKnown    bool
	delegation *v1beta1.SecureDelegation
	delegated  status.Verdict
	// behind is since when a zone above has had other DS records than those that the zone asks for.
	behind time.Time
	// facts are those of the last look, without what the parents answered, and next is when to look again if they stay the same.
	facts string
	next  time.Time
	// elsewhere is what a zone above that is not declared here said, when, and which keys somebody there was told of.
	elsewhere registrySight
}

// registrySight is what a zone above that is not declared here said last.
type registrySight struct {
	*registry.Delegation
	err error
	at  time.Time
	// noted are the keys that the zone asked for when somebody there took note of a NOTIFY.
	noted string
}

// withDelegation returns a zone with what this process has decided about its DS records: caches lag behind.
func (s *zoneState) withDelegation(zone *v1beta1.DNSZone) *v1beta1.DNSZone {
	if !s.chain.isKnown || zone.Status.DNSSEC == nil {
		return zone
	}
	known, signed := *zone, *zone.Status.DNSSEC
	signed.Delegation, known.Status.DNSSEC = s.chain.delegation, &signed
	return &known
}

// lastDelegation is what was decided last.
func (p zonePass) lastDelegation() *v1beta1.SecureDelegation {
	if !p.state.chain.isKnown && p.zone.Status.DNSSEC != nil {
		return p.zone.Status.DNSSEC.Delegation
	}
	return p.state.chain.delegation
}

// followChain decides about the DS records of a signed zone in the zones above, by what the servers of both have, and tells the server that
// signs. A paused zone, and one of which nobody knows what its primaries have, keeps what was decided, toward the zones that still delegate it.
func (p zonePass) followChain(ctx context.Context, event statuswriter.SyncCompleted, primaries []primary.State) (statuswriter.SyncCompleted, time.Duration) {
	known := &p.state.chain
	if !event.DNSSECKnown {
		return event, idleInterval
	}
	if event.DNSSEC == nil {
		*known = chainState{isKnown: true}
		return event, idleInterval
	}
	if why := p.signer().obstacle(primaries); why != "" {
		return p.withObstacle(event, why), idleInterval
	}
	signer := p.signer().among(primaries)
	if signer == nil || p.isPaused() || !event.Programmed.Holds() {
		return p.withKept(event), idleInterval
	}
	zone, now := p.chainFacts(event), p.now()
	if facts := fmt.Sprint(zone, event.Serial, uidsOf(p.parents), uidsOf(p.former)); facts != known.facts || !now.Before(known.next) {
		seen := signer.Host.Observe(ctx)
		if seen.Mirror == nil {
			return p.withChain(event, p.lastDelegation()), firstInterval
		}
		decided := p.decideChain(ctx, zone, seen.Mirror, signer)
		known.isKnown, known.delegation, known.delegated, known.behind = true, decided.Delegation, decided.Delegated, decided.BehindSince
		known.facts, known.next = facts, now.Add(decided.Next)
	}
	return p.withChain(event, known.delegation), max(firstInterval, known.next.Sub(now))
}

// withChain adds what was decided to an event.
func (p zonePass) withChain(event statuswriter.SyncCompleted, delegation *v1beta1.SecureDelegation) statuswriter.SyncCompleted {
	signed := *event.DNSSEC
	signed.Delegation = delegation
	event.DNSSEC, event.Delegated, event.DelegationBehind = &signed, p.lastDelegated(), p.state.chain.behind
	return event
}

// withKept adds what was decided before to an event, toward those zones above that still delegate the zone. If none does, nothing is said of any.
func (p zonePass) withKept(event statuswriter.SyncCompleted) statuswriter.SyncCompleted {
	last := p.lastDelegation()
	kept := chain.Keep(last, uidsOf(p.parents))
	event = p.withChain(event, kept)
	if last != nil && len(last.Parents) > 0 && len(kept.Parents) == 0 && kept.ParentElsewhere == "" {
		event.Delegated, event.DelegationBehind = status.Verdict{}, time.Time{}
	}
	return event
}

// withObstacle is withKept where nothing can be decided, with the reason.
func (p zonePass) withObstacle(event statuswriter.SyncCompleted, why string) statuswriter.SyncCompleted {
	event = p.withKept(event)
	var above []string
	for _, s := range p.parents {
		above = append(above, declaration.DNSName(s.zone))
	}
	if len(above) > 0 {
		event.Delegated = status.CDSNotFollowed(why, above, chain.TagsOf(p.lastDelegation().Published()))
	}
	return event
}

// lastDelegated is the verdict of the last decision.
func (p zonePass) lastDelegated() status.Verdict {
	if p.state.chain.isKnown {
		return p.state.chain.delegated
	}
	if c := meta.FindStatusCondition(p.zone.Status.Conditions, status.Delegated); c != nil {
		return status.Verdict{Status: c.Status, Reason: c.Reason, Message: c.Message}
	}
	return status.Verdict{}
}

func uidsOf(parents []scope) (uids []types.UID) {
	for _, s := range parents {
		uids = append(uids, s.zone.UID)
	}
	return uids
}

// chainFacts are how far the zone's servers have what its signer has.
func (p zonePass) chainFacts(event statuswriter.SyncCompleted) chain.Zone {
	zone := chain.Zone{IsWhole: true, Ends: p.signer().ends()}
	for _, s := range event.Servers {
		zone.IsWhole = zone.IsWhole && s.Current
		zone.HasOthers = zone.HasOthers || !s.Current && s.Err == nil && s.HasZone
	}
	return zone
}

// decideChain asks the servers of the zones above, decides, and tells the server that signs.
func (p zonePass) decideChain(ctx context.Context, zone chain.Zone, signed *observe.Mirror, signer *primary.State) chain.Decision {
	last := p.lastDelegation()
	zone = p.signer().ask(zone, signed, last, p.now())
	zone.IsWhole = zone.IsWhole && dnssec.IsWhole(signed)
	if signed.SOA.Serial != signer.Seen.Serial { // It has changed since the other servers were asked.
		zone.IsWhole, zone.HasOthers = false, true
	}
	if chain.IsNew(last, zone.Keys) {
		zone.TTL = time.Duration(dnssec.HighestTTL(signed)) * time.Second
	}
	facts := chain.Facts{Zone: zone}
	for _, above := range p.parents {
		facts.Parents = append(facts.Parents, p.askParent(ctx, above))
		facts.ParentTTL = max(facts.ParentTTL, declaration.TTLOf(above.zone))
	}
	isNews := false
	if len(p.parents) == 0 && p.registry != nil && !zone.IsTheirs {
		isNews = p.askElsewhere(ctx, signed, last)
		facts.Parents = append(facts.Parents, p.state.chain.elsewhere.parents(last)...)
	}
	if len(facts.Parents) == 0 {
		for _, above := range p.former {
			facts.Former = append(facts.Former, p.askParent(ctx, above))
		}
	}
	facts.Now = p.now()
	decided := chain.Decide(last, facts)
	for _, ds := range decided.Confirm {
		p.tell(ctx, signer, decided.Delegation, ds, true)
	}
	for _, ds := range decided.Withdraw {
		p.tell(ctx, signer, decided.Delegation, ds, false)
	}
	if before, after := last.Published(), decided.Delegation.Published(); !slices.Equal(before, after) {
		log.FromContext(ctx).Info("zone asks for other DS records", "zone", p.zone.Spec.ZoneName, "before", strings.Join(before, ", "), "after", strings.Join(after, ", "))
	}
	if isNews {
		p.notifyElsewhere(ctx, zone, decided)
	}
	return decided
}

// registryInterval is how often a zone above that is not declared here is asked at most.
const registryInterval = 5 * time.Minute

// askElsewhere asks the zone above if nobody declares it here, unless it was asked lately.
func (p zonePass) askElsewhere(ctx context.Context, signed *observe.Mirror, last *v1beta1.SecureDelegation) bool {
	s := &p.state.chain.elsewhere
	if now := p.now(); !s.at.IsZero() && now.Sub(s.at) < registryInterval {
		return false
	}
	ns, _ := signed.Get(rrset.Key{Name: signed.Zone, Type: dns.TypeNS})
	s.Delegation, s.err = p.registry.Find(ctx, p.zone.Namespace, signed.Zone, ns.Rdata)
	s.at = p.now()
	if s.err != nil && last != nil && last.ParentElsewhere != "" {
		log.FromContext(ctx).Info("zone above cannot be asked", "zone", p.zone.Spec.ZoneName, "above", last.ParentElsewhere, "reason", s.err.Error())
	}
	return true
}

// parents is the zone above, if it delegates the zone. One that cannot be asked is not known to have no DS record.
func (s registrySight) parents(last *v1beta1.SecureDelegation) []chain.Parent {
	switch {
	case s.Delegation != nil && (s.err == nil || last != nil && last.ParentElsewhere == s.Name):
		return []chain.Parent{s.Parent}
	case s.err != nil && last != nil && last.ParentElsewhere != "":
		return []chain.Parent{{Name: last.ParentElsewhere, IsElsewhere: true}}
	}
	return nil
}

// notifyElsewhere tells the zone above that it is behind, until somebody there has taken note.
func (p zonePass) notifyElsewhere(ctx context.Context, zone chain.Zone, decided chain.Decision) {
	s := &p.state.chain.elsewhere
	asked := fmt.Sprint(decided.Delegation.Published(), zone.Ends)
	isBehind := slices.Contains([]string{status.RegistryBehind, status.DSUnmatched, status.DSWithdrawing}, decided.Delegated.Reason)
	if s.Delegation == nil || s.err != nil || !isBehind || s.noted == asked {
		return
	}
	targets, noted := p.registry.Notify(ctx, p.zone.Namespace, p.dnsName(), s.Delegation)
	if noted {
		s.noted = asked
	}
	if targets > 0 {
		log.FromContext(ctx).Info("zone above notified of CDS records", "zone", p.zone.Spec.ZoneName, "above", s.Name, "targets", targets, "noted", noted)
	}
}

// askParent asks all servers of a zone above for the DS records of this one.
func (p zonePass) askParent(ctx context.Context, above scope) chain.Parent {
	hosts := p.hostsOf(above, &zoneState{})
	parent := chain.Parent{UID: above.zone.UID, Name: declaration.DNSName(above.zone), Servers: make([]chain.Answer, len(hosts))}
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() { parent.Servers[i] = p.askFor(ctx, h) })
	}
	wg.Wait()
	return parent
}

func (p zonePass) askFor(ctx context.Context, h host.Host) chain.Answer {
	if !h.At().Addr.IsValid() || h.SignIn(ctx) != nil {
		return chain.Answer{}
	}
	set, err := h.Ask(ctx, rrset.Key{Name: p.dnsName(), Type: dns.TypeDS})
	if err != nil {
		return chain.Answer{}
	}
	return chain.Answer{IsKnown: true, DS: set.Rdata, TTL: time.Duration(set.TTL) * time.Second}
}

// dsTeller is a host whose server rolls keys, and has to know of DS records in the zone above.
type dsTeller interface {
	// TellDS tells the server that a key has a DS record in the zone above, or has none any more.
	TellDS(ctx context.Context, keyTag uint16, published bool) error
}

// tell tells the server that signs of a DS record. If it cannot be told, it is with the next look.
func (p zonePass) tell(ctx context.Context, signer *primary.State, decided *v1beta1.SecureDelegation, ds string, published bool) {
	teller, ok := signer.Host.(dsTeller)
	tag := chain.KeyTag(ds)
	if !ok { // Others run it: it looks for itself.
		chain.Told(decided, ds, published)
		return
	}
	err := teller.TellDS(ctx, tag, published)
	log.FromContext(ctx).Info("server told of a DS record", "zone", p.zone.Spec.ZoneName, "server", signer.At.Pod, "key", tag, "published", published, "failed", err != nil)
	if err == nil {
		chain.Told(decided, ds, published)
	}
}

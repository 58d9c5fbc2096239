// Package reconcile holds the reconciler of zones. The zone is the unit of work: a pass turns what changed of the objects that
// declare its data into the desired state, compares that with what every primary holds, applies the difference, and brings
// the secondaries to the same serial. docs/architecture.md has the order of the steps and the invariants that they keep.
package reconcile

import (
	"context"
	"errors"
	"slices"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/zone/dnsprovider"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// reconciler finds out what a pass is about, runs it, and reports its outcome.
type reconciler struct {
	edges
	systemNamespace string
	// gate decides which addresses servers may have, and counts connections with those of DNSProviders; nil permits all.
	gate       *outbound.Gate
	states     zoneStates
	writer     *statuswriter.Writer
	metrics    *statuswriter.Metrics
	backoff    workqueue.TypedRateLimiter[ctrl.Request]
	recoveries *recoveries
}

// Reconcile implements reconcile.Reconciler. A request without a name is for the objects of a namespace that are in no
// zone.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name == "" {
		// The zero zone: none has them.
		r.writer.Release(membership.ZoneKey{}, r.zones.TakeOrphans(req.Namespace)...)
		return ctrl.Result{}, nil
	}
	zone := r.zones.Members.Zone(req.NamespacedName)
	if zone == nil {
		r.forget(req)
		return ctrl.Result{}, nil
	}
	if known, ok := r.states.Load(req.NamespacedName); ok && !v1beta1.IsGoing(zone) {
		if wait := known.(*zoneState).bulkWait(r.now()); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
	}
	scope, err := r.scopeOf(ctx, zone)
	if err != nil {
		return ctrl.Result{}, err
	}
	ctx = outbound.WithAccounts(ctx, scope.accounts(r.gate))
	if v1beta1.IsGoing(zone) {
		return r.finalize(ctx, scope)
	}
	if zone.DeletionTimestamp != nil {
		waits, err := r.waitsForDependents(ctx, scope)
		if err != nil {
			return ctrl.Result{}, err
		}
		if !waits {
			return ctrl.Result{}, r.stopWaiting(ctx, zone)
		}
	}
	if err := r.prepare(ctx, scope); err != nil {
		return ctrl.Result{}, err
	}
	return r.reconcileZone(ctx, req, scope)
}

// reconcileZone runs a pass over a zone, hands on its outcome, and returns when the next one is due.
func (r *reconciler) reconcileZone(ctx context.Context, req ctrl.Request, scope scope) (ctrl.Result, error) {
	zone := scope.zone
	state := r.states.stateOf(zone)
	result, passErr := zonePass{edges: r.edges, scope: scope, state: state}.run(ctx)
	state.keepHosts(scope.servers)
	if errors.Is(passErr, errEnding) {
		r.leaveAsIs(ctx, scope)
		r.metrics.Forget(req.NamespacedName)
		return ctrl.Result{RequeueAfter: jitter(foreignInterval)}, nil
	}
	level, event := 0, result.event
	if result.Rested {
		level = 1 // Thousands of zones are looked at now and then.
	}
	log.FromContext(ctx).V(level).Info("zone reconciled", "zone", zone.Spec.ZoneName, "serial", event.Serial,
		"changed", event.Changes.Len(), "touched", len(event.Touched), "all", event.All, "problem", event.Programmed.Message)
	r.writer.OnSyncCompleted(event)
	r.metrics.OnSyncCompleted(event)
	if result.appeared {
		r.zones.EnqueueAbove(zone)
	}
	if passErr != nil {
		return ctrl.Result{}, passErr
	}
	leads, recovered := r.recoveries.record(req.NamespacedName, event.Servers, event.At)
	if recovered {
		r.backoff.Forget(req) // What follows from it, such as transfers, comes soon.
	}
	after := min(requeueAfter(result, r.backoff, req), result.chained, leadPause(leads, event), r.states.stateOf(zone).untilTransfer(event.At))
	if zone.DeletionTimestamp != nil {
		after = min(after, jitter(foreignInterval)) // No event says that its namespace is being deleted, too.
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// forget drops what is known of a zone that is gone.
func (r *reconciler) forget(req ctrl.Request) {
	r.states.Delete(req.NamespacedName)
	r.serials.Forget(req.NamespacedName)
	r.writer.Forget(req.NamespacedName)
	r.metrics.Forget(req.NamespacedName)
	r.backoff.Forget(req)
	r.recoveries.forget(req.NamespacedName)
	if r.backends != nil {
		r.backends.Follow(req.NamespacedName, "", nil, nil)
	}
}

// scope is what a pass is about, beside the objects that declare the zone's data. A pass changes nothing of it.
type scope struct {
	zone *v1beta1.DNSZone
	// fleet decides which zones share servers; nil takes all of them for such.
	fleet     *membership.Fleet
	instances []*v1beta1.Bind9Instance
	// providers are those that the zone names; one that does not exist has nothing but its name.
	providers []*v1beta1.DNSProvider
	// strangers are those of them whose undeclared data is not the zone's.
	strangers []*v1beta1.Bind9Instance
	// servers have the roles that they play for this zone: of a signed one, all primaries but the signer are secondaries.
	servers []observe.Server
	// refusal is why the zone is served nowhere; the zero value if it is served.
	refusal membership.Refusal
	// arrivals are since when the zone has been on its hosts; none if it is refused. comes is true if one of them is new to it.
	arrivals *v1beta1.ZoneArrivals
	comes    bool
	signing  dnssec.Signing
	// parents are the zones above that delegate the zone to its servers, if it is signed, or others run its servers and may sign it.
	parents []scope
	// former are, if there are no parents, zones above that delegated the zone before and may still have its DS records.
	former []scope
}

// accounts returns whose connections the pass makes. Those with a DNSProvider's servers are counted as the provider's: nobody else waits
// for a turn there. Those with instances, which all namespaces use, are not.
func (s scope) accounts(g *outbound.Gate) func(address string) *outbound.Account {
	servers := s.servers
	for _, parent := range slices.Concat(s.parents, s.former) {
		servers = slices.Concat(servers, parent.servers)
	}
	return func(address string) *outbound.Account {
		for _, server := range servers {
			if server.Provider != "" && server.Addr.String() == address {
				return dnsprovider.AccountOf(g, server.Namespace, server.Provider)
			}
		}
		return g.Instances(s.zone.Namespace)
	}
}

func (r *reconciler) scopeOf(ctx context.Context, zone *v1beta1.DNSZone) (scope, error) {
	all, err := inventory.Read(ctx, r.kube, r.systemNamespace)
	if err != nil {
		return scope{zone: zone}, err
	}
	state := r.states.stateOf(zone)
	s, err := r.placeZone(ctx, all, zone, state)
	if err != nil || !s.signing.IsSigned() && !s.isTheirs() {
		return s, err
	}
	known := state.withDelegation(state.withArrivals(zone))
	if s.parents, err = r.placeAbove(ctx, all, all.SigningParents(known, r.zones.Members)); err == nil && len(s.parents) == 0 {
		s.former, err = r.placeAbove(ctx, all, r.formerParents(known))
		s.former = slices.DeleteFunc(s.former, func(above scope) bool { return above.refusal != (membership.Refusal{}) || len(above.servers) == 0 })
	}
	return s, err
}

// placeAbove finds where zones above are served. It leaves out those of which no question shows what they hold. Their states are those of other
// passes, maybe of one that is under way.
func (r *reconciler) placeAbove(ctx context.Context, all *membership.Fleet, zones []*v1beta1.DNSZone) (placed []scope, err error) {
	for _, zone := range zones {
		above, err := r.placeZone(ctx, all, zone, &zoneState{})
		if err != nil {
			return nil, err
		}
		if backends, _ := r.byBackend(above.providers); len(backends) == 0 {
			placed = append(placed, above)
		}
	}
	return placed, nil
}

// formerParents are the zones that delegated a zone when its DS records were last decided about, as far as they are there.
func (r *reconciler) formerParents(zone *v1beta1.DNSZone) (former []*v1beta1.DNSZone) {
	name, err := declaration.ZoneName(zone.Spec.ZoneName)
	if err != nil || zone.Status.DNSSEC == nil || zone.Status.DNSSEC.Delegation == nil || len(zone.Status.DNSSEC.Delegation.Parents) == 0 {
		return nil
	}
	for above := rrset.ParentName(name); above != "." && above != ""; above = rrset.ParentName(above) {
		for _, parent := range r.zones.Members.ZonesNamed(above) {
			if slices.Contains(zone.Status.DNSSEC.Delegation.Parents, parent.UID) && !v1beta1.IsGoing(parent) {
				former = append(former, parent)
			}
		}
	}
	return former
}

// placeZone finds where a zone is served. The state has what this process has stored of the zone and caches may not have yet.
func (r *reconciler) placeZone(ctx context.Context, all *membership.Fleet, zone *v1beta1.DNSZone, state *zoneState) (s scope, err error) {
	s.zone, s.fleet = zone, all
	s.instances = all.InstancesOf(zone)
	s.providers = all.ProvidersOf(zone)
	s.strangers = all.Strangers(zone, s.instances)
	known := state.withArrivals(zone)
	s.refusal, s.arrivals = all.RefusalOf(known, r.zones.Members), &v1beta1.ZoneArrivals{}
	if s.refusal == (membership.Refusal{}) {
		s.arrivals, s.comes = all.ArrivalsOf(known, r.now())
	}
	if s.signing, err = dnssec.SigningOf(ctx, r.kube, state.withDelegation(zone), s.instances, r.systemNamespace); err != nil {
		return s, err
	}
	servers, err := inventory.ListServers(ctx, r.kube, s.instances)
	_, dnsServers := r.byBackend(s.providers)
	servers = serving.AddProviders(servers, dnsServers)
	s.servers = s.signing.Demote(servers)
	return s, err
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// deletionTimeout is how long the deletion of a zone waits for a server that cannot be reached. A server that comes
// back later loses the zone then: its instance serves only zones that exist.
const deletionTimeout = 30 * time.Second

// waitsForDependents reports whether a zone that is being deleted has a record or a DNSEndpoint that is not, and nobody has said that they
// do not matter. A zone that ends with its namespace waits for no other namespace.
func (r *reconciler) waitsForDependents(ctx context.Context, s scope) (bool, error) {
	if s.zone.Annotations[v1beta1.AllowDeletionAnnotation] == "true" {
		return false, nil
	}
	elsewhere := false
	for _, m := range r.zones.Objects(s.key()) {
		if !m.Role.Declares() || m.Object.GetDeletionTimestamp() != nil {
			continue
		}
		if m.Object.GetNamespace() == s.zone.Namespace {
			return true, nil
		}
		elsewhere = true
	}
	if !elsewhere {
		return false, nil
	}
	ends, err := r.isTerminating(ctx, s.zone.Namespace)
	return !ends, err
}

// stopWaiting lets a zone go that is being deleted.
func (r *reconciler) stopWaiting(ctx context.Context, zone *v1beta1.DNSZone) error {
	_, err := apply.Metadata(ctx, r.kube, zone, apply.Marks{RemoveFinalizers: []string{v1beta1.DependentsFinalizer}})
	return client.IgnoreNotFound(err)
}

// finalize deletes a zone from its servers, releases what leaves it and then the zone itself. What it still selects is
// released, or becomes another zone's, once the zone is gone.
func (r *reconciler) finalize(ctx context.Context, s scope) (ctrl.Result, error) {
	since := r.states.stateOf(s.zone).goingSince(r.now())
	if controllerutil.ContainsFinalizer(s.zone, v1beta1.Finalizer) {
		if err := r.clearHosts(ctx, s, r.states.stateOf(s.zone)); err != nil {
			if r.now().Sub(since) < deletionTimeout {
				log.FromContext(ctx).Info("zone is still on a server", "zone", s.zone.Spec.ZoneName, "reason", err.Error())
				return ctrl.Result{RequeueAfter: time.Second}, nil
			}
			log.FromContext(ctx).Info("zone is released although a server may still have it", "zone", s.zone.Spec.ZoneName, "reason", err.Error())
		}
	}
	r.zones.EnqueueAbove(s.zone)
	r.writer.Release(s.key(), r.takeLeaving(s)...)
	_, err := apply.Metadata(ctx, r.kube, s.zone, apply.Marks{RemoveFinalizers: []string{v1beta1.Finalizer}})
	return ctrl.Result{}, err
}

// clearHosts deletes a zone from where it is served. What a refused one has is its own only where that is told from what others have.
func (e edges) clearHosts(ctx context.Context, s scope, state *zoneState) error {
	hosts := e.hostsToClear(s, state)
	if s.refusal != (membership.Refusal{}) {
		hosts = slices.DeleteFunc(hosts, func(h host.Host) bool { return h.At().Owner == "" })
	}
	return errors.Join(deleteFromHosts(ctx, hosts), e.clearBackends(ctx, s, s.dnsName()))
}

// takeLeaving returns the objects that leave a zone.
func (e edges) takeLeaving(s scope) (leaving []source.Object) {
	members, _ := e.zones.Take(s.key(), true)
	for _, m := range members {
		if m.Role == membership.Leaving {
			leaving = append(leaving, m.Object)
		}
	}
	return leaving
}

// errEnding ends a pass over a zone on servers of others whose namespace is being deleted.
var errEnding = errors.New("the zone's namespace is being deleted")

// checkNamespace returns errEnding if the zone is on servers of others and ends with its namespace. Kubernetes deletes what is in a
// namespace in any order: a record that goes before its zone would be taken off servers that keep the zone. A namespace is marked
// before anything in it is deleted, so one that is not marked now is not the reason why an object went.
func (p zonePass) checkNamespace(ctx context.Context) error {
	if len(p.providers) == 0 {
		return nil
	}
	going, err := p.isTerminating(ctx, p.zone.Namespace)
	if err != nil {
		return fmt.Errorf("finding out whether namespace %s is being deleted: %w", p.zone.Namespace, err)
	}
	if going {
		return errEnding
	}
	return nil
}

// leaveAsIs releases what leaves a zone that ends with its namespace, and changes nothing on servers: the end of the zone is all that they
// learn. What was the zone's own there is forgotten, so that nothing of it is deleted if the zone stays after all.
func (r *reconciler) leaveAsIs(ctx context.Context, s scope) {
	leaving := r.takeLeaving(s)
	log.FromContext(ctx).V(1).Info("zone ends with its namespace", "zone", s.zone.Spec.ZoneName, "released", len(leaving))
	owned := r.states.stateOf(s.zone).owned
	r.states.Delete(s.key())
	if len(owned) > 0 { // Its own values go from there at its end.
		r.states.stateOf(s.zone).owned = owned
	}
	r.recoveries.forget(s.key())
	r.zones.NoteReleased(s.key(), leaving)
	r.writer.Release(s.key(), leaving...)
}

// deleteFromHosts deletes the zone on every server that can be asked, but for the data of another DNSZone of that name.
func deleteFromHosts(ctx context.Context, hosts []host.Host) error {
	var group errgroup.Group
	for _, h := range hosts {
		if h.At().Addr.IsValid() {
			group.Go(func() error { return h.Delete(ctx) })
		}
	}
	return group.Wait()
}

// withdraw deletes a zone that is not permitted any more from where it was. A zone of another namespace that is served under the name instead
// starts anew there: it keeps nothing that this one's owner wrote. The outcomes are those of servers and backends that may have the zone still;
// a backend's is the error, too.
func (p zonePass) withdraw(ctx context.Context) (servers []statuswriter.ServerOutcome, backends []statuswriter.BackendOutcome, err error) {
	had := slices.DeleteFunc(slices.Clone(p.hosts), func(h host.Host) bool { return !p.wasOn(h) })
	stored := slices.DeleteFunc(slices.Clone(p.backendProviders()), func(at *v1beta1.DNSProvider) bool { return !p.wasAt(at.Name) })
	if len(had)+len(stored) == 0 || p.refusal.Reason != status.NotPermitted {
		return nil, nil, nil
	}
	log.FromContext(ctx).Info("zone is not permitted any more; removing it from its servers", "zone", p.zone.Spec.ZoneName, "reason", p.refusal.Message)
	if err := deleteFromHosts(ctx, had); err != nil {
		for _, h := range had {
			servers = append(servers, statuswriter.ServerOutcome{Server: h.At().Server, Err: err})
		}
	}
	for _, at := range stored {
		if failed := p.clearBackends(ctx, scope{zone: p.zone, fleet: p.fleet, providers: []*v1beta1.DNSProvider{at}}, p.dnsName()); failed != nil {
			backends, err = append(backends, statuswriter.BackendOutcome{Provider: at.Name, Err: failed}), errors.Join(err, failed)
		}
	}
	if len(servers)+len(backends) > 0 {
		return servers, backends, err
	}
	p.state.served = false
	p.state.content.KeepPrimaries(nil)
	for _, other := range p.zones.Members.ZonesNamed(p.zone.Spec.ZoneName) {
		if other.UID != p.zone.UID {
			p.zones.Enqueue(membership.KeyOfZone(other))
		}
	}
	return nil, nil, nil
}

// wasOn reports whether the zone may be on a host: a pass has brought it there, or its status says so.
func (p zonePass) wasOn(h host.Host) bool {
	at := h.At()
	if at.Provider != "" {
		return p.wasAt(at.Provider)
	}
	return p.state.served || slices.ContainsFunc(p.zone.Status.Bind9Instances, func(i v1beta1.ZoneInstance) bool {
		return i.Namespace == at.Namespace && i.Name == at.Instance
	})
}

// wasAt is wasOn for a provider.
func (p zonePass) wasAt(provider string) bool {
	return p.state.served || slices.ContainsFunc(p.zone.Status.Providers, func(at v1beta1.ZoneProvider) bool { return at.Name == provider })
}

// Where values have owners, a zone that leaves a server takes its own with it. The hosts that it had are remembered with their keys, so that this
// is possible also when the DNSProvider and its Secrets go with the zone.

// ownedHosts are the hosts on which a zone may have values of its own, each as an owner of values there.
type ownedHosts map[ownedHost]host.Host

type ownedHost struct {
	id    types.NamespacedName
	owner string
}

func ownedHostOf(h host.Host) ownedHost { return ownedHost{h.At().ID, h.At().Owner} }

// noteOwned remembers the hosts of a pass on which the zone may have values of its own.
func (s *zoneState) noteOwned(hosts []host.Host) {
	for _, h := range hosts {
		if at := h.At(); at.Owner != "" && at.Role == observe.Primary && at.Addr.IsValid() {
			if s.owned == nil {
				s.owned = ownedHosts{}
			}
			s.owned[ownedHostOf(h)] = h
		}
	}
}

// formerHosts returns, before the first pass over a zone, the hosts of providers that it does not name any more and that are in its status: a
// process before this one may have brought it there.
func (e edges) formerHosts(s scope, state *zoneState) []host.Host {
	listed := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: s.zone.Namespace}}
	for _, at := range s.zone.Status.Providers {
		if ref := (v1beta1.ProviderReference{Name: at.Name}); !slices.Contains(s.zone.Spec.ProviderRefs, ref) {
			listed.Spec.ProviderRefs = append(listed.Spec.ProviderRefs, ref)
		}
	}
	if state.last.known || s.fleet == nil || len(listed.Spec.ProviderRefs) == 0 {
		return nil
	}
	former := scope{zone: s.zone, providers: s.fleet.ProvidersOf(listed)}
	_, servers := e.byBackend(former.providers)
	former.servers = serving.AddProviders(nil, servers)
	return e.hostsOf(former, state)
}

// leaveFormerHosts deletes what the zone has on servers of providers that it does not name any more, or that do not keep values under that owner.
// Where another zone of that name takes over, it deletes what is not its own. It comes after the zone is elsewhere: another provider may be at the
// same server, and claim the same values.
func (p zonePass) leaveFormerHosts(ctx context.Context) error {
	if p.isPaused() {
		return nil
	}
	var errs []error
	for key, h := range p.state.owned {
		// A provider that does not exist, or of which the owner or the address is not known yet, has a server without an address.
		isSame := func(s observe.Server) bool {
			return s.Provider == h.At().Provider && (s.Owner == key.owner || !s.Addr.IsValid())
		}
		if slices.ContainsFunc(p.servers, isSame) {
			continue
		}
		if p.isTakenOver(p.scope, providerOf(h)) {
			delete(p.state.owned, key)
			continue
		}
		err := h.Delete(ctx)
		if errs = append(errs, err); err == nil {
			delete(p.state.owned, key)
		}
	}
	return errors.Join(errs...)
}

// hostsToClear returns the hosts from which a zone is to be deleted. Where values have owners, another zone of that name which has the same one
// deletes what is not its own.
func (e edges) hostsToClear(s scope, state *zoneState) []host.Host {
	state.noteOwned(e.formerHosts(s, state))
	hosts := e.hostsOf(s, state)
	former := maps.Clone(state.owned)
	for _, h := range hosts {
		if h.At().Addr.IsValid() {
			delete(former, ownedHostOf(h))
		}
	}
	return slices.DeleteFunc(slices.AppendSeq(hosts, maps.Values(former)), func(h host.Host) bool {
		return h.At().Owner != "" && e.isTakenOver(s, providerOf(h))
	})
}

// providerOf names the DNSProvider of a host.
func providerOf(h host.Host) client.ObjectKey {
	return client.ObjectKey{Namespace: h.At().Namespace, Name: h.At().Provider}
}

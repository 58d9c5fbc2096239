package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/bind"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/backend"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/notify"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/zonecache"
	"github.com/lockstep-dns/lockstep/pkg/zone/registry"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// edges are the clients and caches of a pass. Tests replace them.
type edges struct {
	kube       client.Client
	zones      *zonecache.Cache
	dns        dnsClient
	sendNotify host.Notifier
	sidecar    sidecarClient
	updates    updateClient
	backends   backendSource
	keys       host.KeySource
	// isTerminating reports whether a namespace is being deleted, or gone, at this moment: no cache may answer.
	isTerminating func(ctx context.Context, namespace string) (bool, error)
	serials       *notify.Serials
	now           func() time.Time
	// registry asks zones above that are not declared here; nil if nobody is to.
	registry *registry.Registry
}

// dnsClient asks servers what they serve.
type dnsClient interface {
	host.DNS
	// Reset has a server asked again that may have restarted.
	Reset(at observe.Peer)
}

// sidecarClient changes which zones a server has, updateClient what is in them.
type (
	sidecarClient = bind.Sidecar
	updateClient  = rfc2136.Updater
)

// zonePass is one pass over one zone. Its steps pass on values: declaration, primaries, target, outcome.
type zonePass struct {
	edges
	scope
	state *zoneState
	// hosts are the zone on its servers, in their order.
	hosts []host.Host
}

// passResult is the outcome of a pass, with what decides when the next one comes.
type passResult struct {
	event statuswriter.SyncCompleted
	reconciled
	// appeared is true when the zone is on other servers than after the pass before.
	appeared bool
	// rest is how long the zone may wait until its hosts are checked again; zero if they notify of changes.
	rest time.Duration
	// chained is when to look again at the zone's DS records in the zones above.
	chained time.Duration
}

// reconciled is how a pass has left the zone on its hosts.
type reconciled struct {
	// programmable says whether the zone can be brought to its primaries at all, and if not, why.
	programmable status.Verdict
	primary.Result
	// stored is how the zone is at providers that are no DNS servers.
	stored []backend.Outcome
	// hidden are the RRsets that primaries hold and do not answer with, while everything else is as declared.
	hidden map[rrset.Key]status.Verdict
	// servers are all servers, in the order of the hosts.
	servers []statuswriter.ServerOutcome
	// remark is why the zone's policy could not be set on a server: the Secret for its keys may be about to appear.
	remark string
}

// run does the pass. Failures are part of the outcome, and so reach the objects concerned; the error is about objects that could not get
// their finalizer.
func (p zonePass) run(ctx context.Context) (passResult, error) {
	began := p.now()
	p.hosts = p.hostsOf(p.scope, p.state)
	p.state.noteOwned(p.formerHosts(p.scope, p.state))
	event, err := p.declare(ctx)
	var hosts reconciled
	chained := idleInterval
	if event.Programmed.Holds() {
		p.state.noteOwned(p.hosts)
		hosts = p.reconcileHosts(ctx)
		if !p.hasHosts() || hosts.isSomewhere() {
			err = errors.Join(err, p.leaveFormerHosts(ctx))
		}
		event = p.conclude(event, hosts)
		event, chained = p.followChain(ctx, event, hosts.Primaries)
		if d := event.Desired; d.NameServers.Waiting != "" && event.Unprogrammed != nil {
			event.Unprogrammed[rrset.Key{Name: d.Name, Type: dns.TypeNS}] = status.False(status.AddressPending, d.NameServers.Waiting)
		}
		if event.Programmed.Holds() {
			err = errors.Join(err, p.dropConfirmation(ctx, isStuckIn(event)))
		}
	}
	event.Touched, event.All = touchedSince(p.state.last, event)
	event.At = p.now()
	event.Took = event.At.Sub(began)
	result := passResult{event: event, reconciled: hosts, chained: chained, appeared: p.state.noteServing(event.Servers)}
	if len(event.Servers) > 0 {
		result.rest = restOf(p.hosts)
	}
	p.state.last = lastOutcome{known: true, programmed: event.Programmed, unprogrammed: event.Unprogrammed, desired: event.Desired}
	p.state.noteBulk(event.Changes.Len(), event.At)
	p.zones.NoteReleased(p.key(), event.Released)
	return result, err
}

// dropConfirmation removes the annotation that has confirmed a plan once that is done: the same plan later is another one.
func (p zonePass) dropConfirmation(ctx context.Context, isStuck func(rrset.Key) bool) error {
	if !p.state.content.IsConfirmationDone(isStuck) || p.isPaused() {
		return nil
	}
	if _, err := apply.Metadata(ctx, p.kube, p.zone, apply.Marks{RemoveAnnotations: []string{v1beta1.ConfirmAnnotation}}); err != nil {
		return fmt.Errorf("removing the annotation of the confirmed plan from zone %s/%s: %w", p.zone.Namespace, p.zone.Name, err)
	}
	return nil
}

// reconcileHosts brings the zone to its hosts: to its primaries and to places without an SOA, and then to the servers that follow the
// primaries.
func (p zonePass) reconcileHosts(ctx context.Context) (r reconciled) {
	p.state.served = true
	writes := p.overPrimaries()
	primaries := writes.Find(ctx)
	switch r.programmable = p.programmable(primaries); {
	case !p.hasHosts():
		return r
	case !r.programmable.Holds(): // Which servers have the zone, with the serial that was known last; nothing is changed.
		r.servers = p.reconcileSecondaries(ctx, followed{serial: uint32(ptr.Deref(p.zone.Status.Serial, 0)), isKnown: p.zone.Status.Serial != nil, paused: true}) //nolint:gosec // a serial has 32 bits
		r.stored = p.reconcileBackends(ctx)
		return r
	}
	r.Result = writes.Reconcile(ctx, primaries)
	r.stored = p.reconcileBackends(ctx)
	serial, isKnown := p.serialOf(r.Primaries)
	if isKnown && p.countOnLine() > 0 {
		p.serials.Expect(p.key(), serial)
	}
	if len(r.failed()) == 0 && !r.isUnreached() {
		r.hidden = p.hidden(ctx, r.Primaries)
	}
	r.servers = p.reconcileSecondaries(ctx, followed{r.Primaries, serial, isKnown, p.isPaused()})
	p.serials.Await(p.key(), behind(r.servers))
	if !p.isPaused() {
		r.remark = p.configure(ctx, r.servers, r.Rested)
	}
	return r
}

// failed returns the primaries that could not be brought along.
func (r reconciled) failed() (failed []primary.State) {
	for _, q := range r.Primaries {
		if q.Err != nil {
			failed = append(failed, q)
		}
	}
	return failed
}

// isUnreached reports whether the zone could not be brought to a provider that is no DNS server.
func (r reconciled) isUnreached() bool {
	return slices.ContainsFunc(r.stored, func(out backend.Outcome) bool { return out.Err != nil })
}

// isSomewhere reports whether a primary or another provider holds the zone.
func (r reconciled) isSomewhere() bool {
	return slices.ContainsFunc(r.Primaries, func(q primary.State) bool { return q.Err == nil }) ||
		slices.ContainsFunc(r.stored, func(out backend.Outcome) bool { return out.Err == nil })
}

// programmable says whether the zone can be brought to its primaries at all, and if not, why.
func (p zonePass) programmable(primaries []primary.State) status.Verdict {
	switch {
	case !p.hasHosts():
		return status.NoHosts(p.zone)
	case p.state.content.Desired().NameServers.Waiting != "" && p.zone.Status.Serial == nil: // It never was on a server.
		return status.False(status.AddressPending, p.state.content.Desired().NameServers.Waiting)
	case len(primaries) == 0 && len(p.backendProviders()) > 0 && len(p.instances) == 0:
		// It lives with providers that are no DNS servers.
	case len(primaries) == 0:
		return p.withoutPrimary()
	case !slices.ContainsFunc(primaries, func(q primary.State) bool { return q.At.Addr.IsValid() }):
		return status.NoPrimaryYet(primaries[0].Err)
	case p.signing.Obstacle(primary.CountSigners(primaries)) != "":
		return status.False(status.ReconcileFailed, p.signing.Obstacle(primary.CountSigners(primaries)))
	}
	return status.True(status.ReconcileSucceeded, "")
}

// withoutPrimary says why the zone has no primary server.
func (p zonePass) withoutPrimary() status.Verdict {
	var names []string
	for n, i := range p.instances {
		names = append(names, i.Namespace+"/"+i.Name)
		if i.Spec.Role.Normalize() == v1beta1.RolePrimary && named.Replicas(i) == 0 {
			return status.PrimaryWithoutPods(names[n])
		}
	}
	return status.NoPrimary(names)
}

// key names the zone's object.
func (s scope) key() membership.ZoneKey { return membership.KeyOfZone(s.zone) }

// services returns where the Services of the zone's instances with a role serve DNS, as "IP:port".
func (s scope) services(role v1beta1.ServerRole) []string {
	var services []string
	for _, a := range s.signing.ServiceAddresses(s.instances, role) {
		services = append(services, netip.AddrPortFrom(a, serving.ServicePort).String())
	}
	return services
}

// dnsName is the zone's canonical name; of one that cannot be canonical, which is served nowhere, the one that it has.
func (s scope) dnsName() string {
	if name, err := declaration.ZoneName(s.zone.Spec.ZoneName); err == nil {
		return name
	}
	return declaration.DNSName(s.zone) + "."
}

// releaseAll releases all objects that leave: no server holds anything of them for this zone.
func (p zonePass) releaseAll() []source.Object {
	return p.state.content.TakeReleased(func(rrset.Key) bool { return false })
}

// newOutcome is the outcome of a server of which nothing is known yet.
func newOutcome(h host.Host) statuswriter.ServerOutcome {
	out := statuswriter.ServerOutcome{Server: h.At().Server}
	if out.PodPhase != corev1.PodRunning && out.Message != "" {
		out.Err = errors.New(out.Message)
	}
	return out
}

// behind returns the pods of the servers that do not have the zone as it is now.
func behind(servers []statuswriter.ServerOutcome) (pods []types.NamespacedName) {
	for _, out := range servers {
		if !out.Current {
			pods = append(pods, host.IDOf(out.Server))
		}
	}
	return pods
}

// configure has each host have the zone as it should. The remark is about a policy that could not be set.
func (p zonePass) configure(ctx context.Context, servers []statuswriter.ServerOutcome, rested bool) (remark string) {
	for i, h := range p.hosts {
		if r := h.Configure(ctx, servers[i].HasZone, servers[i].Err, rested); r != "" {
			remark = r
		}
	}
	return remark
}

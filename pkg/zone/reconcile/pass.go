package reconcile

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/bind"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/notify"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/unreachable"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/zonecache"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// edges are what a pass reaches beyond its own values. Tests replace them.
type edges struct {
	kube  client.Client
	zones *zonecache.Cache
	dns   dnsClient
	// sendNotify sends a NOTIFY (RFC 1996).
	sendNotify func(ctx context.Context, server netip.AddrPort, zone string, serial uint32, key *wire.Key) error
	sidecar    sidecarClient
	updates    updateClient
	backends   backendSource
	keys       host.KeySource
	// isTerminating reports whether a namespace is being deleted, or gone, at this moment: no cache may answer.
	isTerminating func(ctx context.Context, namespace string) (bool, error)
	serials       *notify.Serials
	now           func() time.Time
}

// dnsClient asks servers what they serve. It does not wait for a server that is known to be unreachable.
type dnsClient interface {
	Serial(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key) observe.Observation
	Observe(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key) observe.Observation
	// ObserveAnew transfers the whole content.
	ObserveAnew(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key) observe.Observation
	// ObserveNames asks for the SOA and for RRsets.
	ObserveNames(ctx context.Context, at observe.Peer, zone unreachable.Zone, key *wire.Key, questions ...observe.Question) observe.Observation
	ForgetZone(at observe.Peer, zone unreachable.Zone)
	// Reset has a server asked again that may have started anew.
	Reset(at observe.Peer)
}

// sidecarClient changes which zones a server has, updateClient what is in them.
type (
	sidecarClient = bind.Sidecar
	updateClient  = rfc2136.Updater
)

// zonePass is one pass over one zone. Its steps hand on values: declaration, primaries, target, outcome.
type zonePass struct {
	edges
	scope
	state *zoneState
	// hosts are the zone on its servers, in their order.
	hosts []host.Host
}

// passResult is the outcome of a pass, with what decides when the next one comes.
type passResult struct {
	event     statuswriter.SyncCompleted
	primaries []*primary
	target    target
	// rested is true when nothing was to be done and no server had changed.
	rested bool
	// appeared is true when the zone is on other servers than after the pass before.
	appeared bool
	// unsigned is true when the zone's policy could not be set on a server: the Secret for its keys may be about to appear.
	unsigned bool
	// unreached is true when a provider that is no DNS server could not be brought along.
	unreached bool
	// rest is how long the zone may rest before its hosts are looked at; zero if they tell.
	rest time.Duration
}

// run does the pass. Whatever goes wrong becomes part of the outcome, so that it reaches the objects concerned; the error
// is for those that could not get their finalizer.
func (p zonePass) run(ctx context.Context) (passResult, error) {
	began := p.now()
	p.hosts = p.hostsOf(p.scope, p.state)
	result, err := p.runSteps(ctx)
	if len(result.event.Servers) > 0 {
		result.rest = restOf(p.hosts)
	}
	result.appeared = p.state.noteServing(result.event.Servers)
	p.state.last = addTouched(&result.event, p.state.last)
	result.event.At = p.now()
	p.zones.NoteReleased(p.key(), result.event.Released)
	p.state.noteBulk(result.event.Changes.Len(), result.event.At)
	result.event.Took = result.event.At.Sub(began)
	return result, err
}

func (p zonePass) runSteps(ctx context.Context) (passResult, error) {
	result := passResult{event: statuswriter.SyncCompleted{
		Zone: p.zone, Arrivals: p.arrivals, Problem: status.True(status.ReconcileSucceeded, ""), Paused: p.zone.Annotations[v1beta1.PausedAnnotation] == "true",
	}}
	event := &result.event
	ready, err := p.declare(ctx, event)
	if !ready {
		return result, err
	}
	p.state.served = true
	primaries := p.findPrimaries(ctx)
	if event.Problem = p.obstacle(primaries); !event.Problem.Holds() {
		if !p.hasHosts() {
			event.Released = p.releaseAll()
		} else {
			event.Servers = p.lookAtServers(ctx)
			event.Unprogrammed = map[rrset.Key]status.Verdict{}
			result.unreached = p.addBackends(p.syncBackends(ctx, event.Paused), event)
		}
		return result, err
	}
	synced := p.syncPrimaries(ctx, primaries, event.Paused)
	result.primaries, result.target, result.rested = synced.primaries, synced.target, synced.rested
	stored := p.syncBackends(ctx, event.Paused)
	settled, unreached := p.conclude(synced, stored, event)
	result.unreached = unreached
	p.addHidden(ctx, synced.primaries, event)
	event.Servers = p.syncSecondaries(ctx, primaries, event)
	if settled {
		p.release(event)
	}
	p.serials.Await(p.key(), behind(event.Servers))
	if !event.Paused {
		remark := p.configure(ctx, event.Servers, result.rested)
		event.Remark, result.unsigned = cmp.Or(remark, event.Remark), remark != ""
	}
	return result, err
}

// obstacle returns what keeps the zone from its primaries as a whole; it holds when nothing does.
func (p zonePass) obstacle(primaries []*primary) status.Verdict {
	switch {
	case !p.hasHosts():
		return status.NoHosts(p.zone)
	case p.state.content.Desired().NameServers.Waiting != "":
		return status.False(status.AddressPending, p.state.content.Desired().NameServers.Waiting)
	case len(primaries) == 0 && len(p.backendProviders()) > 0 && len(p.instances) == 0:
		// It lives with providers that are no DNS servers.
	case len(primaries) == 0:
		return p.withoutPrimary()
	case !slices.ContainsFunc(primaries, func(q *primary) bool { return q.server.Addr.IsValid() }):
		return status.NoPrimaryYet(primaries[0].err)
	case p.signing.Obstacle(countSigners(primaries)) != "":
		return status.False(status.ReconcileFailed, p.signing.Obstacle(countSigners(primaries)))
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

// lookAtServers returns which servers have the zone, with the serial that was known last, while no primary can be worked on. It
// changes nothing.
func (p zonePass) lookAtServers(ctx context.Context) []statuswriter.ServerOutcome {
	return p.syncSecondaries(ctx, nil, &statuswriter.SyncCompleted{Serial: uint32(ptr.Deref(p.zone.Status.Serial, 0)), Paused: true}) //nolint:gosec // a serial has 32 bits
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
	if name, err := source.ZoneName(s.zone.Spec.ZoneName); err == nil {
		return name
	}
	return source.DNSName(s.zone) + "."
}

// asked is the zone as servers are asked about it.
func (s scope) asked() unreachable.Zone { return unreachable.Zone{Key: s.key(), Name: s.dnsName()} }

// releaseAll releases all objects that leave: no server holds anything of them for this zone.
func (p zonePass) releaseAll() []source.Object {
	return p.state.content.TakeReleased(func(rrset.Key) bool { return false })
}

// newOutcomes returns one outcome for each server, of which nothing is known yet.
func newOutcomes(servers []observe.Server) []statuswriter.ServerOutcome {
	outcomes := make([]statuswriter.ServerOutcome, len(servers))
	for i, server := range servers {
		outcomes[i].Server = server
		if server.PodPhase != corev1.PodRunning && server.Message != "" {
			outcomes[i].Err = errors.New(server.Message)
		}
	}
	return outcomes
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
		if r := h.Configure(ctx, servers[i].Serial, servers[i].Err, rested); r != "" {
			remark = r
		}
	}
	return remark
}

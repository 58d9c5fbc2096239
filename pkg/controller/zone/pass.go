package zone

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// pass is one pass over one zone: from what changed to the outcome that listeners are told.
type pass struct {
	*zoneReconciler
	surroundings
	zone  *v1beta1.DNSZone
	state *zoneState
	// comparing guards state while primaries are worked on at the same time.
	comparing sync.Mutex
	primaries []*primary
	target    target
	// rested is true when nothing was to be done and no server had changed.
	rested bool
	// drifted are RRsets that somebody else changed on a primary.
	drifted map[rrset.Key]struct{}
	event   syncevent.SyncCompleted
}

// run does the pass. Whatever goes wrong becomes part of the outcome, so that it reaches the objects concerned; the error
// is for those that could not be marked.
func (p *pass) run(ctx context.Context) error {
	began := p.now()
	p.event = syncevent.SyncCompleted{Zone: p.zone, Problem: status.Yes(status.ReconcileSucceeded, ""), Paused: annotated(p.zone, v1beta1.PausedAnnotation)}
	err := p.steps(ctx)
	p.sumUp()
	p.event.At = p.now()
	p.event.Took = p.event.At.Sub(began)
	return err
}

func annotated(zone *v1beta1.DNSZone, annotation string) bool {
	return zone.Annotations[annotation] == "true"
}

func (p *pass) steps(ctx context.Context) error {
	ready, err := p.declare(ctx)
	if !ready || !p.findPrimaries(ctx) {
		return err
	}
	p.syncPrimaries(ctx)
	p.syncSecondaries(ctx)
	p.updatePeers(ctx)
	return err
}

// declare brings the desired zone up to date with the objects that changed; not ready when there is nothing to work with.
func (p *pass) declare(ctx context.Context) (ready bool, err error) {
	s := p.state
	s.prune = annotated(p.zone, v1beta1.PruneAnnotation)
	addresses := membership.ServiceAddresses(p.instances, v1beta1.RolePrimary)
	whole := !s.fits(p.zone, addresses)
	if whole {
		opts := source.Options{ServerAddresses: addresses, Owns: p.world.members.OwnsEndpoints(membership.KeyOfZone(p.zone))}
		if err := s.begin(p.zone, opts); err != nil {
			p.problem(status.ReconcileFailed, "%v", err)
			return false, nil
		}
	}
	changed := p.world.take(membership.KeyOfZone(p.zone), whole)
	if p.duplicateOf == nil {
		changed, err = p.mark(ctx, changed)
	}
	for _, m := range changed {
		s.set(m)
		if !whole {
			p.event.Touched = append(p.event.Touched, m.Key)
		}
	}
	s.refresh(changed)
	p.event.Desired, p.event.All = s.desired, whole
	p.alsoSelected()
	if d := p.duplicateOf; d != nil {
		p.problem(status.DuplicateZone, "zone %s is already declared by DNSZone %s/%s on the same servers; delete one of the two or give them different instances",
			p.zone.Spec.ZoneName, d.Namespace, d.Name)
		p.releaseAll()
		s.builder = nil // When it becomes the one that is served, all its objects have to be marked.
		return false, err
	}
	return true, err
}

func (p *pass) problem(reason, format string, args ...any) {
	p.event.Problem = status.No(reason, fmt.Sprintf(format, args...))
}

// releaseAll lets go of all that leaves: no server holds anything of it for this zone.
func (p *pass) releaseAll() {
	p.event.Released = slices.Collect(maps.Values(p.state.leaving))
	clear(p.state.leaving)
}

// services are where the Services of the zone's instances with a role serve DNS, as "IP:port".
func (p *pass) services(role v1beta1.ServerRole) []string {
	addresses := membership.ServiceAddresses(p.instances, role)
	if p.signing.on() {
		addresses = p.signing.addresses(p.instances, role)
	}
	var services []string
	for _, a := range addresses {
		services = append(services, netip.AddrPortFrom(a, named.ServicePort).String())
	}
	return services
}

// findPrimaries fills in the primaries of the zone, and says what is missing when there is none to work with.
func (p *pass) findPrimaries(ctx context.Context) bool {
	for _, server := range p.servers {
		if server.Role == observe.Primary {
			p.primaries = append(p.primaries, p.primaryAt(ctx, server))
		}
	}
	switch {
	case len(p.instances) == 0:
		p.problem(status.NoPrimaryInstances, "no instance serves this zone: clusterRef %q names no cluster with instances and no bind9InstancesFrom selects any",
			p.zone.Spec.ClusterRef)
		p.releaseAll()
	case len(p.primaries) == 0:
		p.problem(status.NoPrimaryInstances, "none of the zone's instances is a primary: %s", strings.Join(instanceNames(p.instances), ", "))
	case !p.anyAddress():
		p.problem(status.PrimaryFailed, "no pod of a primary runs yet: %v", p.primaries[0].err)
		p.event.Servers = p.outcomes()
	case p.unfit() != "":
		p.problem(status.ReconcileFailed, "%s", p.unfit())
		p.event.Servers = p.outcomes()
	default:
		p.state.keepPrimaries(p.primaries)
		return true
	}
	return false
}

func (p *pass) anyAddress() bool {
	for _, primary := range p.primaries {
		if primary.server.Addr.IsValid() {
			return true
		}
	}
	return false
}

func instanceNames(instances []*v1beta1.Bind9Instance) []string {
	var names []string
	for _, i := range instances {
		names = append(names, i.Namespace+"/"+i.Name)
	}
	return names
}

func (p *pass) instanceOf(server observe.Server) *v1beta1.Bind9Instance {
	for _, i := range p.instances {
		if i.Namespace == server.Namespace && i.Name == server.Instance {
			return i
		}
	}
	return nil
}

// outcomes lists every server as one that nothing is known of yet.
func (p *pass) outcomes() []syncevent.ServerOutcome {
	outcomes := make([]syncevent.ServerOutcome, len(p.servers))
	for i, server := range p.servers {
		outcomes[i].Server = server
		if server.PodPhase != corev1.PodRunning && server.Message != "" {
			outcomes[i].Err = fmt.Errorf("%s", server.Message)
		}
	}
	return outcomes
}

package controller

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// pass is one pass over one zone: from its members to the outcome that listeners are told.
type pass struct {
	*zoneReconciler
	members
	zone *v1beta1.DNSZone
	// name is the zone's canonical DNS name.
	name    string
	desired *source.Zone
	// owned are the RRsets that we have published or may have: only these may be deleted.
	owned     map[rrset.Key]struct{}
	primaries []*primary
	target    target
	event     syncevent.SyncCompleted
}

func newPass(r *zoneReconciler, zone *v1beta1.DNSZone, m members) *pass {
	p := &pass{zoneReconciler: r, members: m, zone: zone, event: syncevent.SyncCompleted{
		Zone: zone, Problem: noProblem(), Records: make(map[types.UID]v1beta1.Record, len(m.selected)),
	}}
	for _, record := range m.selected {
		p.event.Records[record.GetUID()] = record
	}
	return p
}

// run does the pass. Whatever goes wrong becomes part of the outcome, so that it reaches the objects concerned.
func (p *pass) run(ctx context.Context) syncevent.SyncCompleted {
	p.steps(ctx)
	p.event.At = p.now()
	return p.event
}

func (p *pass) steps(ctx context.Context) {
	if d := p.duplicateOf; d != nil {
		p.problem(status.DuplicateZone, "zone %s is already declared by DNSZone %s/%s on the same servers; delete one of the two or give them different instances",
			p.zone.Spec.ZoneName, d.Namespace, d.Name)
		return
	}
	desired, err := source.Build(p.zone, p.selected, source.Options{ServerAddresses: source.ServiceAddresses(p.instances, v1beta1.RolePrimary)})
	if err != nil {
		p.problem(status.ReconcileFailed, "%v", err)
		return
	}
	p.desired, p.name, p.event.Desired = desired, desired.Name, desired
	p.owned = p.publishedKeys()
	if len(p.instances) == 0 {
		p.event.Released = p.leaving
	}
	if !p.findPrimaries(ctx) {
		return
	}
	p.syncPrimaries(ctx)
	p.syncSecondaries(ctx)
}

func (p *pass) problem(reason, format string, args ...any) {
	p.event.Problem = status.No(reason, fmt.Sprintf(format, args...))
}

// services are where the Services of the zone's instances with a role serve DNS, as "IP:port".
func (p *pass) services(role v1beta1.ServerRole) []string {
	var services []string
	for _, a := range source.ServiceAddresses(p.instances, role) {
		services = append(services, netip.AddrPortFrom(a, named.ServicePort).String())
	}
	return services
}

// publishedKeys are the RRsets that the zone's objects say they have in DNS, and those that they ask for now: a crash
// between an update and the status that tells of it leaves data under a name that only the spec knows.
func (p *pass) publishedKeys() map[rrset.Key]struct{} {
	keys := make(map[rrset.Key]struct{}, len(p.selected)+len(p.leaving))
	for _, records := range [][]v1beta1.Record{p.selected, p.leaving} {
		for _, record := range records {
			for _, key := range p.keysOf(record) {
				keys[key] = struct{}{}
			}
		}
	}
	return keys
}

// keysOf are the RRsets that a record has data in, as far as its status and its spec tell.
func (p *pass) keysOf(record v1beta1.Record) []rrset.Key {
	rrtype := v1beta1.KindOf(record).RRType
	var keys []rrset.Key
	if published := record.GetRecordStatus().PublishedName; published != "" {
		if name, err := rrset.CanonicalName(published); err == nil {
			keys = append(keys, rrset.Key{Name: name, Type: rrtype})
		}
	}
	if name, err := source.OwnerName(record.RecordName(), p.name); err == nil {
		keys = append(keys, rrset.Key{Name: name, Type: rrtype})
	}
	return keys
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
	case len(p.primaries) == 0:
		p.problem(status.NoPrimaryInstances, "none of the zone's instances is a primary: %s", strings.Join(instanceNames(p.instances), ", "))
	case !p.anyAddress():
		p.problem(status.PrimaryFailed, "no pod of a primary runs yet: %v", p.primaries[0].err)
		p.event.Servers = p.outcomes()
	default:
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

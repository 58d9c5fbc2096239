package controller

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// leavingPause is how soon an instance looks again whether the zones that leave it have arrived elsewhere.
const leavingPause = time.Second

// departure is a zone that an instance's pods still have.
type departure struct {
	instance client.ObjectKey
	zone     string
}

// mayLeave tells whether a zone that is not the instance's any more may be taken off its pods: when no DNSZone gives it
// to others, or when these serve it. Until then the old servers answer, with what they had last.
func (p *instancePass) mayLeave(ctx context.Context, name string) (bool, error) {
	key := departure{client.ObjectKeyFromObject(p.instance), name}
	serving, of, err := p.arrived(ctx, name)
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	since, known := p.departures[key]
	if !known {
		since = p.now()
	}
	if leaves(serving, of, p.now().Sub(since)) {
		delete(p.departures, key)
		return true, nil
	}
	if p.departures == nil {
		p.departures = map[departure]time.Time{}
	}
	p.departures[key] = since
	return false, nil
}

// stay forgets departures of zones that are the instance's again.
func (p *instancePass) stay(assigned map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.departures, func(d departure, _ time.Time) bool {
		return d.instance == client.ObjectKeyFromObject(p.instance) && assigned[d.zone]
	})
}

// leaves decides for a zone that is to be served by a number of other instances and is by some of them. One that never
// comes up is waited for only so long, if another one serves the zone. While none does, the zone stays where it is.
func leaves(serving, of int, waited time.Duration) bool {
	return serving == of || serving > 0 && waited >= stuckAfter
}

// arrived counts the instances that are to serve the zone of that name, and those of them that do.
func (p *instancePass) arrived(ctx context.Context, name string) (serving, of int, err error) {
	var zones v1beta1.DNSZoneList
	if err := p.client.List(ctx, &zones, client.UnsafeDisableDeepCopy); err != nil {
		return 0, 0, err
	}
	instances, err := listInstances(ctx, p.client)
	if err != nil {
		return 0, 0, err
	}
	for _, zone := range pointers(zones.Items) {
		if source.DNSName(zone) != name || !zone.DeletionTimestamp.IsZero() || duplicate(zone) {
			continue
		}
		configured := map[client.ObjectKey]bool{}
		for _, i := range zone.Status.Bind9Instances {
			configured[client.ObjectKey{Namespace: i.Namespace, Name: i.Name}] = i.Status == v1beta1.ZoneConfigured
		}
		for _, i := range source.InstancesOf(zone, instances) {
			of++
			if configured[client.ObjectKeyFromObject(i)] {
				serving++
			}
		}
	}
	return serving, of, nil
}

// duplicate tells whether another DNSZone of the same name is served in place of this one.
func duplicate(zone *v1beta1.DNSZone) bool {
	ready := meta.FindStatusCondition(zone.Status.Conditions, status.Ready)
	return ready != nil && ready.Reason == status.DuplicateZone
}

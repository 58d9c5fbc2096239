package controller

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/membership"
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

// takeOff takes the zones off a pod that are not the instance's any more and may leave it. The error is the sidecar's.
func (l *podLook) takeOff(ctx context.Context, sidecar bindcar.Server, departing []string) (troubled, err error) {
	if len(departing) == 0 {
		return nil, nil
	}
	all, err := l.listHomes(ctx)
	if err != nil {
		return nil, err
	}
	for _, zone := range departing {
		if !l.mayLeave(zone, all) {
			l.leaving.Store(true)
			continue
		}
		if err := l.deps.Bindcar.DeleteZone(ctx, sidecar, zone); err != nil && !bindcar.IsNotFound(err) {
			return err, nil
		}
		log.FromContext(ctx).Info("zone taken off a pod that it is not assigned to", "pod", l.pod.Name, "zone", zone)
	}
	return nil, nil
}

// mayLeave tells whether a zone that is not the instance's any more may be taken off its pods: when no DNSZone gives it
// to others, or when these serve it. Until then the old servers answer, with what they had last.
func (p *instancePass) mayLeave(name string, all homes) bool {
	key := departure{client.ObjectKeyFromObject(p.instance), name}
	serving, of := all.arrived(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	since, known := p.departures[key]
	if !known {
		since = p.now()
	}
	if leaves(serving, of, p.now().Sub(since)) {
		delete(p.departures, key)
		return true
	}
	if p.departures == nil {
		p.departures = map[departure]time.Time{}
	}
	p.departures[key] = since
	return false
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

// homes are where zones are to be served.
type homes struct {
	// zones are those that are served under each name, but the ones on their way out.
	zones     map[string][]*v1beta1.DNSZone
	instances []*v1beta1.Bind9Instance
}

// listHomes has to come after a pod has told which zones it has: then it knows of every zone that the pod was given.
func (p *instancePass) listHomes(ctx context.Context) (homes, error) {
	var zones v1beta1.DNSZoneList
	if err := p.client.List(ctx, &zones, client.UnsafeDisableDeepCopy); err != nil {
		return homes{}, err
	}
	instances, err := listInstances(ctx, p.client)
	return homesOf(pointers(zones.Items), instances), err
}

func homesOf(zones []*v1beta1.DNSZone, instances []*v1beta1.Bind9Instance) homes {
	all := homes{zones: make(map[string][]*v1beta1.DNSZone, len(zones)), instances: instances}
	for _, zone := range zones {
		if zone.DeletionTimestamp.IsZero() && !duplicate(zone) {
			name := source.DNSName(zone)
			all.zones[name] = append(all.zones[name], zone)
		}
	}
	return all
}

// arrived counts the instances that are to serve the zone of that name, and those of them that do.
func (h homes) arrived(name string) (serving, of int) {
	for _, zone := range h.zones[name] {
		configured := map[client.ObjectKey]bool{}
		for _, i := range zone.Status.Bind9Instances {
			configured[client.ObjectKey{Namespace: i.Namespace, Name: i.Name}] = i.Status == v1beta1.ZoneConfigured
		}
		for _, i := range membership.InstancesOf(zone, h.instances) {
			of++
			if configured[client.ObjectKeyFromObject(i)] {
				serving++
			}
		}
	}
	return serving, of
}

// duplicate tells whether another DNSZone of the same name is served in place of this one.
func duplicate(zone *v1beta1.DNSZone) bool {
	ready := meta.FindStatusCondition(zone.Status.Conditions, status.Ready)
	return ready != nil && ready.Reason == status.DuplicateZone
}

package podcheck

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
)

// maxRemovals is how many zones are removed from a pod in one check, maxLogged how many of them are named in the log.
const maxRemovals, maxLogged = 1000, 10

// removalInterval is how soon an instance is checked again whose zones wait until others serve them.
const removalInterval = time.Second

// zoneRemovals remembers since when zones wait to be removed from the pods of an instance. The zero value is empty.
type zoneRemovals struct {
	mu    sync.Mutex
	since map[zoneRemoval]time.Time
}

type zoneRemoval struct {
	instance client.ObjectKey
	zone     string
}

// isDue reports whether a zone may be removed that is to be served by a number of other instances and is by some of them.
func (r *zoneRemovals) isDue(removal zoneRemoval, serving, of int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, known := r.since[removal]
	if !known {
		since = now
	}
	if mayRemoveZone(serving, of, now.Sub(since)) {
		delete(r.since, removal)
		return true
	}
	if r.since == nil {
		r.since = map[zoneRemoval]time.Time{}
	}
	r.since[removal] = since
	return false
}

// keepAssigned forgets the removal of zones that are the instance's again.
func (r *zoneRemovals) keepAssigned(instance client.ObjectKey, assigned map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.since, func(removal zoneRemoval, _ time.Time) bool {
		return removal.instance == instance && assigned[removal.zone]
	})
}

// mayRemoveZone decides for a zone that is to be served by a number of other instances and is by some of them. One that
// never comes up is waited for only so long, if another one serves the zone. While none does, the zone stays where it is.
func mayRemoveZone(serving, of int, waited time.Duration) bool {
	return serving == of || serving > 0 && waited >= stuckAfter
}

// removeZones removes zones from a pod that are not its instance's any more, each when no DNSZone assigns it to other
// instances or when these serve it. Until then the old servers answer, with what they had last: waiting is true.
// sidecarErr is the sidecar's error.
func (c *Checker) removeZones(ctx context.Context, instance client.ObjectKey, sidecar bindcar.Address, surplus []bindcar.Zone) (waiting bool, sidecarErr, err error) {
	if len(surplus) == 0 {
		return false, nil, nil
	}
	targets, err := c.listAssignments(ctx)
	if err != nil {
		return false, nil, err
	}
	var removed []string
	defer func() { logRemoved(ctx, instance, sidecar, removed) }()
	for _, zone := range surplus {
		if len(removed) == maxRemovals {
			return true, nil, nil
		}
		if targets.isOn(zone.Name, instance) {
			continue // It has come back while the pod was asked.
		}
		serving, of := targets.countServing(zone)
		if !c.removals.isDue(zoneRemoval{instance, zone.Name}, serving, of, c.now()) {
			waiting = true
			continue
		}
		stays, err := c.staysByOwner(ctx, targets, instance, zone)
		if err != nil {
			log.FromContext(ctx).Info("no zone is removed from a server while its DNSZone cannot be read", "server", sidecar.Addr, "instance", instance, "zone", zone.Name, "reason", err.Error())
			return true, nil, nil
		}
		if stays {
			waiting = true
			continue
		}
		if err := c.sidecar.DeleteZone(ctx, sidecar, zone.Name, zone.OwnedBy()); err != nil && !bindcar.IsNotFound(err) {
			return waiting, err, nil
		}
		removed = append(removed, zone.Name)
	}
	return waiting, nil, nil
}

// staysByOwner reports whether the DNSZone whose data a pod has assigns it to the instance, as kube-apiserver has that. The controller, which has
// put the zone there, has a cache of its own: what this process does not know yet is no reason to remove it.
func (c *Checker) staysByOwner(ctx context.Context, known assignments, instance client.ObjectKey, zone bindcar.Zone) (bool, error) {
	namespace, name, ok := strings.Cut(zone.Owner, "/")
	if !ok {
		return false, nil
	}
	owner := &v1beta1.DNSZone{}
	if err := c.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, owner); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return assignmentsOf([]*v1beta1.DNSZone{owner}, known.fleet).isOn(zone.Name, instance), nil
}

// logRemoved logs zones that were removed from a pod, the first by name: a sidecar may list any number of any name.
func logRemoved(ctx context.Context, instance client.ObjectKey, sidecar bindcar.Address, zones []string) {
	if len(zones) > 0 {
		log.FromContext(ctx).Info("zones removed from a server that they are not assigned to", "server", sidecar.Addr, "instance", instance,
			"count", len(zones), "zones", status.JoinSome(zones, maxLogged, " "))
	}
}

// assignments are where zones are to be served.
type assignments struct {
	// zones are those that are served under each name, without those that are being deleted.
	zones map[string][]*v1beta1.DNSZone
	fleet *membership.Fleet
}

// listAssignments has to be called after a pod has listed its zones: then it knows every zone that the pod was given.
func (c *Checker) listAssignments(ctx context.Context) (assignments, error) {
	zones, err := inventory.ListZones(ctx, c.client)
	if err != nil {
		return assignments{}, err
	}
	all, err := inventory.Read(ctx, c.client, c.systemNamespace)
	return assignmentsOf(zones, all), err
}

func assignmentsOf(zones []*v1beta1.DNSZone, f *membership.Fleet) assignments {
	all := assignments{zones: make(map[string][]*v1beta1.DNSZone, len(zones)), fleet: f}
	for _, zone := range zones {
		if !v1beta1.IsGoing(zone) && !membership.IsRefused(zone) {
			name := declaration.DNSName(zone)
			all.zones[name] = append(all.zones[name], zone)
		}
	}
	return all
}

// isOn reports whether an instance is to serve the zone of that name.
func (a assignments) isOn(name string, instance client.ObjectKey) bool {
	return slices.ContainsFunc(a.zones[name], func(zone *v1beta1.DNSZone) bool {
		return slices.ContainsFunc(a.fleet.InstancesOf(zone), func(i *v1beta1.Bind9Instance) bool { return client.ObjectKeyFromObject(i) == instance })
	})
}

// countServing counts the instances that are to serve a pod's zone in its place, and those of them that do. Where its DNSZone is known, others
// of that name do not count: anybody may have one, on servers of their own.
func (a assignments) countServing(held bindcar.Zone) (serving, of int) {
	for _, zone := range a.zones[held.Name] {
		if held.Owner != "" && held.Owner != membership.KeyOfZone(zone).String() {
			continue
		}
		configured := map[client.ObjectKey]bool{}
		for _, i := range zone.Status.Bind9Instances {
			configured[client.ObjectKey{Namespace: i.Namespace, Name: i.Name}] = i.Status == v1beta1.ZoneConfigured
		}
		for _, i := range a.fleet.InstancesOf(zone) {
			of++
			if configured[client.ObjectKeyFromObject(i)] {
				serving++
			}
		}
	}
	return serving, of
}

package controller

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// rolloutPause is how soon an instance asks again for its turn to change.
const rolloutPause = 2 * time.Second

// rollout remembers when instances changed last: the cache does not tell at once.
type rollout struct {
	mu    sync.Mutex
	turns map[client.ObjectKey]time.Time
}

// member is what a roll-out has to know of an instance.
type member struct {
	// ready is the number of pods in service.
	ready int32
	// healthy: all pods are of the newest revision and ready. settled: and have been so for a moment.
	healthy, settled bool
	// turning: its change is so fresh that the rest may not tell of it yet.
	turning bool
	// exposed: the pod that is replaced first is in service while another one is not.
	exposed bool
}

func memberOf(set *appsv1.StatefulSet) member {
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	m := member{ready: set.Status.ReadyReplicas}
	m.healthy = set.Status.ObservedGeneration >= set.Generation && set.Status.UpdatedReplicas >= replicas && m.ready >= replicas
	m.settled = m.healthy && set.Status.AvailableReplicas >= replicas
	return m
}

// mayRoll decides whether an instance's pods may be replaced now. A healthy instance waits until all of its siblings,
// which serve the same zones, have settled: a change takes away one instance at a time, and stops at the first that it
// breaks. A broken one waits for nobody, for the change may be what mends it, unless that would take away the last pod
// in service.
func mayRoll(self member, siblings []member) bool {
	covered := false
	for _, s := range siblings {
		if self.healthy && (!s.settled || s.turning) {
			return false
		}
		covered = covered || s.ready > 0 && !s.turning
	}
	return self.healthy || self.ready == 0 || covered || !self.exposed
}

// takeTurn tells whether the pods of set, the instance's, may be replaced now, and notes that they are.
func (p *instancePass) takeTurn(ctx context.Context, set *appsv1.StatefulSet) (bool, error) {
	siblings, err := p.siblings(ctx)
	if err != nil {
		return false, err
	}
	self := memberOf(set)
	if !self.healthy && self.ready > 0 {
		if self.exposed, err = p.exposed(ctx, set); err != nil {
			return false, err
		}
	}
	p.rollout.mu.Lock()
	defer p.rollout.mu.Unlock()
	now := p.now()
	members := make([]member, 0, len(siblings))
	for _, key := range siblings {
		var other appsv1.StatefulSet
		if err := p.client.Get(ctx, key, &other); client.IgnoreNotFound(err) != nil {
			return false, err
		} else if err != nil {
			continue
		}
		m := memberOf(&other)
		at, turned := p.rollout.turns[key]
		m.turning = turned && now.Sub(at) < settling
		members = append(members, m)
	}
	if !mayRoll(self, members) {
		return false, nil
	}
	if p.rollout.turns == nil {
		p.rollout.turns = map[client.ObjectKey]time.Time{}
	}
	for key, at := range p.rollout.turns {
		if now.Sub(at) >= settling {
			delete(p.rollout.turns, key)
		}
	}
	p.rollout.turns[client.ObjectKeyFromObject(p.instance)] = now
	return true, nil
}

// siblings are the instances of the same cluster, and those that have a zone in common with this one.
func (p *instancePass) siblings(ctx context.Context) ([]client.ObjectKey, error) {
	instances, err := listInstances(ctx, p.client)
	if err != nil {
		return nil, err
	}
	var zones v1beta1.DNSZoneList
	if err := p.client.List(ctx, &zones, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	found := map[client.ObjectKey]bool{}
	if cluster := p.instance.Spec.ClusterRef; cluster != "" {
		for _, i := range instances {
			if i.Namespace == p.instance.Namespace && i.Spec.ClusterRef == cluster {
				found[client.ObjectKeyFromObject(i)] = true
			}
		}
	}
	for _, zone := range pointers(zones.Items) {
		if !membership.Serves(p.instance, zone) {
			continue
		}
		for _, i := range membership.InstancesOf(zone, instances) {
			found[client.ObjectKeyFromObject(i)] = true
		}
	}
	delete(found, client.ObjectKeyFromObject(p.instance))
	keys := make([]client.ObjectKey, 0, len(found))
	for key := range found {
		keys = append(keys, key)
	}
	return keys, nil
}

// exposed tells whether the pod that a StatefulSet replaces first, the one with the highest ordinal, is in service.
func (p *instancePass) exposed(ctx context.Context, set *appsv1.StatefulSet) (bool, error) {
	pods, err := p.pods(ctx)
	if err != nil {
		return false, err
	}
	pod := pods[named.PodName(set.Name, int(ptr.Deref(set.Spec.Replicas, 1))-1)]
	return pod != nil && status.PodReady(pod), nil
}

package instance

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// rolloutInterval is how soon an instance asks again for its turn to change.
const rolloutInterval = 2 * time.Second

// restartTime is how long a server may take to be in service again that was restarted. firstStatus is how long after its start a pod may have
// its first conditions.
const restartTime, firstStatus = 30 * time.Second, 2 * time.Second

// rollout decides when the pods of an instance may be replaced.
type rollout struct {
	client          client.Reader
	systemNamespace string
	mu              *sync.Mutex
	// recent holds the instances that changed so lately that the cache may not show it.
	recent *cache.Expiring
}

func newRollout(c client.Reader, systemNamespace string) rollout {
	return rollout{client: c, systemNamespace: systemNamespace, mu: &sync.Mutex{}, recent: cache.NewExpiring()}
}

// rolloutState is what a roll-out has to know of an instance.
type rolloutState struct {
	// ready is the number of pods in service.
	ready int32
	// healthy: all pods are of the newest revision and ready. settled: and have been so for a moment.
	healthy, settled bool
	// restarting: a pod was in service until a moment ago, and may be again without a change.
	restarting bool
	// changing: its change is so fresh that the rest may not show it yet.
	changing bool
	// exposed: the pod that is replaced first is in service while another one is not.
	exposed bool
}

func rolloutStateOf(set *appsv1.StatefulSet) rolloutState {
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	s := rolloutState{ready: set.Status.ReadyReplicas}
	s.healthy = set.Status.ObservedGeneration >= set.Generation && set.Status.UpdatedReplicas >= replicas && s.ready >= replicas
	s.settled = s.healthy && set.Status.AvailableReplicas >= replicas
	return s
}

// mayReplacePods decides whether an instance's pods may be replaced now. A healthy instance waits until all of its siblings,
// which serve the same zones, have settled: a change takes away one instance at a time, and stops at the first that it
// breaks. A broken one waits for nobody, because the change may repair it, unless that would take away the last pod in
// service. One that was only restarted is not broken: the change may be what has broken the others.
func mayReplacePods(self rolloutState, siblings []rolloutState) bool {
	covered := false
	for _, s := range siblings {
		if (self.healthy || self.restarting) && (!s.settled || s.changing) {
			return false
		}
		covered = covered || s.ready > 0 && !s.changing
	}
	return self.healthy || self.ready == 0 || covered || !self.exposed
}

// takeTurn lets the pods of set, the instance's, be replaced now, and remembers that they are; false means not yet.
func (r rollout) takeTurn(ctx context.Context, instance *v1beta1.Bind9Instance, set *appsv1.StatefulSet) (bool, error) {
	siblings, err := r.siblingsOf(ctx, instance)
	if err != nil {
		return false, err
	}
	self := rolloutStateOf(set)
	if !self.healthy {
		if err := r.lookAtPods(ctx, set, &self); err != nil {
			return false, err
		}
	}
	states := make(map[client.ObjectKey]rolloutState, len(siblings))
	for _, key := range siblings {
		var other appsv1.StatefulSet
		if err := r.client.Get(ctx, key, &other); client.IgnoreNotFound(err) != nil {
			return false, err
		} else if err != nil {
			continue
		}
		states[key] = rolloutStateOf(&other)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, state := range states { // One that took its turn after it was read is noted here.
		_, state.changing = r.recent.Get(key)
		states[key] = state
	}
	if !mayReplacePods(self, slices.Collect(maps.Values(states))) {
		return false, nil
	}
	r.recent.Set(client.ObjectKeyFromObject(instance), true, apply.CacheLag)
	return true, nil
}

// siblingsOf are the instances of the same cluster, and those that have a zone in common with this one.
func (r rollout) siblingsOf(ctx context.Context, instance *v1beta1.Bind9Instance) ([]client.ObjectKey, error) {
	instances, err := inventory.ListLiveInstances(ctx, r.client)
	if err != nil {
		return nil, err
	}
	all, err := inventory.Read(ctx, r.client, r.systemNamespace)
	if err != nil {
		return nil, err
	}
	zones, err := inventory.ListZones(ctx, r.client)
	if err != nil {
		return nil, err
	}
	found := map[client.ObjectKey]struct{}{}
	if cluster := instance.Spec.ClusterRef; cluster != "" {
		for _, i := range instances {
			if i.Namespace == instance.Namespace && i.Spec.ClusterRef == cluster {
				found[client.ObjectKeyFromObject(i)] = struct{}{}
			}
		}
	}
	for _, zone := range zones {
		if !all.Serves(instance, zone) {
			continue
		}
		for _, i := range all.InstancesOf(zone) {
			found[client.ObjectKeyFromObject(i)] = struct{}{}
		}
	}
	delete(found, client.ObjectKeyFromObject(instance))
	return slices.Collect(maps.Keys(found)), nil
}

// lookAtPods completes the state of an instance that is not healthy. A StatefulSet replaces the pod with the highest ordinal first.
func (r rollout) lookAtPods(ctx context.Context, set *appsv1.StatefulSet, state *rolloutState) error {
	pods, err := inventory.PodsByName(ctx, r.client, set.Namespace, set.Name)
	if err != nil {
		return err
	}
	first := pods[named.PodName(set.Name, int(ptr.Deref(set.Spec.Replicas, 1))-1)]
	state.exposed = state.ready > 0 && first != nil && status.PodReady(first)
	for _, pod := range pods {
		state.restarting = state.restarting || isRestarting(pod, time.Now())
	}
	return nil
}

// isRestarting reports whether a pod was in service until a moment ago. One that never was has no other condition than that of its start.
func isRestarting(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp == nil && pod.Status.StartTime != nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue &&
			now.Sub(c.LastTransitionTime.Time) < restartTime && c.LastTransitionTime.Sub(pod.Status.StartTime.Time) > firstStatus
	})
}

package controller

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// rolloutPause is how soon an instance asks again for its turn to change.
const rolloutPause = 2 * time.Second

// rollout remembers which instance of a cluster changed last: the cache does not tell at once.
type rollout struct {
	mu   sync.Mutex
	last map[client.ObjectKey]turn
}

type turn struct {
	instance string
	at       time.Time
}

// settled tells whether all pods of a StatefulSet are of its newest revision and ready.
func settled(set *appsv1.StatefulSet) bool {
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	return set.Status.ObservedGeneration >= set.Generation && set.Status.UpdatedReplicas >= replicas && set.Status.ReadyReplicas >= replicas
}

// takeTurn tells whether the pods of a healthy instance may be replaced now: one instance of a cluster at a time, so
// that a change of the cluster never takes all its servers away. An instance that is not healthy need not wait.
func (p *instancePass) takeTurn(ctx context.Context) (bool, error) {
	name := p.instance.Spec.ClusterRef
	if name == "" {
		return true, nil
	}
	p.rollout.mu.Lock()
	defer p.rollout.mu.Unlock()
	key := client.ObjectKey{Namespace: p.instance.Namespace, Name: name}
	if last, ok := p.rollout.last[key]; ok && last.instance != p.instance.Name && p.now().Sub(last.at) < settling {
		return false, nil
	}
	var siblings appsv1.StatefulSetList
	if err := p.client.List(ctx, &siblings, client.InNamespace(key.Namespace), client.MatchingLabels{v1beta1.ClusterLabel: name}); err != nil {
		return false, err
	}
	for i := range siblings.Items {
		if siblings.Items[i].Name != p.instance.Name && !settled(&siblings.Items[i]) {
			return false, nil
		}
	}
	if p.rollout.last == nil {
		p.rollout.last = map[client.ObjectKey]turn{}
	}
	p.rollout.last[key] = turn{p.instance.Name, p.now()}
	return true, nil
}

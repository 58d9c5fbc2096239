package keyrotation

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// serverKeys is a pod that has an owner's keys, and which of them its sidecar reports. One that does not answer has none.
type serverKeys struct {
	pod  *corev1.Pod
	keys bindcar.ServerKeys
}

// keyFacts ask the servers when a step depends on it.
func (p *ensurePass) keyFacts(role named.KeyRole) named.KeyFacts {
	onAll := func(holds func(serverKeys) bool) bool {
		servers := p.servers()
		return servers != nil && !slices.ContainsFunc(servers, func(s serverKeys) bool { return !holds(s) })
	}
	return named.KeyFacts{
		Loaded: func(name string) bool {
			return onAll(func(s serverKeys) bool {
				return role == named.KeyUpdate && s.pod.Labels[v1beta1.RoleLabel] != string(v1beta1.RolePrimary) ||
					slices.Contains(s.keys.Loaded[string(role)], name)
			})
		},
		// Updates are signed by the controller alone, which looks at the ring in time.
		Signing: func(name string) bool {
			return role == named.KeyUpdate || onAll(func(s serverKeys) bool { return s.keys.Signing == name })
		},
	}
}

// askServers asks every pod that may have been given its keys; nil when the pods could not be listed. A pod without a node gets the keys of the time when it has
// one; one that is being deleted or has ended serves nobody.
func (p *ensurePass) askServers(ctx context.Context) []serverKeys {
	pods, err := inventory.ListPods(ctx, p.Client, client.InNamespace(p.owner.Namespace), client.MatchingLabels(p.owner.podLabels))
	if err != nil {
		log.FromContext(ctx).Error(err, "listing the servers that have a key")
		return nil
	}
	servers := []serverKeys{}
	for _, pod := range pods {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.DeletionTimestamp.IsZero() && pod.Spec.NodeName != "" && !ended {
			servers = append(servers, serverKeys{pod: pod})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range servers {
		wg.Go(func() {
			pod := servers[i].pod
			sidecar, err := inventory.SidecarOfPod(pod)
			if err != nil || !inventory.HasRunningSidecar(pod) {
				return
			}
			if servers[i].keys, err = p.Sidecar.Keys(ctx, sidecar); err != nil {
				log.FromContext(ctx).V(1).Info("server does not report its keys", "pod", pod.Name, "reason", err.Error())
			}
		})
	}
	wg.Wait()
	return servers
}

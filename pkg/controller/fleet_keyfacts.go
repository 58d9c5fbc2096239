package controller

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/named"
)

// keyServer is a pod that has an owner's keys, and what its sidecar said of them. One that said nothing has none.
type keyServer struct {
	pod  *corev1.Pod
	keys bindcar.ServerKeys
}

// facts are what the servers say, asked when a step depends on it.
func (p *keysPass) facts(ctx context.Context, role named.KeyRole) named.KeyFacts {
	every := func(holds func(keyServer) bool) bool {
		servers := p.servers(ctx)
		return servers != nil && !slices.ContainsFunc(servers, func(s keyServer) bool { return !holds(s) })
	}
	return named.KeyFacts{
		Loaded: func(name string) bool {
			return every(func(s keyServer) bool {
				return role == named.KeyUpdate && s.pod.Labels[v1beta1.RoleLabel] != string(v1beta1.RolePrimary) ||
					slices.Contains(s.keys.Loaded[string(role)], name)
			})
		},
		// Updates are signed by the controller alone, which looks at the ring in time.
		Signing: func(name string) bool {
			return role == named.KeyUpdate || every(func(s keyServer) bool { return s.keys.Signing == name })
		},
	}
}

// askOnce gives what asks all servers, the first time that it is called. Nil means that they could not be listed.
func (p *keysPass) askOnce() func(context.Context) []keyServer {
	var servers []keyServer
	asked := false
	return func(ctx context.Context) []keyServer {
		if !asked {
			asked, servers = true, p.ask(ctx)
		}
		return servers
	}
}

// ask asks every pod that may have been given its keys. A pod that no node has yet gets the keys of then; one that is on
// its way out or has ended serves nobody.
func (p *keysPass) ask(ctx context.Context) []keyServer {
	var list corev1.PodList
	if err := p.client.List(ctx, &list, client.InNamespace(p.owner.namespace), client.MatchingLabels(p.owner.pods), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing the servers that have a key")
		return nil
	}
	servers := []keyServer{}
	for _, pod := range pointers(list.Items) {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.DeletionTimestamp.IsZero() && pod.Spec.NodeName != "" && !ended {
			servers = append(servers, keyServer{pod: pod})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range servers {
		wg.Go(func() {
			pod := servers[i].pod
			ip, err := netip.ParseAddr(pod.Status.PodIP)
			if err != nil || !podAnswers(pod) {
				return
			}
			servers[i].keys, err = p.deps.Bindcar.Keys(ctx, bindcar.Server{
				Addr: netip.AddrPortFrom(ip, named.SidecarPort), Namespace: pod.Namespace, Instance: pod.Labels[named.LabelInstance],
			})
			if err != nil {
				log.FromContext(ctx).V(1).Info("a server does not tell its keys", "pod", pod.Name, "reason", err.Error())
			}
		})
	}
	wg.Wait()
	return servers
}

// wakeInstances has the instances of an owner tell of the rotation of their keys.
func (r *clusterReconciler) wakeInstances(instances map[string]*v1beta1.Bind9Instance) {
	for _, i := range instances {
		o := &v1beta1.Bind9Instance{}
		o.Namespace, o.Name = i.Namespace, i.Name
		select {
		case r.deps.Provisioned <- event.GenericEvent{Object: o}:
		default: // They are woken by much else.
		}
	}
}

package inventory

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

// ListZones reads zones of the cache, which must not be changed.
func ListZones(ctx context.Context, c client.Reader, options ...client.ListOption) ([]*v1beta1.DNSZone, error) {
	var list v1beta1.DNSZoneList
	err := c.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...)
	return pointersTo(list.Items), err
}

// ListInstances reads instances of the cache, which must not be changed.
func ListInstances(ctx context.Context, c client.Reader, options ...client.ListOption) ([]*v1beta1.Bind9Instance, error) {
	var list v1beta1.Bind9InstanceList
	err := c.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...)
	return pointersTo(list.Items), err
}

// ListLiveInstances reads all instances that are not being deleted; they must not be changed.
func ListLiveInstances(ctx context.Context, c client.Reader) ([]*v1beta1.Bind9Instance, error) {
	all, err := ListInstances(ctx, c)
	return membership.LiveInstances(all), err
}

// Read is ReadFleet from the cache, with the instances that are not being deleted.
func Read(ctx context.Context, c client.Reader, systemNamespace string) (*membership.Fleet, error) {
	instances, err := ListLiveInstances(ctx, c)
	if err != nil {
		return nil, err
	}
	return ReadFleet(ctx, c, systemNamespace, instances, client.UnsafeDisableDeepCopy)
}

// ReadFleet reads what decides on which of some instances and DNSProviders zones are. The instances of cluster-scoped clusters that name
// no namespace are in systemNamespace.
func ReadFleet(ctx context.Context, c client.Reader, systemNamespace string, instances []*v1beta1.Bind9Instance, options ...client.ListOption) (*membership.Fleet, error) {
	var clusters v1beta1.Bind9GlobalClusterList
	var providers v1beta1.ClusterBind9ProviderList
	var grants v1beta1.ZoneGrantList
	var dnsProviders v1beta1.DNSProviderList
	for _, list := range []client.ObjectList{&clusters, &providers, &grants, &dnsProviders} {
		if err := c.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("listing %T: %w", list, err)
		}
	}
	return membership.NewFleet(membership.FleetObjects{
		Instances: instances, Clusters: pointersTo(clusters.Items), Providers: pointersTo(providers.Items),
		Grants: pointersTo(grants.Items), DNSProviders: pointersTo(dnsProviders.Items),
	}, systemNamespace), nil
}

// ListPods reads pods of the cache, which must not be changed.
func ListPods(ctx context.Context, c client.Reader, options ...client.ListOption) ([]*corev1.Pod, error) {
	var list corev1.PodList
	err := c.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...)
	return pointersTo(list.Items), err
}

// ListServers lists the servers that the instances should have, with what their pods say.
func ListServers(ctx context.Context, c client.Reader, instances []*v1beta1.Bind9Instance) ([]observe.Server, error) {
	var pods []*corev1.Pod
	seen := map[string]bool{}
	for _, i := range instances {
		if seen[i.Namespace] {
			continue
		}
		seen[i.Namespace] = true
		more, err := ListPods(ctx, c, client.InNamespace(i.Namespace))
		if err != nil {
			return nil, err
		}
		pods = append(pods, more...)
	}
	return serving.Servers(instances, pods), nil
}

func pointersTo[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// SidecarOf is where the sidecar beside a server listens.
func SidecarOf(s observe.Server) bindcar.Address {
	return bindcar.Address{Addr: netip.AddrPortFrom(s.Addr.Addr(), layout.SidecarPort), Namespace: s.Namespace, Instance: s.Instance}
}

// PodsByName returns the pods of an instance, by name.
func PodsByName(ctx context.Context, c client.Reader, namespace, instance string) (map[string]*corev1.Pod, error) {
	list, err := ListPods(ctx, c, client.InNamespace(namespace), client.MatchingLabels(named.SelectorLabels(instance)))
	pods := make(map[string]*corev1.Pod, len(list))
	for _, pod := range list {
		pods[pod.Name] = pod
	}
	return pods, err
}

// SidecarOfPod is where the sidecar in a pod listens. It is an error when the pod has no address yet.
func SidecarOfPod(pod *corev1.Pod) (bindcar.Address, error) {
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	return bindcar.Address{
		Addr: netip.AddrPortFrom(ip, layout.SidecarPort), Namespace: pod.Namespace, Instance: pod.Labels[serving.LabelInstance],
	}, err
}

// HasRunningSidecar reports whether it makes sense to talk to a pod's sidecar.
func HasRunningSidecar(pod *corev1.Pod) bool {
	if pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning || !pod.DeletionTimestamp.IsZero() {
		return false
	}
	return len(RunningContainers(pod)) == len(pod.Spec.Containers)
}

// RunningContainers maps the containers that have started to how often they did.
func RunningContainers(pod *corev1.Pod) map[string]int32 {
	running := map[string]int32{}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil {
			running[c.Name] = c.RestartCount + 1
		}
	}
	return running
}

// IsTerminating reports whether a namespace is being deleted, or does not exist. Through a reader that has no cache, false means that
// nothing was deleted with the namespace before the call: it has its deletionTimestamp before anything in it has.
func IsTerminating(ctx context.Context, live client.Reader, namespace string) (bool, error) {
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := live.Get(ctx, client.ObjectKey{Name: namespace}, head); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return !head.DeletionTimestamp.IsZero(), nil
}

package serving

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// Servers returns the pods that the instances should have: <instance>-0 up to the number of replicas. Pods that exist are
// found among pods by namespace, name and label. Primaries come first; further order is by namespace, cluster, instance (by
// its number in the cluster) and pod.
func Servers(instances []*v1beta1.Bind9Instance, pods []*corev1.Pod) []observe.Server {
	found := make(map[[2]string]*corev1.Pod, len(pods))
	for _, p := range pods {
		found[[2]string{p.Namespace, p.Name}] = p
	}
	var servers []observe.Server
	for _, i := range slices.SortedFunc(slices.Values(instances), CompareInstances) {
		foreign := foreignEndpoints(i)
		for n := range replicaCount(i) {
			s := observe.Server{Namespace: i.Namespace, Instance: i.Name, Pod: fmt.Sprintf("%s-%d", i.Name, n), Role: roleOf(i)}
			s.Foreign = foreign
			s.Service, _ = netip.ParseAddr(i.Status.ServiceAddress) // it may be a host name
			s.ServiceAddresses = ClientAddresses(i)
			if ports := i.Status.ServiceNodePorts; ports != nil {
				s.NodePorts = [2]uint16{uint16(ports.UDP), uint16(ports.TCP)} //nolint:gosec // ports
			}
			if p := found[[2]string{s.Namespace, s.Pod}]; p != nil && p.Labels[LabelInstance] == i.Name {
				addPodStatus(&s, p)
			}
			servers = append(servers, s)
		}
	}
	return servers
}

// ClientAddresses returns the addresses at which clients reach the Service of an instance.
func ClientAddresses(i *v1beta1.Bind9Instance) (addresses []netip.Addr) {
	all := i.Status.ServiceAddresses
	if len(all) == 0 && !i.Status.ServiceExposed {
		all = []string{i.Status.ServiceAddress}
	}
	for _, s := range all {
		if a, err := netip.ParseAddr(s); err == nil {
			addresses = append(addresses, a)
		}
	}
	return addresses
}

func foreignEndpoints(i *v1beta1.Bind9Instance) string {
	ready := meta.FindStatusCondition(i.Status.Conditions, status.Ready)
	if ready == nil || ready.Reason != status.ForeignPods {
		return ""
	}
	return "instance " + i.Name + ": " + ready.Message
}

// CompareInstances is the order of Servers. It has web-2 before web-10.
func CompareInstances(a, b *v1beta1.Bind9Instance) int {
	aStem, aNumber := splitNumber(a.Name)
	bStem, bNumber := splitNumber(b.Name)
	return cmp.Or(
		cmp.Compare(roleOf(a), roleOf(b)), // Primary before Secondary
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Spec.ClusterRef, b.Spec.ClusterRef),
		cmp.Compare(instanceIndex(a), instanceIndex(b)),
		cmp.Compare(aStem, bStem), cmp.Compare(len(aNumber), len(bNumber)), cmp.Compare(aNumber, bNumber), cmp.Compare(a.Name, b.Name),
	)
}

// splitNumber splits the number off the end of a name.
func splitNumber(name string) (stem, number string) {
	stem = strings.TrimRight(name, "0123456789")
	return stem, strings.TrimLeft(name[len(stem):], "0")
}

func roleOf(i *v1beta1.Bind9Instance) observe.Role {
	if i.Spec.Role.Normalize() == v1beta1.RolePrimary {
		return observe.Primary
	}
	return observe.Secondary
}

func instanceIndex(i *v1beta1.Bind9Instance) int {
	n, _ := strconv.Atoi(i.Annotations[v1beta1.InstanceIndexAnnotation])
	return n
}

func replicaCount(i *v1beta1.Bind9Instance) int32 { return ptr.Deref(i.Spec.Replicas, 1) }

// addPodStatus sets what follows from the pod's status.
func addPodStatus(s *observe.Server, p *corev1.Pod) {
	s.PodPhase = p.Status.Phase
	for _, c := range p.Status.ContainerStatuses {
		s.Restarts += c.RestartCount
	}
	s.PodReady = status.PodHas(p, corev1.PodReady)
	s.Message = podMessage(p)
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return // Another pod may have its address by now.
	}
	s.Node, _ = netip.ParseAddr(p.Status.HostIP)
	if ip, err := netip.ParseAddr(p.Status.PodIP); err == nil {
		s.Addr = netip.AddrPortFrom(ip, Port)
	}
}

// podMessage returns what keeps the pod from running, the most specific first.
func podMessage(p *corev1.Pod) string {
	if !p.DeletionTimestamp.IsZero() {
		return "the pod is being deleted"
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if m := containerMessage(c); m != "" {
			return m
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return joinReason(c.Reason, c.Message)
		}
	}
	return joinReason(p.Status.Reason, p.Status.Message)
}

func containerMessage(c corev1.ContainerStatus) string {
	switch w, t := c.State.Waiting, c.State.Terminated; {
	case w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing":
		return "container " + c.Name + ": " + joinReason(w.Reason, w.Message)
	case t != nil && t.ExitCode != 0:
		return fmt.Sprintf("container %s: %s", c.Name, joinReason(cmp.Or(t.Reason, "exited"), fmt.Sprintf("exit code %d", t.ExitCode)))
	}
	return ""
}

func joinReason(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

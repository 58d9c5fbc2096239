package observe

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
)

// Role of a server in its zones.
type Role string

// The roles.
const (
	Primary   Role = "Primary"
	Secondary Role = "Secondary"
)

// Server is one BIND pod that should exist, whether it does or not.
type Server struct {
	Namespace, Instance, Pod string
	Role                     Role
	// Addr is where the pod answers DNS; not valid while it has no address of its own.
	Addr netip.AddrPort
	// Service is the address of the instance's Service; not valid while it has none.
	Service netip.Addr
	// PodPhase is empty when the pod does not exist.
	PodPhase corev1.PodPhase
	PodReady bool
	// Restarts counts those of all containers.
	Restarts int32
	// Message says why the pod does not run, in Kubernetes' words; empty when it runs or nothing is known.
	Message string
}

// Servers lists the pods that the instances should have: <instance>-0 up to the number of replicas. Pods that exist are
// found among pods by namespace, name and label. Primaries come first; then the order is that of namespaces, clusters,
// instances (by their number in the cluster) and pods.
func Servers(instances []*v1beta1.Bind9Instance, pods []*corev1.Pod) []Server {
	found := make(map[[2]string]*corev1.Pod, len(pods))
	for _, p := range pods {
		found[[2]string{p.Namespace, p.Name}] = p
	}
	var servers []Server
	for _, i := range slices.SortedFunc(slices.Values(instances), compareInstances) {
		for n := range replicas(i) {
			s := Server{Namespace: i.Namespace, Instance: i.Name, Pod: fmt.Sprintf("%s-%d", i.Name, n), Role: roleOf(i)}
			s.Service, _ = netip.ParseAddr(i.Status.ServiceAddress) // it may be a host name
			if p := found[[2]string{s.Namespace, s.Pod}]; p != nil && p.Labels[named.LabelInstance] == i.Name {
				s.describe(p)
			}
			servers = append(servers, s)
		}
	}
	return servers
}

func compareInstances(a, b *v1beta1.Bind9Instance) int {
	return cmp.Or(
		cmp.Compare(roleOf(a), roleOf(b)), // Primary before Secondary
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Spec.ClusterRef, b.Spec.ClusterRef),
		cmp.Compare(indexOf(a), indexOf(b)),
		cmp.Compare(a.Name, b.Name),
	)
}

func roleOf(i *v1beta1.Bind9Instance) Role {
	if i.Spec.Role.Normalize() == v1beta1.RolePrimary {
		return Primary
	}
	return Secondary
}

func indexOf(i *v1beta1.Bind9Instance) int {
	n, _ := strconv.Atoi(i.Annotations[v1beta1.InstanceIndexAnnotation])
	return n
}

func replicas(i *v1beta1.Bind9Instance) int32 {
	if i.Spec.Replicas == nil {
		return 1
	}
	return *i.Spec.Replicas
}

// describe adds what the pod's status tells.
func (s *Server) describe(p *corev1.Pod) {
	s.PodPhase = p.Status.Phase
	for _, c := range p.Status.ContainerStatuses {
		s.Restarts += c.RestartCount
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			s.PodReady = c.Status == corev1.ConditionTrue
		}
	}
	s.Message = messageOf(p)
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return // Its address may be another pod's by now.
	}
	if ip, err := netip.ParseAddr(p.Status.PodIP); err == nil {
		s.Addr = netip.AddrPortFrom(ip, named.Port)
	}
}

// messageOf finds what keeps the pod from running, the most telling first.
func messageOf(p *corev1.Pod) string {
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
			return joined(c.Reason, c.Message)
		}
	}
	return joined(p.Status.Reason, p.Status.Message)
}

func containerMessage(c corev1.ContainerStatus) string {
	const usual, init = "ContainerCreating", "PodInitializing"
	switch w, t := c.State.Waiting, c.State.Terminated; {
	case w != nil && w.Reason != "" && w.Reason != usual && w.Reason != init:
		return "container " + c.Name + ": " + joined(w.Reason, w.Message)
	case t != nil && t.ExitCode != 0:
		return fmt.Sprintf("container %s: %s", c.Name, joined(cmp.Or(t.Reason, "exited"), fmt.Sprintf("exit code %d", t.ExitCode)))
	}
	return ""
}

func joined(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

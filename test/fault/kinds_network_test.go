package fault

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

// rule is one that the packet filter of a pod has during a fault.
type rule []string

// networkKinds cut, refuse and lose packets in the network of a pod, in one direction where that makes a difference.
var networkKinds = []kind{
	{"cut-dns-in", 4, allPods, false, filter(rule{"INPUT", "-p", "udp", "--dport", dnsPort, "-j", "DROP"}, rule{"INPUT", "-p", "tcp", "--dport", dnsPort, "-j", "DROP"})},
	{"cut-dns-out", 3, allPods, false, filter(rule{"OUTPUT", "-p", "udp", "--sport", dnsPort, "-j", "DROP"}, rule{"OUTPUT", "-p", "tcp", "--sport", dnsPort, "-j", "DROP"})},
	{"cut-transfers", 4, podsWithRole("secondary"), false, filter(rule{"OUTPUT", "-p", "tcp", "-m", "multiport", "--dports", "53," + dnsPort, "-j", "DROP"})},
	{"refuse-tcp", 3, allPods, false, filter(rule{"INPUT", "-p", "tcp", "--dport", dnsPort, "-j", "REJECT", "--reject-with", "tcp-reset"})},
	{"cut-notify", 3, podsWithRole("primary"), false, filter(rule{"OUTPUT", "-p", "udp", "-m", "multiport", "--dports", "53," + dnsPort, "-j", "DROP"})},
	{"cut-sidecar", 3, allPods, false, filter(rule{"INPUT", "-p", "tcp", "--dport", fmt.Sprint(layout.SidecarPort), "-j", "DROP"})},
	{"lose-packets", 4, allPods, false, filter(lossy("INPUT", "-i"), lossy("OUTPUT", "-o"))},
	{"cut-kubernetes", 3, components, false, (*world).cutKubernetes},
	{"cut-path", 4, allPods, false, (*world).cutPath},
}

var dnsPort = fmt.Sprint(serving.Port)

// lossy loses three of ten packets.
func lossy(chain, direction string) rule {
	return rule{chain, "!", direction, "lo", "-m", "statistic", "--mode", "random", "--probability", "0.3", "-j", "DROP"}
}

// filter returns a fault that has rules in the packet filter of a server for a while.
func filter(rules ...rule) func(*world, *fault) error {
	return func(w *world, f *fault) error {
		p, err := w.find(w.namespace, f.target, "bindcar")
		if err != nil {
			return err
		}
		return w.filterFor(f, p, rules...)
	}
}

func (w *world) filterFor(f *fault, p *place, rules ...rule) error {
	return w.filtered(p, func() { f.hold(w, 500, 6000) }, rules...)
}

// filtered has rules in the packet filter of a pod while it calls a function.
func (w *world) filtered(p *place, call func(), rules ...rule) error {
	network, err := p.network()
	if err != nil {
		return err
	}
	defer network.Close()
	for _, r := range rules {
		if err := inNetwork(network, "iptables", append([]string{"--wait", "--append"}, r...)...); err != nil {
			return err
		}
	}
	call()
	return inNetwork(network, "iptables", "--wait", "--flush")
}

// cutPath closes the Service of a server to everybody, over one protocol or both: clients, and secondaries that transfer from it.
func (w *world) cutPath(f *fault) error {
	f.scope = fleetOf(f.target).pods()
	var service corev1.Service
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: strings.TrimSuffix(f.target, "-0")}, &service); err != nil {
		return err
	}
	var closed []rule
	for _, protocol := range pick(w, []string{"udp"}, []string{"tcp"}, []string{"udp", "tcp"}) {
		for _, chain := range []string{"PREROUTING", "OUTPUT"} {
			closed = append(closed, rule{chain, "-d", service.Spec.ClusterIP, "-p", protocol, "--dport", "53", "-j", "DROP"})
		}
	}
	return w.closed(closed, func() { f.hold(w, 500, 6000) })
}

// cutFromKubernetes cuts a component off from kube-apiserver.
var cutFromKubernetes = rule{"OUTPUT", "-p", "tcp", "-m", "multiport", "--dports", "443,6443", "-j", "DROP"}

// cutKubernetes cuts a component off from kube-apiserver.
func (w *world) cutKubernetes(f *fault) error {
	p, err := w.component(f.target)
	if err != nil {
		return err
	}
	return w.filterFor(f, p, cutFromKubernetes)
}

package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/named"
)

// processKinds end and stop processes.
var processKinds = []kind{
	{"kill-named", 6, allPods, false, func(w *world, f *fault) error { return w.killContainer(f, "named") }},
	{"stop-named", 8, allPods, false, func(w *world, f *fault) error { return w.stopContainer(f, "named") }},
	{"kill-sidecar", 3, allPods, false, func(w *world, f *fault) error { return w.killContainer(f, "bindcar") }},
	{"stop-sidecar", 3, allPods, false, func(w *world, f *fault) error { return w.stopContainer(f, "bindcar") }},
	{"kill-component", 3, components, false, (*world).killComponent},
	{"stop-component", 4, components, false, (*world).stopComponent},
	{"stop-kubernetes", 2, fixed("kube-apiserver", "etcd"), false, (*world).stopNodeProcess},
	{"kill-kubernetes", 1, fixed("kube-apiserver", "etcd"), false, (*world).killNodeProcess},
}

func components() []string { return []string{"controller", "fleet", "apiserver", "webhook"} }

func (w *world) killContainer(f *fault, container string) error {
	p, err := w.find(w.namespace, f.target, container)
	if err != nil {
		return err
	}
	if p.restarts() >= mostRestarts {
		return errNotNow
	}
	if err := signal(p.pids, syscall.SIGKILL); err != nil {
		return err
	}
	f.started, f.ending = now(), now()
	if err := w.waitRestarted(p); err != nil {
		return err
	}
	return w.waitAnswers(p.pod.Status.PodIP)
}

func (w *world) stopContainer(f *fault, container string) error {
	p, err := w.find(w.namespace, f.target, container)
	if err != nil {
		return err
	}
	return w.stopProcesses(f, p.pids)
}

// stopProcesses stops processes for a while.
func (w *world) stopProcesses(f *fault, pids []int) error {
	if err := signal(pids, syscall.SIGSTOP); err != nil {
		return err
	}
	f.hold(w, 500, 5000)
	return signal(pids, syscall.SIGCONT)
}

// killComponent kills the process of a component. Where the kubelet would wait long until it starts it again, it kills the pod.
func (w *world) killComponent(f *fault) error {
	p, err := w.component(f.target)
	if err != nil {
		return err
	}
	if p.restarts() < mostRestarts {
		err = signal(p.pids, syscall.SIGKILL)
	} else {
		err = w.client.Delete(w.Context(), p.pod, client.GracePeriodSeconds(0))
	}
	if err != nil {
		return err
	}
	f.started, f.ending = now(), now()
	return w.until(restartTimeout, func(context.Context) error {
		next, err := w.component(f.target)
		if err == nil && next.id == p.id {
			return errors.New("the container has not ended yet")
		}
		return err
	})
}

func (w *world) stopComponent(f *fault) error {
	p, err := w.component(f.target)
	if err != nil {
		return err
	}
	return w.stopProcesses(f, p.pids)
}

func (w *world) stopNodeProcess(f *fault) error {
	pid, err := nodeProcess(f.target)
	if err != nil {
		return err
	}
	return w.stopProcesses(f, []int{pid})
}

func (w *world) killNodeProcess(f *fault) error {
	pid, err := nodeProcess(f.target)
	if err != nil {
		return err
	}
	if err := signal([]int{pid}, syscall.SIGKILL); err != nil {
		return err
	}
	f.started, f.ending = now(), now()
	return w.repairCluster()
}

// rule is one that the packet filter of a pod has during a fault.
type rule []string

// networkKinds cut, refuse and lose packets in the network of a pod, in one direction where that makes a difference.
var networkKinds = []kind{
	{"cut-dns-in", 4, allPods, false, filter(rule{"INPUT", "-p", "udp", "--dport", dnsPort, "-j", "DROP"}, rule{"INPUT", "-p", "tcp", "--dport", dnsPort, "-j", "DROP"})},
	{"cut-dns-out", 3, allPods, false, filter(rule{"OUTPUT", "-p", "udp", "--sport", dnsPort, "-j", "DROP"}, rule{"OUTPUT", "-p", "tcp", "--sport", dnsPort, "-j", "DROP"})},
	{"cut-transfers", 4, podsWithRole("secondary"), false, filter(rule{"OUTPUT", "-p", "tcp", "-m", "multiport", "--dports", "53," + dnsPort, "-j", "DROP"})},
	{"refuse-tcp", 3, allPods, false, filter(rule{"INPUT", "-p", "tcp", "--dport", dnsPort, "-j", "REJECT", "--reject-with", "tcp-reset"})},
	{"cut-notify", 3, podsWithRole("primary"), false, filter(rule{"OUTPUT", "-p", "udp", "-m", "multiport", "--dports", "53," + dnsPort, "-j", "DROP"})},
	{"cut-sidecar", 3, allPods, false, filter(rule{"INPUT", "-p", "tcp", "--dport", fmt.Sprint(named.SidecarPort), "-j", "DROP"})},
	{"lose-packets", 4, allPods, false, filter(lossy("INPUT"), lossy("OUTPUT"))},
	{"cut-kubernetes", 3, components, false, (*world).cutKubernetes},
}

var dnsPort = fmt.Sprint(named.Port)

// lossy loses three of ten packets.
func lossy(chain string) rule {
	return rule{chain, "!", "-i", "lo", "-m", "statistic", "--mode", "random", "--probability", "0.3", "-j", "DROP"}
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
	f.hold(w, 500, 6000)
	return inNetwork(network, "iptables", "--wait", "--flush")
}

// cutKubernetes cuts a component off from kube-apiserver.
func (w *world) cutKubernetes(f *fault) error {
	p, err := w.component(f.target)
	if err != nil {
		return err
	}
	return w.filterFor(f, p, rule{"OUTPUT", "-p", "tcp", "-m", "multiport", "--dports", "443,6443", "-j", "DROP"})
}

// serverKinds disturb servers in other ways.
var serverKinds = []kind{
	{"delete-pod", 4, allPods, true, (*world).deletePod},
	{"drain-node", 1, fleetNames, true, (*world).drainNode},
	{"unwritable", 3, allPods, false, (*world).makeUnwritable},
	{"freeze", 3, podsWithRole("primary"), false, (*world).freeze},
	{"reload", 2, allPods, false, func(w *world, f *fault) error { return w.rndcOn(f, "reload") }},
	{"delzone", 3, allPods, true, func(w *world, f *fault) error { return w.rndcOn(f, "delzone", pick(w, fleetOf(f.target).zones...)) }},
}

// deletePod deletes a pod, which comes back with nothing. How long it takes to start is not counted.
func (w *world) deletePod(f *fault) error {
	before, err := w.readyPods(f.fleet)
	if err != nil {
		return err
	}
	if err := w.client.Delete(w.Context(), before[f.target], client.GracePeriodSeconds(pick[int64](w, 0, 30))); err != nil {
		return err
	}
	f.started, f.ending = now(), now()
	return w.waitReplaced(before[f.target])
}

// readyPods returns the pods of a fleet by name, if all are ready: the data of one that goes may be nowhere else.
func (w *world) readyPods(fleet string) (map[string]*corev1.Pod, error) {
	pods := map[string]*corev1.Pod{}
	for _, name := range fleetOf(fleet).pods() {
		p, err := w.pod(w.Context(), w.namespace, name)
		if err != nil || !isReady(p) {
			return nil, errors.Join(errNotNow, err)
		}
		pods[name] = p
	}
	return pods, nil
}

// waitReplaced waits until another pod answers in the place of one.
func (w *world) waitReplaced(p *corev1.Pod) error {
	var address string
	if err := w.until(restartTimeout, func(ctx context.Context) error {
		next, err := w.pod(ctx, w.namespace, p.Name)
		if err != nil {
			return err
		}
		if next.UID == p.UID || next.Status.PodIP == "" {
			return errors.New("the pod is not replaced yet")
		}
		address = next.Status.PodIP
		_, err = newPlace(next, "named")
		return err
	}); err != nil {
		return err
	}
	return w.waitAnswers(address)
}

// drainNode does to the pods of a fleet what kubectl drain does. What no object declares may be lost with them.
func (w *world) drainNode(f *fault) error {
	before, err := w.readyPods(f.fleet)
	if err != nil {
		return err
	}
	if err := w.cordon(true); err != nil {
		return err
	}
	for name, p := range before {
		err := w.client.SubResource("eviction").Create(w.Context(), p, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})
		if err != nil {
			delete(before, name) // its disruption budget forbids it
		}
	}
	f.hold(w, 500, 3000)
	if err := w.until(writeTimeout, func(context.Context) error { return w.cordon(false) }); err != nil {
		return err
	}
	for _, p := range before {
		if err := w.waitReplaced(p); err != nil {
			return err
		}
	}
	for _, zone := range fleetOf(f.fleet).zones {
		for _, key := range foreignKeys(zone) {
			w.history.write("hand", entry{"begin": f.begin, "end": now(), "zone": zone, "pod": "", "key": key, "fault": f.id})
		}
	}
	return nil
}

// cordon says whether the nodes take new pods.
func (w *world) cordon(yes bool) error {
	var nodes corev1.NodeList
	if err := w.client.List(w.Context(), &nodes); err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, yes)
	for i := range nodes.Items {
		if err := w.client.Patch(w.Context(), &nodes.Items[i], client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
	}
	return nil
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// makeUnwritable takes the right to write zone files and journals from named for a while.
func (w *world) makeUnwritable(f *fault) error {
	p, err := w.find(w.namespace, f.target, "named")
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(fmt.Sprintf("/proc/%d/root%s", p.pids[0], named.ZonesDir))
	if err != nil {
		return err
	}
	defer root.Close()
	modes := map[string]fs.FileMode{}
	if err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		modes[path] = info.Mode().Perm()
		return nil
	}); err != nil {
		return err
	}
	for path, mode := range modes {
		_ = root.Chmod(path, mode&^0o222) // a file may have gone
	}
	f.hold(w, 500, 6000)
	for path, mode := range modes {
		_ = root.Chmod(path, mode)
	}
	return nil
}

// freeze has named refuse updates of its zones for a while.
func (w *world) freeze(f *fault) error {
	p, err := w.find(w.namespace, f.target, "bindcar")
	if err != nil {
		return err
	}
	zone := pick(w, fleetOf(f.target).zones...)
	if err := rndc(p, "freeze", zone); err != nil {
		return err
	}
	f.hold(w, 500, 5000)
	return rndc(p, "thaw", zone)
}

func (w *world) rndcOn(f *fault, args ...string) error {
	p, err := w.find(w.namespace, f.target, "bindcar")
	if err != nil {
		return err
	}
	return rndc(p, args...)
}

// objectKinds delete objects that Lockstep made.
var objectKinds = []kind{
	{"delete-secret", 2, fleetNames, false, func(w *world, f *fault) error {
		name := pick(w, named.KeyringSecretName(f.target, named.KeyUpdate), named.KeyringSecretName(f.target, named.KeyTransfer),
			named.CertificateSecretName(f.instance(w)))
		return w.deleteObject(f, &corev1.Secret{ObjectMeta: w.meta(name)})
	}},
	{"delete-service", 2, fleetNames, false, func(w *world, f *fault) error {
		return w.deleteObject(f, &corev1.Service{ObjectMeta: w.meta(f.instance(w))})
	}},
	{"delete-configmap", 1, fleetNames, false, func(w *world, f *fault) error {
		return w.deleteObject(f, &corev1.ConfigMap{ObjectMeta: w.meta(f.instance(w) + "-config")})
	}},
	{"delete-role", 2, fleetNames, false, func(w *world, f *fault) error {
		var roles rbacv1.RoleList
		if err := w.client.List(w.Context(), &roles, client.InNamespace(w.namespace)); err != nil || len(roles.Items) == 0 {
			return errors.Join(err, errNotNow)
		}
		return w.deleteObject(f, &roles.Items[w.random(len(roles.Items))])
	}},
}

// instance draws an instance of the fault's fleet.
func (f *fault) instance(w *world) string {
	pod := pick(w, fleetOf(f.target).pods()...)
	return pod[:len(pod)-len("-0")]
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// deleteObject deletes an object and expects another one in its place.
func (w *world) deleteObject(f *fault, o client.Object) error {
	key := client.ObjectKeyFromObject(o)
	if err := w.client.Get(w.Context(), key, o); err != nil {
		return err
	}
	uid := o.GetUID()
	if err := w.client.Delete(w.Context(), o); err != nil {
		return err
	}
	f.target += " " + strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.") + " " + o.GetName()
	f.started, f.ending = now(), now()
	began := time.Now()
	w.remade.Go(func() {
		err := w.until(remakeTimeout, func(ctx context.Context) error {
			if err := w.client.Get(ctx, key, o); err != nil {
				return err
			}
			if o.GetUID() == uid {
				return errors.New("it is still there")
			}
			return nil
		})
		w.history.write("remade", entry{"fault": f.id, "object": f.target, "begin": seconds(began), "end": now(), "there": err == nil})
	})
	return nil
}

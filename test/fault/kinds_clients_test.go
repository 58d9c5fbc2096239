package fault

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/model"
)

// clientKinds stand between clients and servers that have everything, and fight for what these have.
var clientKinds = []kind{
	{"no-endpoints", 2, allPods, false, (*world).removeEndpoints},
	{"cut-clients", 3, openPods, false, (*world).cutClients},
	{"allow-query", 1, fleetNames, true, (*world).refuseStrangers},
	{"stale-proxy", 1, allPods, true, (*world).leaveProxyStale},
	{"withdraw-address", 3, balancedPods, false, (*world).withdrawAddress},
	{"fight", 1, fleetNames, false, (*world).fight},
}

const (
	// leastUnseen and mostUnseen are how long clients get no answer, in milliseconds: long enough for whoever asks now and then.
	leastUnseen, mostUnseen = 6000, 9000
	// fightTimeout is how long a fight may last until it is called one.
	fightTimeout = time.Minute
	// disputed is the address that the other side of a fight declares.
	disputed = "203.0.113.66"
)

func serviceOf(pod string) string { return strings.TrimSuffix(pod, "-0") }

// clientGets returns an error unless a client here, or one in the far network, is answered at an address.
func clientGets(far bool, address, protocol, zone string) error {
	cmd := python("questions.py", "client", address, protocol, zone)
	if far {
		cmd = inFar(cmd.Path, cmd.Args[1:]...)
	}
	out, err := cmd.Output()
	if text := string(out); err == nil && text != "answer" {
		return fmt.Errorf("a client gets %s at %s over %s for %s", text, address, protocol, zone)
	}
	return err
}

// waitClients waits until clients get answers again at the Service of a server, over both protocols and at all of its addresses.
func (w *world) waitClients(pod string, far bool) error {
	zone := fleetOf(pod).zones[0]
	return w.until(restartTimeout, func(ctx context.Context) error {
		addresses, err := w.clientAddresses(ctx, pod)
		if err != nil {
			return err
		}
		var errs []error
		for _, address := range addresses {
			errs = append(errs, clientGets(far, address, "UDP", zone), clientGets(far, address, "TCP", zone))
		}
		return errors.Join(errs...)
	})
}

// clientAddresses are those at which clients reach a server.
func (w *world) clientAddresses(ctx context.Context, pod string) ([]string, error) {
	var service corev1.Service
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: serviceOf(pod)}, &service); err != nil {
		return nil, err
	}
	addresses := []string{service.Spec.ClusterIP}
	if balanced, ok := loadBalancers[service.Name]; ok {
		addresses = append(addresses, balanced)
	}
	return addresses, nil
}

// removeEndpoints stops the sidecar of a server until its pod is not ready and the Service has no endpoints.
func (w *world) removeEndpoints(f *fault) error {
	p, err := w.find(w.namespace, f.target, "bindcar")
	if err != nil {
		return err
	}
	defer func() { _ = kube.Signal(p.pids, syscall.SIGCONT) }()
	if err := kube.Signal(p.pids, syscall.SIGSTOP); err != nil {
		return err
	}
	if err := w.until(time.Minute, func(ctx context.Context) error { return w.haveEndpoints(ctx, f.target, false) }); err != nil {
		w.Logf("no-endpoints: %v", err)
	}
	f.hold(w, leastUnseen, mostUnseen)
	if err := kube.Signal(p.pids, syscall.SIGCONT); err != nil {
		return err
	}
	if err := w.until(restartTimeout, func(ctx context.Context) error { return w.haveEndpoints(ctx, f.target, true) }); err != nil {
		return err
	}
	return w.waitClients(f.target, false)
}

// haveEndpoints returns an error unless the Service of a server has a ready endpoint, or has none.
func (w *world) haveEndpoints(ctx context.Context, pod string, want bool) error {
	var all discoveryv1.EndpointSliceList
	if err := w.client.List(ctx, &all, client.InNamespace(w.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: serviceOf(pod)}); err != nil {
		return err
	}
	has := slices.ContainsFunc(all.Items, func(s discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready })
	})
	if has != want {
		return fmt.Errorf("the Service of %s has endpoints: %t, want %t", pod, has, want)
	}
	return nil
}

// cutClients cuts the far network off from the Service of a server, over TCP or over both protocols. The API server and all clients here are not.
func (w *world) cutClients(f *fault) error {
	addresses, err := w.clientAddresses(w.Context(), f.target)
	if err != nil {
		return err
	}
	var closed []rule
	for _, protocol := range pick(w, []string{"tcp"}, []string{"udp", "tcp"}) {
		for _, address := range addresses {
			closed = append(closed, rule{"PREROUTING", "-s", farAddress, "-d", address, "-p", protocol, "--dport", "53", "-j", "DROP"})
		}
	}
	if err := w.closed(closed, func() {
		f.started = now()
		deadline := time.Now().Add(w.between(leastUnseen, mostUnseen))
		for time.Now().Before(deadline) { // Nobody asks a vantage while nobody wants to know of a zone.
			w.askForZones(f.fleet)
			w.pause(500 * time.Millisecond)
		}
		f.ending = now()
	}); err != nil {
		return err
	}
	return w.waitClients(f.target, true)
}

// askForZones requests the SyncStatus of a fleet's zones by name.
func (w *world) askForZones(fleet string) {
	ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
	defer cancel()
	for _, zone := range fleetOf(fleet).zones {
		_ = w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "dnszone." + zoneObject(zone)}, &syncv1.SyncStatus{}) // kube-apiserver may be away
	}
}

// closed has rules in the packet filter of this machine, before Services are resolved, while it calls a function.
func (w *world) closed(rules []rule, call func()) (err error) {
	change := func(how string, r rule) error {
		out, err := exec.Command("iptables", append([]string{"--wait", "-t", "raw", how}, r...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("iptables %s: %w: %s", how, err, out)
		}
		return nil
	}
	for _, r := range rules {
		if err := change("--append", r); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, change("--delete", r)) }()
	}
	call()
	return nil
}

// refuseStrangers has the servers of a fleet answer nobody but a network that nobody is in. Lockstep's own keys are admitted all the same.
func (w *world) refuseStrangers(f *fault) error {
	if _, err := w.readyPods(f.fleet); err != nil {
		return err
	}
	admit := func(list string) error {
		c := &v1beta1.Bind9Cluster{}
		c.Namespace, c.Name = w.namespace, f.fleet
		return w.client.Patch(w.Context(), c, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"global":{"allowQuery":`+list+`}}}`)))
	}
	if err := admit(`["192.0.2.0/24"]`); err != nil {
		return err
	}
	f.started = now()
	if err := w.until(restartTimeout, func(ctx context.Context) error { return w.refuse(ctx, f.fleet, true) }); err != nil {
		w.Logf("allow-query: %v", err)
	}
	w.pause(w.between(leastUnseen, mostUnseen))
	f.ending = now()
	if err := w.until(writeTimeout, func(context.Context) error { return admit("null") }); err != nil {
		return err
	}
	// What no object declares may be lost, as servers restart with another configuration.
	for _, zone := range fleetOf(f.fleet).zones {
		for _, key := range foreignKeys(zone) {
			w.history.write("hand", entry{"begin": f.begin, "end": now(), "zone": zone, "pod": "", "key": key, "fault": f.id})
		}
	}
	if err := w.until(restartTimeout, func(ctx context.Context) error { return w.refuse(ctx, f.fleet, false) }); err != nil {
		return err
	}
	for _, pod := range fleetOf(f.fleet).pods() {
		if err := w.waitClients(pod, false); err != nil {
			return err
		}
	}
	return nil
}

// refuse returns an error unless some server of a fleet refuses strangers, or all of them answer them.
func (w *world) refuse(ctx context.Context, fleet string, want bool) error {
	refused := false
	for _, pod := range fleetOf(fleet).pods() {
		p, err := w.pod(ctx, w.namespace, pod)
		if err != nil {
			return err
		}
		reply, err := ask(p.Status.PodIP, fleetOf(fleet).zones[0]+".", dns.TypeSOA)
		if err != nil {
			return err
		}
		refused = refused || reply.Rcode == dns.RcodeRefused
	}
	if refused != want {
		return fmt.Errorf("a server of %s refuses strangers: %t, want %t", fleet, refused, want)
	}
	return nil
}

// leaveProxyStale replaces a pod while kube-proxy is stopped: the Service leads to the address of one that has gone.
func (w *world) leaveProxyStale(f *fault) error {
	release := w.reserve([]string{"kube-proxy"})
	if release == nil {
		return errNotNow
	}
	defer release()
	before, err := w.readyPods(f.fleet)
	if err != nil {
		return err
	}
	proxy, err := nodeProcess("kube-proxy")
	if err != nil {
		return err
	}
	defer func() { _ = kube.Signal([]int{proxy}, syscall.SIGCONT) }()
	if err := kube.Signal([]int{proxy}, syscall.SIGSTOP); err != nil {
		return err
	}
	if err := w.client.Delete(w.Context(), before[f.target], client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	f.started = now()
	if err := w.waitReplaced(before[f.target]); err != nil {
		return err
	}
	f.hold(w, leastUnseen, mostUnseen)
	if err := kube.Signal([]int{proxy}, syscall.SIGCONT); err != nil {
		return err
	}
	return w.waitClients(f.target, false)
}

// loadBalancers are the addresses that the load balancers of Services have. Pods send what is for them to the node, where kube-proxy takes it.
var loadBalancers = map[string]string{"trio-secondary-0": "198.51.100.11", "trio-secondary-1": "198.51.100.12"}

func balancedPods() []string { return []string{"trio-secondary-0-0", "trio-secondary-1-0"} }

// openPods are servers with an address that zones publish.
func openPods() []string { return append(balancedPods(), "duo-primary-0-0", "trio-primary-0-0") }

// keepBalanced does what the controller of a cloud does: Services get the address of their load balancer, unless that is withdrawn.
func (w *world) keepBalanced(ctx context.Context) {
	for ctx.Err() == nil {
		for name := range loadBalancers {
			_ = w.balance(ctx, name) // the next round tries again
		}
		w.pause(300 * time.Millisecond)
	}
}

func (w *world) balance(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var service corev1.Service
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &service); err != nil {
		return err
	}
	w.mutex.Lock()
	withdrawn := w.withdrawn[name]
	w.mutex.Unlock()
	var want []corev1.LoadBalancerIngress
	if !withdrawn {
		want = []corev1.LoadBalancerIngress{{IP: loadBalancers[name]}}
	}
	if has := service.Status.LoadBalancer.Ingress; service.Spec.Type != corev1.ServiceTypeLoadBalancer || len(has) == len(want) && (len(want) == 0 || has[0].IP == want[0].IP) {
		return nil
	}
	service.Status.LoadBalancer.Ingress = want
	return w.client.Status().Update(ctx, &service)
}

// withdrawAddress takes the address of a server's load balancer away, which the zones go on publishing.
func (w *world) withdrawAddress(f *fault) error {
	withdraw := func(yes bool) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.withdrawn[serviceOf(f.target)] = yes
	}
	isGone := func(context.Context) error {
		if clientGets(false, loadBalancers[serviceOf(f.target)], "UDP", fleetOf(f.target).zones[0]) == nil {
			return errors.New("clients still get answers")
		}
		return nil
	}
	withdraw(true)
	defer withdraw(false)
	if err := w.until(writeTimeout, isGone); err != nil {
		return err
	}
	f.hold(w, leastUnseen, mostUnseen)
	withdraw(false)
	return w.waitClients(f.target, true)
}

// fight has a second writer put its own address in place of a declared one, again each time that it is corrected, until the zone is said to be
// contested.
func (w *world) fight(f *fault) error {
	zone, pod := f.zone(w), f.primary(w)
	owner := pick(w, "a0", "a1", "shared", "e0")
	release := w.keepDeclared(zone, owner)
	if release == nil {
		return errNotNow
	}
	defer release()
	name := owner + "." + zone + "."
	key, rrs := name+" A", record(name+" 17 A "+disputed)
	overwrite := func() error {
		return w.update(f, pod, zone, key, func(m *dns.Msg) {
			m.RemoveRRset(rrs)
			m.Insert(rrs)
		})
	}
	if err := overwrite(); err != nil {
		return err
	}
	f.started = now()
	count, contested := 1, false
	for deadline := time.Now().Add(fightTimeout); !contested && time.Now().Before(deadline) && w.Context().Err() == nil; w.pause(100 * time.Millisecond) {
		if w.onPods(w.Context(), []string{pod}, name, dns.TypeA, func(text string) bool { return !strings.Contains(text, disputed) && text != "none" }) == nil && overwrite() == nil {
			count++
		}
		contested = w.isContested(zone, name)
	}
	f.ending = now()
	w.history.write("fight", entry{"begin": f.started, "end": f.ending, "zone": zone, "pod": pod, "key": key, "value": disputed, "fault": f.id, "count": count, "contested": contested})
	return w.until(restartTimeout, func(ctx context.Context) error {
		if err := w.onAll(ctx, f.fleet, name, dns.TypeA, func(text string) bool { return !strings.Contains(text, disputed) }); err != nil {
			return err
		}
		return w.areProgrammed(ctx, zone, owner)
	})
}

// isContested reports whether a zone is said to be contested for a name.
func (w *world) isContested(zone, name string) bool {
	ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
	defer cancel()
	var z v1beta1.DNSZone
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: zoneObject(zone)}, &z); err != nil {
		return false
	}
	c := meta.FindStatusCondition(z.Status.Conditions, "Contested")
	return c != nil && c.Status == "True" && strings.Contains(c.Message, name)
}

// areProgrammed returns an error unless all objects that have a name now are programmed. Nobody changes them meanwhile.
func (w *world) areProgrammed(ctx context.Context, zone, owner string) error {
	for _, s := range w.slots {
		if s.zone != zone || !slices.Contains(s.owners, owner) || s.kind != "ARecord" && s.kind != model.EndpointKind || !s.there || s.owner != owner {
			continue
		}
		o := (&model.Object{Kind: s.kind, Name: s.name, Owner: "x", Values: []string{"x"}}).ToUnstructured(w.namespace)
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(o.GroupVersionKind())
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(o), found); err != nil {
			return err
		}
		if c := findCondition(*found, "Programmed"); c["status"] != "True" {
			return fmt.Errorf("%s %s: Programmed is %v", s.kind, s.name, c)
		}
	}
	return nil
}

// Package podcheck checks the pods of an instance: what each lacks to start, whether its sidecar answers, which zones it serves. It
// opens readiness gates, and removes zones that are not the instance's any more. The reconciler of instances calls it in each pass and reports
// what it finds.
package podcheck

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// maxQuestions bounds the DNS questions to one pod that run at once.
const maxQuestions = 16

// Sidecar is what the reconciler needs of the sidecar beside a server.
type Sidecar interface {
	Ready(ctx context.Context, server bindcar.Address) error
	Zones(ctx context.Context, server bindcar.Address) (bindcar.ZoneList, error)
	DeleteZone(ctx context.Context, server bindcar.Address, zone string, owner bindcar.Owner) error
	Command(ctx context.Context, server bindcar.Address, zone, command string) (string, error)
}

// DNS asks a server for the serial of a zone.
type DNS interface {
	Serial(ctx context.Context, server observe.Peer, zone string, key *wire.Key) observe.Observation
}

// TransferKeys has the keys that an instance's servers let transfer, and always answer.
type TransferKeys interface {
	TransferKey(ctx context.Context, i *v1beta1.Bind9Instance) (*wire.Key, error)
}

// Checker checks pods, and opens the readiness gates of those that serve what they should.
type Checker struct {
	client client.Client
	// live reads from kube-apiserver: the cache, client's, may be behind what another process knows.
	live            client.Reader
	systemNamespace string
	sidecar         Sidecar
	dns             DNS
	keys            TransferKeys
	gates           readinessGates
	removals        zoneRemovals
	now             func() time.Time
}

// New returns a checker of pods, which reads from the cache and, before it removes a zone, from kube-apiserver; systemNamespace is the
// namespace that Lockstep itself runs in.
func New(c client.Client, live client.Reader, systemNamespace string, sidecar Sidecar, dns DNS, keys TransferKeys) *Checker {
	return &Checker{client: c, live: live, systemNamespace: systemNamespace, sidecar: sidecar, dns: dns, keys: keys, gates: newReadinessGates(), now: time.Now}
}

// Result is what a status reports of an instance's pods and zones.
type Result struct {
	Zones []v1beta1.ZoneReference
	Pods  []status.PodFacts
	// Foreign is what the instance's Service sends queries to besides these pods.
	Foreign []string
	// Failure is one that a person has to end; the zero value if there is none.
	Failure status.Verdict
	// Requeue is when to check again, 0 for not before an event.
	Requeue time.Duration
}

// podResult is what the check of one pod found.
type podResult struct {
	serving status.Verdict
	// missing is what the pod waits for to mount, cause why it lacks zones; both empty if there is no such thing.
	missing string
	cause   status.Verdict
	// unloaded are the zones of a user's configuration that the pod does not serve.
	unloaded []string
	// requeue is when to check again, 0 for not before an event. terminal means that only a person can help.
	requeue  time.Duration
	terminal bool
	err      error
}

// zoneAssignment is which zones the pods of an instance are to have.
type zoneAssignment struct {
	// live are the zones that are not being deleted, in order; required are the DNS names of those that pods can serve.
	live     []*v1beta1.DNSZone
	required []string
	// assigned has the DNS names of all zones, those that are being deleted included.
	assigned map[string]bool
}

// references are the zones as a status lists them.
func (z zoneAssignment) references() (all []v1beta1.ZoneReference) {
	for _, zone := range z.live {
		all = append(all, v1beta1.ZoneReference{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "DNSZone", Namespace: zone.Namespace, Name: zone.Name, ZoneName: zone.Spec.ZoneName,
		})
	}
	return all
}

// Check returns the state of every expected pod of an instance.
func (c *Checker) Check(ctx context.Context, instance *v1beta1.Bind9Instance) (result Result, err error) {
	zones, err := c.assignedZones(ctx, instance)
	if err != nil {
		return result, err
	}
	result.Zones = zones.references()
	key := client.ObjectKeyFromObject(instance)
	c.removals.keepAssigned(key, zones.assigned)
	pods, err := inventory.PodsByName(ctx, c.client, instance.Namespace, instance.Name)
	if err != nil {
		return result, err
	}
	if result.Foreign, err = c.foreignEndpoints(ctx, instance, pods); err != nil {
		return result, err
	}
	results := c.checkPods(ctx, instance, pods, zones)
	var errs []error
	for ordinal, pod := range results {
		name := named.PodName(instance.Name, ordinal)
		facts := status.PodFacts{Name: name, Pod: pods[name], Serving: pod.serving, Missing: pod.missing, Unloaded: pod.unloaded}
		result.Pods = append(result.Pods, facts)
		result.Requeue = inventory.Sooner(result.Requeue, pod.requeue)
		if pod.terminal && result.Failure.Status == "" {
			result.Failure = facts.Failure()
		}
		errs = append(errs, pod.err)
	}
	if result.Failure.Status == "" {
		result.Failure = keyFailure(instance, zones.live)
	}
	errs = append(errs, c.explainByUpstream(ctx, instance, zones.live, result.Pods))
	for ordinal, pod := range results {
		if serving := &result.Pods[ordinal].Serving; serving.Reason == status.ReasonProgressing && pod.cause.Status != "" {
			*serving = status.LoadingBecause(*serving, pod.cause)
		}
	}
	return result, errors.Join(errs...)
}

// checkPods checks all expected pods at once, in the order of their ordinals. Of one that does not run there is nothing to find out.
func (c *Checker) checkPods(ctx context.Context, instance *v1beta1.Bind9Instance, pods map[string]*corev1.Pod, zones zoneAssignment) []podResult {
	results := make([]podResult, named.Replicas(instance))
	var group sync.WaitGroup
	for ordinal := range results {
		results[ordinal].serving = status.True(status.ReconcileSucceeded, "")
		switch pod := pods[named.PodName(instance.Name, ordinal)]; {
		case pod == nil:
		case inventory.HasRunningSidecar(pod):
			wasReady := meta.IsStatusConditionTrue(instance.Status.Conditions, status.PodCondition(ordinal))
			group.Go(func() { results[ordinal] = c.checkPod(ctx, instance, pod, zones, wasReady) })
		case isMounting(pod):
			group.Go(func() { results[ordinal] = c.checkMounts(ctx, pod) })
		}
	}
	group.Wait()
	return results
}

// AddKnown adds to the facts of an instance that cannot be worked on what is known of its zones and pods without asking them.
func (c *Checker) AddKnown(ctx context.Context, instance *v1beta1.Bind9Instance, facts *status.InstanceFacts) error {
	zones, err := c.assignedZones(ctx, instance)
	if err != nil {
		return err
	}
	facts.Zones = zones.references()
	pods, err := inventory.PodsByName(ctx, c.client, instance.Namespace, instance.Name)
	if len(pods) == 0 || err != nil {
		return err
	}
	for ordinal := range int(named.Replicas(instance)) {
		name := named.PodName(instance.Name, ordinal)
		facts.Pods = append(facts.Pods, status.PodFacts{Name: name, Pod: pods[name], Serving: status.True(status.ReconcileSucceeded, "")})
	}
	return nil
}

// checkPod asks the pod for its zones, removes those that nobody assigns to it, and sets its readiness gate. The result's
// error is one of Kubernetes.
func (c *Checker) checkPod(ctx context.Context, instance *v1beta1.Bind9Instance, pod *corev1.Pod, zones zoneAssignment, wasReady bool) (result podResult) {
	gate := c.gates.gateOf(pod)
	sidecar, err := inventory.SidecarOfPod(pod)
	if err != nil {
		return podResult{err: err}
	}
	var list bindcar.ZoneList
	if err = c.sidecar.Ready(ctx, sidecar); err == nil {
		list, err = c.sidecar.Zones(ctx, sidecar)
	}
	if err != nil {
		return sidecarProblem(err, gate, pod, wasReady, c.now())
	}
	var surplus []bindcar.Zone
	for _, zone := range list.Items {
		if zone.Added && !zones.assigned[zone.Name] {
			surplus = append(surplus, zone)
		}
	}
	waiting, sidecarErr, err := c.removeZones(ctx, client.ObjectKeyFromObject(instance), sidecar, surplus)
	if err != nil {
		return podResult{err: err}
	}
	if waiting {
		result.requeue = max(removalInterval, inventory.DebounceFor(len(list.Items)))
	}
	if sidecarErr != nil {
		failed := sidecarProblem(sidecarErr, gate, pod, wasReady, c.now())
		failed.requeue = inventory.Sooner(failed.requeue, result.requeue)
		return failed
	}
	gate.sidecarSucceeded()
	peer := observe.Peer{Addr: netip.AddrPortFrom(sidecar.Addr.Addr(), serving.Port), Namespace: pod.Namespace}
	ask := zoneQuestions{dns: c.dns, server: peer, key: c.transferKey(instance)}
	served := ask.countServed(ctx, gate, list, zones.required)
	open, verdict := gate.update(len(zones.required), served, c.now())
	if !verdict.Holds() {
		result.requeue = inventory.Sooner(result.requeue, gate.loadingInterval(len(zones.required), c.now()))
	}
	if !verdict.Holds() && !open {
		result.cause = c.findCause(client.ObjectKeyFromObject(instance), pod, gate, list, zones)
	}
	result.unloaded = c.unloadedZones(ctx, gate, sidecar, list)
	result.serving, result.err = verdict, c.setGate(ctx, pod, open, verdict)
	return result
}

// assignedZones are the zones of an instance, ordered by name.
func (c *Checker) assignedZones(ctx context.Context, instance *v1beta1.Bind9Instance) (zoneAssignment, error) {
	zones := zoneAssignment{assigned: map[string]bool{}}
	servers, err := inventory.Read(ctx, c.client, c.systemNamespace)
	if err != nil {
		return zones, err
	}
	all, err := inventory.ListZones(ctx, c.client)
	for _, zone := range all {
		if !servers.Serves(instance, zone) {
			continue
		}
		zones.assigned[declaration.DNSName(zone)] = true
		if !v1beta1.IsGoing(zone) {
			zones.live = append(zones.live, zone)
		}
	}
	slices.SortFunc(zones.live, func(a, b *v1beta1.DNSZone) int {
		return strings.Compare(declaration.DNSName(a)+"\x00"+a.Namespace+"/"+a.Name, declaration.DNSName(b)+"\x00"+b.Namespace+"/"+b.Name)
	})
	for _, zone := range zones.live {
		if membership.Servable(zone) {
			zones.required = append(zones.required, declaration.DNSName(zone))
		}
	}
	return zones, err
}

// findCause is why a pod that is not in service lacks zones, by the first of them: what its sidecar answered to the one who adds zones,
// or that nobody has added it for a while. It is the zero value if the zone is just loading.
func (c *Checker) findCause(instance client.ObjectKey, pod *corev1.Pod, gate *readinessGate, list bindcar.ZoneList, zones zoneAssignment) status.Verdict {
	for _, zone := range zones.live {
		name := declaration.DNSName(zone)
		if _, served := gate.served.Load(name); served || !membership.Servable(zone) {
			continue
		}
		for _, i := range zone.Status.Bind9Instances {
			answer, isPods := strings.CutPrefix(i.Message, pod.Name+": ")
			if i.Namespace == instance.Namespace && i.Name == instance.Name && i.Status == v1beta1.ZoneFailed && i.Reason != "" && isPods {
				return status.NotAdded(name, i.Reason, answer)
			}
		}
		isListed := slices.ContainsFunc(list.Items, func(z bindcar.Zone) bool { return z.Name == name })
		if !isListed && gate.isStuck(c.now()) {
			return status.NotInNamed(name)
		}
		break
	}
	return status.Verdict{}
}

// setGate writes the pod's condition when it changes.
func (c *Checker) setGate(ctx context.Context, pod *corev1.Pod, open bool, verdict status.Verdict) error {
	want := corev1.ConditionFalse
	if open {
		want = corev1.ConditionTrue
	}
	message := verdict.Message
	if verdict.Holds() {
		message = ""
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1beta1.ZonesLoadedGate && condition.Status == want && (condition.Message == message || open) {
			return nil
		}
	}
	err := c.client.Status().Apply(ctx, gateConfiguration(pod, want, message, c.now()), client.FieldOwner(apply.FieldOwner), client.ForceOwnership)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // The pod is another one by now, and an event reports it.
	}
	if err != nil {
		return fmt.Errorf("setting the readiness gate of pod %s: %w", pod.Name, err)
	}
	return nil
}

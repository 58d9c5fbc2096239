package controller

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// loadingPause is how soon a pod is asked again that does not serve every zone yet.
const loadingPause = 500 * time.Millisecond

// lookAtPods finds out how every expected pod is, and opens the readiness gates of those that serve what they should.
func (p *instancePass) lookAtPods(ctx context.Context) error {
	live, names, err := p.zones(ctx)
	if err != nil {
		return err
	}
	required := make([]string, 0, len(live))
	for _, zone := range live {
		p.facts.Zones = append(p.facts.Zones, v1beta1.ZoneReference{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "DNSZone", Namespace: zone.Namespace, Name: zone.Name, ZoneName: zone.Spec.ZoneName,
		})
		if servable(zone) {
			required = append(required, source.DNSName(zone))
		}
	}
	pods, err := p.pods(ctx)
	if err != nil {
		return err
	}
	p.facts.Pods = make([]status.PodFacts, named.Replicas(p.instance))
	var wg sync.WaitGroup
	problems := make([]error, len(p.facts.Pods))
	waiting := make([]bool, len(p.facts.Pods))
	for ordinal := range p.facts.Pods {
		name := named.PodName(p.instance.Name, ordinal)
		p.facts.Pods[ordinal] = status.PodFacts{Name: name, Pod: pods[name], Problem: noProblem()}
		if pod := pods[name]; pod != nil && podAnswers(pod) {
			wg.Go(func() {
				verdict, err := p.lookAtPod(ctx, pod, required, names)
				p.facts.Pods[ordinal].Problem, problems[ordinal], waiting[ordinal] = verdict, err, !verdict.Holds()
			})
		}
	}
	wg.Wait()
	for _, wait := range waiting {
		if wait && (p.again == 0 || p.again > loadingPause) {
			p.again = loadingPause
		}
	}
	return errors.Join(problems...)
}

// servable is false for a zone that its own declaration keeps from every server: no pod waits for it.
func servable(zone *v1beta1.DNSZone) bool {
	for _, c := range zone.Status.Conditions {
		if c.Type == status.Ready {
			return c.Reason != status.DuplicateZone && c.Reason != status.ReconcileFailed
		}
	}
	return true
}

func (p *instancePass) pods(ctx context.Context) (map[string]*corev1.Pod, error) {
	var list corev1.PodList
	if err := p.client.List(ctx, &list, client.InNamespace(p.instance.Namespace),
		client.MatchingLabels(named.SelectorLabels(p.instance.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	pods := make(map[string]*corev1.Pod, len(list.Items))
	for _, pod := range pointers(list.Items) {
		pods[pod.Name] = pod
	}
	return pods, nil
}

// podAnswers tells whether it makes sense to talk to the pod's sidecar.
func podAnswers(pod *corev1.Pod) bool {
	if pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning || !pod.DeletionTimestamp.IsZero() {
		return false
	}
	return len(runningContainers(pod)) == len(pod.Spec.Containers)
}

// lookAtPod asks a pod for its zones, takes off those that nobody assigns to it, and sets its readiness gate. The
// verdict is the pod's problem; the error is one of Kubernetes.
func (p *instancePass) lookAtPod(ctx context.Context, pod *corev1.Pod, required []string, assigned map[string]bool) (status.Verdict, error) {
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		return status.Verdict{}, err
	}
	sidecar := bindcar.Server{Addr: netip.AddrPortFrom(ip, named.SidecarPort), Namespace: pod.Namespace, Instance: p.instance.Name}
	list, err := p.deps.Bindcar.Zones(ctx, sidecar)
	if err != nil {
		return p.unreachable(err), nil
	}
	for _, zone := range list.Items {
		if zone.Added && !assigned[zone.Name] {
			if err := p.deps.Bindcar.DeleteZone(ctx, sidecar, zone.Name); err != nil && !bindcar.IsNotFound(err) {
				return p.unreachable(err), nil
			}
			log.FromContext(ctx).Info("zone taken off a pod that it is not assigned to", "pod", pod.Name, "zone", zone.Name)
		}
	}
	gate := p.gates.of(pod)
	serves := p.served(ctx, gate, netip.AddrPortFrom(ip, named.Port), list, required)
	open, verdict := gate.judge(len(required), serves, p.now())
	return verdict, p.setGate(ctx, pod, open, verdict)
}

// unreachable is the verdict over a pod whose sidecar did not do as asked.
func (p *instancePass) unreachable(err error) status.Verdict {
	var answer *bindcar.Error
	if errors.As(err, &answer) {
		return status.No(answer.Reason, answer.Message)
	}
	return status.No(status.BindcarUnreachable, err.Error())
}

// served counts the required zones that the pod serves. A zone that was asked for by DNS once counts from then on while
// named lists it with a serial.
func (p *instancePass) served(ctx context.Context, gate *gate, server netip.AddrPort, list bindcar.ZoneList, required []string) int {
	loaded := make(map[string]bool, len(list.Items))
	for _, zone := range list.Items {
		loaded[zone.Name] = zone.Serial != nil
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	count := 0
	for _, zone := range required {
		switch {
		case !loaded[zone]:
			gate.drop(zone)
		case gate.has(zone):
			count++
		default:
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if p.deps.Observer.Serial(ctx, server, zone+".").Authoritative {
					gate.add(zone)
					mu.Lock()
					defer mu.Unlock()
					count++
				}
			})
		}
	}
	wg.Wait()
	return count
}

// setGate writes the pod's condition when it changes.
func (p *instancePass) setGate(ctx context.Context, pod *corev1.Pod, open bool, verdict status.Verdict) error {
	want := corev1.ConditionFalse
	if open {
		want = corev1.ConditionTrue
	}
	message := verdict.Message
	if verdict.Holds() {
		message = ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1beta1.ZonesLoadedGate && c.Status == want && (c.Message == message || open) {
			return nil
		}
	}
	err := p.client.Status().Apply(ctx, gateConfiguration(pod, want, message, p.now()), client.FieldOwner(gateOwner), client.ForceOwnership)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // The pod is another one by now, and an event tells of it.
	}
	if err != nil {
		return fmt.Errorf("setting the readiness gate of pod %s: %w", pod.Name, err)
	}
	return nil
}

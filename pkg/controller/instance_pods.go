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

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

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
		if membership.Servable(zone) {
			required = append(required, source.DNSName(zone))
		}
	}
	p.stay(names)
	pods, err := p.pods(ctx)
	if err != nil {
		return err
	}
	p.facts.Pods = make([]status.PodFacts, named.Replicas(p.instance))
	var wg sync.WaitGroup
	problems, terminal := make([]error, len(p.facts.Pods)), make([]bool, len(p.facts.Pods))
	waits := make([]time.Duration, len(p.facts.Pods))
	for ordinal := range p.facts.Pods {
		name := named.PodName(p.instance.Name, ordinal)
		p.facts.Pods[ordinal] = status.PodFacts{Name: name, Pod: pods[name], Problem: noProblem()}
		if pod := pods[name]; pod != nil && podAnswers(pod) {
			wg.Go(func() {
				look := &podLook{instancePass: p, pod: pod, gate: p.gates.of(pod), wasReady: p.wasReady(ordinal)}
				p.facts.Pods[ordinal].Problem, problems[ordinal] = look.at(ctx, required, names)
				waits[ordinal], terminal[ordinal] = look.wait, look.terminal
			})
		}
	}
	wg.Wait()
	for ordinal, wait := range waits {
		if wait > 0 {
			p.lookAgain(wait)
		}
		if pod := p.facts.Pods[ordinal]; terminal[ordinal] && p.facts.Failure.Status == "" {
			p.facts.Failure = status.No(pod.Problem.Reason, "Pod "+pod.Name+" "+pod.Problem.Message)
		}
	}
	if err := p.blameUpstream(ctx, live); err != nil {
		return err
	}
	if p.leaving.Load() {
		p.lookAgain(leavingPause)
	}
	return errors.Join(problems...)
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

package controller

import (
	"context"
	"errors"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// Pace of questions to a pod that does not serve every zone yet: slower the longer no further zone has come.
const (
	loadingPause    = 500 * time.Millisecond
	maxLoadingPause = 5 * time.Second
)

// podLook is one look at one pod.
type podLook struct {
	*instancePass
	pod  *corev1.Pod
	gate *gate
	// wasReady is true when the pod was ready the last time.
	wasReady bool
	// wait is when to look again, 0 for not before an event. terminal tells that only a person can help.
	wait     time.Duration
	terminal bool
}

// at asks the pod for its zones, takes off those that nobody assigns to it, and sets its readiness gate. The verdict is
// the pod's problem; the error is one of Kubernetes.
func (l *podLook) at(ctx context.Context, required []string, assigned map[string]bool) (status.Verdict, error) {
	ip, err := netip.ParseAddr(l.pod.Status.PodIP)
	if err != nil {
		return status.Verdict{}, err
	}
	sidecar := bindcar.Server{Addr: netip.AddrPortFrom(ip, named.SidecarPort), Namespace: l.pod.Namespace, Instance: l.instance.Name}
	list, err := l.deps.Bindcar.Zones(ctx, sidecar)
	if err != nil {
		return l.trouble(err), nil
	}
	var departing []string
	for _, zone := range list.Items {
		if zone.Added && !assigned[zone.Name] {
			departing = append(departing, zone.Name)
		}
	}
	troubled, err := l.takeOff(ctx, sidecar, departing)
	if err != nil {
		return status.Verdict{}, err
	}
	if troubled != nil {
		return l.trouble(troubled), nil
	}
	l.gate.calm()
	serves := l.served(ctx, l.gate, netip.AddrPortFrom(ip, named.Port), list, required)
	open, verdict := l.gate.judge(len(required), serves, l.now())
	if !verdict.Holds() {
		l.wait = l.gate.loadingPause(l.now())
	}
	return verdict, l.setGate(ctx, l.pod, open, verdict)
}

// trouble is the verdict over a pod whose sidecar did not do as asked. One that was ready and still is for the kubelet
// keeps its good status for a moment: what passes by itself is not told.
func (l *podLook) trouble(err error) status.Verdict {
	answer := &bindcar.Error{Reason: status.BindcarUnreachable, Message: "cannot connect to Bindcar API"}
	transient := !errors.As(err, &answer) || answer.Transient()
	var since time.Duration
	since, l.wait = l.gate.trouble(transient, l.now())
	l.terminal = !transient
	if transient && since < patience && l.wasReady && status.PodReady(l.pod) {
		return noProblem()
	}
	return status.No(answer.Reason, answer.Message)
}

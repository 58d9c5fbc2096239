package fault

import (
	"context"
	"errors"
	"syscall"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// processKinds end and stop processes.
var processKinds = []kind{
	{"kill-named", 6, allPods, false, func(w *world, f *fault) error { return w.killContainer(f, "named") }},
	{"stop-named", 8, allPods, false, func(w *world, f *fault) error { return w.stopContainer(f, "named") }},
	{"kill-sidecar", 3, allPods, false, func(w *world, f *fault) error { return w.killContainer(f, "bindcar") }},
	{"stop-sidecar", 3, allPods, false, func(w *world, f *fault) error { return w.stopContainer(f, "bindcar") }},
	{"kill-component", 3, components, false, (*world).killComponent},
	{"stop-component", 4, components, false, (*world).stopComponent},
	{"stop-kubernetes", 3, fixed("kube-apiserver", "etcd", "kube-proxy"), false, (*world).stopNodeProcess},
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
	if err := kube.Signal(p.pids, syscall.SIGKILL); err != nil {
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
	if err := kube.Signal(pids, syscall.SIGSTOP); err != nil {
		return err
	}
	f.hold(w, 500, 5000)
	return kube.Signal(pids, syscall.SIGCONT)
}

// killComponent kills the process of a component.
func (w *world) killComponent(f *fault) error {
	p, err := w.component(f.target)
	if err != nil {
		return err
	}
	if err := w.endProcess(p); err != nil {
		return err
	}
	f.started, f.ending = now(), now()
	return w.waitComponent(f.target, p)
}

// endProcess kills the process of a component. Where the kubelet would wait long until it starts it again, it kills the pod.
func (w *world) endProcess(p *place) error {
	if p.restarts() < mostRestarts {
		return kube.Signal(p.pids, syscall.SIGKILL)
	}
	return w.client.Delete(w.Context(), p.pod, client.GracePeriodSeconds(0))
}

// waitComponent waits until another process of a component runs than that in a place.
func (w *world) waitComponent(component string, p *place) error {
	return w.until(restartTimeout, func(context.Context) error {
		next, err := w.component(component)
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

// killNodeProcess kills a component of Kubernetes, one at a time: kube-apiserver ends when etcd is away for long at its start.
func (w *world) killNodeProcess(f *fault) error {
	if !w.repairing.TryLock() {
		return errNotNow
	}
	defer w.repairing.Unlock()
	pid, err := nodeProcess(f.target)
	if err != nil {
		return err
	}
	defer w.beginOutage()()
	if err := kube.Signal([]int{pid}, syscall.SIGKILL); err != nil {
		return err
	}
	f.started, f.ending = now(), now()
	return w.repairCluster()
}

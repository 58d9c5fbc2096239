package fault

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// restartTimeout is how long a container or a component of Kubernetes may take to run again. The kubelet waits longer after each
// restart of a container.
const restartTimeout = 3 * time.Minute

// mostRestarts is after how many restarts a container is not killed any more: the kubelet would wait for minutes.
const mostRestarts = 3

// place is a container and its processes.
type place struct {
	pod       *corev1.Pod
	container string
	id        string
	pids      []int
}

// find returns a container of a server's pod.
func (w *world) find(namespace, pod, container string) (*place, error) {
	p, err := w.pod(w.Context(), namespace, pod)
	if err != nil {
		return nil, err
	}
	return newPlace(p, container)
}

func newPlace(pod *corev1.Pod, container string) (*place, error) {
	id, err := kube.ContainerID(pod, container)
	if err != nil {
		return nil, err
	}
	pids, err := kube.ProcessesOf(id)
	return &place{pod, container, id, pids}, err
}

// restarts returns how often the container was restarted.
func (p *place) restarts() int32 {
	for _, c := range p.pod.Status.ContainerStatuses {
		if c.Name == p.container {
			return c.RestartCount
		}
	}
	return 0
}

// component returns the container of one of Lockstep's components.
func (w *world) component(name string) (*place, error) {
	var pods corev1.PodList
	if err := w.client.List(w.Context(), &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": name}); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil && len(p.Spec.Containers) > 0 {
			return newPlace(p, p.Spec.Containers[0].Name)
		}
	}
	return nil, fmt.Errorf("no pod of %s", name)
}

// killed is the exit code of a process that was killed.
const killed = 128 + int32(syscall.SIGKILL)

// outage is a time without kube-apiserver or etcd. Its end is zero while it lasts.
type outage struct{ begin, end time.Time }

// A component may end when it could not renew its lease for as long as this, which is less than its own deadline; TestFaultKeepsLease
// holds it to a shorter time. It ends within endGrace once it can be reached again.
const (
	leaseHold = 20 * time.Second
	endGrace  = 10 * time.Second
)

// explains reports whether a component that ended at a time may have lost its lease in the outage.
func (o outage) explains(at time.Time) bool {
	return !at.Before(o.begin.Add(leaseHold)) && (o.end.IsZero() || !at.After(o.end.Add(endGrace)))
}

// beginOutage notes that kube-apiserver or etcd is away until the returned function is called.
func (w *world) beginOutage() (end func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.outages = append(w.outages, outage{begin: time.Now()})
	last := len(w.outages) - 1
	return func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.outages[last].end = time.Now()
	}
}

// noteEnded records components that have ended by themselves: no fault asks that of them, and the kubelet keeps one waiting that does.
// One that lost its lease because Kubernetes was away for long, on a busy machine, is right to end.
func (w *world) noteEnded() {
	var pods corev1.PodList
	if err := w.client.List(w.Context(), &pods, client.InNamespace(system)); err != nil {
		return // the next fault looks again
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			end := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated)
			if end == nil || end.ExitCode == 0 || end.ExitCode == killed || end.FinishedAt.Time.Before(w.began) || w.ended[end.ContainerID] {
				continue
			}
			w.ended[end.ContainerID] = true
			if slices.ContainsFunc(w.outages, func(o outage) bool { return o.explains(end.FinishedAt.Time) }) {
				w.Logf("%s has ended: Kubernetes was away for longer than it keeps its lease", pod.Name)
				continue
			}
			w.history.write("broken", entry{"at": float64(end.FinishedAt.Unix()), "of": pod.Name, "text": fmt.Sprintf("ended with code %d: %s", end.ExitCode, end.Message)})
		}
	}
}

// waitRestarted waits until another process runs in the place of one that was killed.
func (w *world) waitRestarted(p *place) error {
	return w.until(restartTimeout, func(ctx context.Context) error {
		pod, err := w.pod(ctx, p.pod.Namespace, p.pod.Name)
		if err != nil {
			return err
		}
		id, err := kube.ContainerID(pod, p.container)
		if err != nil {
			return err
		}
		if id == p.id {
			return errors.New("the container has not ended yet")
		}
		_, err = kube.ProcessesOf(id)
		return err
	})
}

// nodeProcess returns the process of a component of Kubernetes that the dev cluster runs.
func nodeProcess(name string) (int, error) {
	data, err := os.ReadFile(filepath.Join("/var/lib/lockstep-cluster/pids", name+".pid"))
	if err != nil {
		return 0, err
	}
	var record struct{ Pid int }
	if err := json.Unmarshal(data, &record); err != nil {
		return 0, err
	}
	return record.Pid, nil
}

// repairCluster starts what has died of the dev cluster.
func (w *world) repairCluster() error {
	cmd := exec.Command("make", "-s", "cluster-up")
	cmd.Dir = kube.Root(w)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make cluster-up: %w\n%s", err, out)
	}
	return nil
}

// keepScheduler starts kube-scheduler again whenever it has ended, as the kubelet does in other clusters: it ends itself when what it
// remembers is not what kube-apiserver says, which happens after faults of that.
func (w *world) keepScheduler(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {
		pid, err := nodeProcess("kube-scheduler")
		if err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		if err := w.repairCluster(); err != nil {
			w.Logf("kube-scheduler has ended: %v", err)
		}
	}, time.Second)
}

// inNetwork runs a program in the network of a pod, whose file it is.
func inNetwork(network *os.File, name string, args ...string) error {
	cmd := exec.Command("nsenter", append([]string{"--net=/proc/self/fd/3", name}, args...)...)
	cmd.ExtraFiles = []*os.File{network}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// network opens the network of a pod. It stays the pod's when containers of it restart.
func (p *place) network() (*os.File, error) {
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", p.pids[0]))
	if err != nil {
		return nil, err
	}
	of, err := network.Stat()
	own, ownErr := os.Stat("/proc/self/ns/net")
	if err := errors.Join(err, ownErr); err != nil || os.SameFile(of, own) { // The process has ended, and another one has its number.
		return nil, errors.Join(err, errNotNow, network.Close())
	}
	return network, nil
}

// rndc calls rndc inside a pod. It needs no API server.
func rndc(sidecar *place, args ...string) error {
	all := append([]string{"--target", strconv.Itoa(sidecar.pids[0]), "--mount", "--net", "/lockstep", "rndc"}, args...)
	if out, err := exec.Command("nsenter", all...).CombinedOutput(); err != nil {
		return fmt.Errorf("rndc %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

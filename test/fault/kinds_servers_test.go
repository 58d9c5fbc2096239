package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

// serverKinds disturb servers in other ways.
var serverKinds = []kind{
	{"delete-pod", 4, allPods, true, (*world).deletePod},
	{"drain-node", 1, fleetNames, true, (*world).drainNode},
	{"unwritable", 3, allPods, false, (*world).makeUnwritable},
	{"full-disk", 3, allPods, false, (*world).fillDisk},
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
	root, err := os.OpenRoot(fmt.Sprintf("/proc/%d/root%s", p.pids[0], layout.ZonesDir))
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

// fillDisk lets no file of named grow for a while. Writes fail as they do on a full disk.
func (w *world) fillDisk(f *fault) error {
	p, err := w.find(w.namespace, f.target, "named")
	if err != nil {
		return err
	}
	if err := limitFiles(p, "1"); err != nil {
		return err
	}
	f.hold(w, 500, 6000)
	return limitFiles(p, "unlimited")
}

// limitFiles limits the size of the files that processes write. Who is the processes' user needs no capability for it.
func limitFiles(p *place, size string) error {
	for _, pid := range p.pids {
		info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t)
		out, err := exec.Command("setpriv", fmt.Sprint("--reuid=", owner.Uid), fmt.Sprint("--regid=", owner.Gid), "--clear-groups",
			"prlimit", "--pid", strconv.Itoa(pid), "--fsize="+size+":").CombinedOutput()
		if err != nil {
			return fmt.Errorf("prlimit: %w: %s", err, out)
		}
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

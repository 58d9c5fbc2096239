package fault

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// fault is one fault, as the history has it.
type fault struct {
	kind, target string
	// scope are the pods that it concerns, "*" for all; fleet is theirs, empty for all.
	scope []string
	fleet string
	// A fault begins between begin and started, and ends between ending and end. What happens in a moment has no more than begin
	// and end.
	begin, started, ending, end float64
	id                          int64
}

// kind is a kind of fault.
type kind struct {
	name   string
	weight int
	// targets returns what it may hit: names of pods or components.
	targets func() []string
	// losesData is true if a server comes back without its data: the others of its fleet have to keep it, so they are left alone.
	losesData bool
	// run carries out a fault from begin to end. An error means that it did not happen.
	run func(*world, *fault) error
}

// errNotNow is the error of a fault that is not possible at the moment.
var errNotNow = errors.New("not possible now")

var faultIDs atomic.Int64

// hold notes that a fault is in force, lets time pass, and notes that it is about to end.
func (f *fault) hold(w *world, least, most int) {
	f.started = now()
	w.pause(w.between(least, most))
	f.ending = now()
}

// allPods are the pods of all fleets.
func allPods() []string { return slices.Concat(fleets[0].pods(), fleets[1].pods()) }

func podsWithRole(role string) func() []string {
	return func() []string {
		return slices.DeleteFunc(allPods(), func(pod string) bool { return !strings.Contains(pod, "-"+role+"-") })
	}
}

func fixed(names ...string) func() []string { return func() []string { return names } }

func fleetNames() []string {
	var names []string
	for _, f := range fleets {
		names = append(names, f.name)
	}
	return names
}

// fleetOf returns the fleet of a pod, or of its own name.
func fleetOf(target string) *fleet {
	for i := range fleets {
		if name := fleets[i].name; target == name || strings.HasPrefix(target, name+"-") {
			return &fleets[i]
		}
	}
	return nil
}

// allKinds are the kinds of faults.
var allKinds = slices.Concat(processKinds, networkKinds, kubernetesKinds, handKinds, serverKinds, objectKinds, clientKinds)

func chosenKinds() []kind {
	if *kinds == "" {
		return allKinds
	}
	return slices.DeleteFunc(slices.Clone(allKinds), func(k kind) bool { return !slices.Contains(strings.Split(*kinds, ","), k.name) })
}

// faultPatience is how long a fault waits for a target: if a run has few kinds, others are at all of them.
const faultPatience = 5 * time.Minute

// oneFault carries out one fault that is possible now.
func (w *world) oneFault() {
	w.Helper()
	for until := time.Now().Add(faultPatience); time.Now().Before(until); {
		k, f, release := w.chooseFault()
		if f == nil {
			w.pause(50 * time.Millisecond)
			continue
		}
		f.begin = now()
		err := k.run(w, f)
		if f.end == 0 {
			f.end = now()
		}
		if err != nil && f.started != 0 {
			w.Errorf("%s of %s did not end: %v", f.kind, f.target, err)
			err = nil
		}
		if err == nil {
			w.history.write("fault", entry{"id": f.id, "kind": f.kind, "target": f.target, "scope": f.scope, "fleet": f.fleet,
				"begin": f.begin, "started": f.started, "ending": f.ending, "end": f.end})
			w.noteEnded()
			w.pause(time.Second) // until its target may be hit again
		} else if !errors.Is(err, errNotNow) {
			w.Logf("%s of %s: %v", f.kind, f.target, err)
			w.pause(500 * time.Millisecond) // kube-apiserver may be away
		}
		release()
		if err == nil {
			return
		}
	}
	w.Error("no fault is possible")
}

// chooseFault draws a kind and a target, and reserves the target. The fault is nil if it is in use.
func (w *world) chooseFault() (kind, *fault, func()) {
	all, total := chosenKinds(), 0
	for _, k := range all {
		total += k.weight
	}
	n, chosen := w.random(total), kind{}
	for _, k := range all {
		if n -= k.weight; n < 0 {
			chosen = k
			break
		}
	}
	target := pick(w, chosen.targets()...)
	f := &fault{kind: chosen.name, target: target, scope: []string{"*"}, id: faultIDs.Add(1)}
	reserve := []string{target}
	if fl := fleetOf(target); fl != nil {
		f.fleet, f.scope = fl.name, []string{target}
		if target == fl.name {
			f.scope = fl.pods()
		}
		if chosen.losesData {
			reserve = append(fl.pods(), fl.name)
		}
	}
	release := w.reserve(reserve)
	if release == nil {
		return chosen, nil, nil
	}
	return chosen, f, release
}

// reserve takes all names if none is in use.
func (w *world) reserve(names []string) func() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if slices.ContainsFunc(names, func(name string) bool { return w.busy[name] }) {
		return nil
	}
	for _, name := range names {
		w.busy[name] = true
	}
	return func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		for _, name := range names {
			delete(w.busy, name)
		}
	}
}

package node

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/process"
)

// Component is one process of the node.
type Component struct {
	process.Spec
	// Listens are the TCP addresses that have to be free for it.
	Listens []string
	// Healthy returns nil once the component does its work, and otherwise what
	// is in its way.
	Healthy func(context.Context) error
	// Grace is the time it gets to stop.
	Grace time.Duration
}

// Stages returns the components in the order of their start. Those of a stage
// need the stages before it, and not one another.
func (l Layout) Stages() [][]Component {
	return [][]Component{
		{l.containerd(), l.etcd()},
		{l.apiServer()},
		{l.controllerManager(), l.scheduler(), l.kubeProxy(), l.kubelet()},
	}
}

// Containerd has to run before images can be loaded.
func (l Layout) Containerd() Component { return l.containerd() }

// clientConfig returns the path of the kubeconfig of a component.
func (l Layout) clientConfig(component string) string { return l.Config(component + ".kubeconfig") }

// collectLess has Go collect garbage less often: it takes memory instead of processors, of which there may be two, until a program has a
// quarter of the machine's.
func collectLess() []string {
	env := []string{"GOGC=400"}
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return env
	}
	return append(env, fmt.Sprintf("GOMEMLIMIT=%d", uint64(info.Totalram)*uint64(info.Unit)/4))
}

// componentSpec fills in what all components have alike.
func (l Layout) componentSpec(name, executable string, inputs []string, args ...string) process.Spec {
	return process.Spec{
		Name:   name,
		Args:   append([]string{executable}, args...),
		Env:    collectLess(),
		Inputs: inputs,
		Log:    l.Log(name),
	}
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/node"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/process"
)

// ErrNotReady means that the cluster does not take pods.
var ErrNotReady = errors.New("the dev cluster is not ready; `make cluster-up` starts or repairs it")

// Status prints how the cluster does, and returns ErrNotReady if it is not
// usable.
func (c *Cluster) Status(ctx context.Context, w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tPID\tSTATE")
	healthy := true
	for _, part := range slices.Concat(c.Layout.Stages()...) {
		pid, state := c.componentState(ctx, part)
		healthy = healthy && state == running
		fmt.Fprintf(table, "%s\t%s\t%s\n", part.Name, pid, state)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	ready := "Ready"
	if err := checkHealth(ctx, c.Layout.Usable); err != nil {
		ready, healthy = "not ready", false
	}
	fmt.Fprintf(w, "\nnode %s: %s, Kubernetes %s\nKUBECONFIG=%s\n", node.Name, ready, c.Cache.Version, c.Layout.Kubeconfig())
	if !healthy {
		return ErrNotReady
	}
	return nil
}

// running is the state of a component that needs nothing.
const running = "running"

func (c *Cluster) componentState(ctx context.Context, part node.Component) (pid, state string) {
	r, ok, err := process.Load(c.Layout.Pids(), part.Name)
	switch {
	case err != nil:
		return "-", err.Error()
	case !ok:
		return "-", "stopped"
	case !r.Alive():
		return "-", "dead; see " + part.Log
	}
	pid = fmt.Sprint(r.PID)
	if err := checkHealth(ctx, part.Healthy); err != nil {
		return pid, "unhealthy: " + err.Error()
	}
	return pid, running
}

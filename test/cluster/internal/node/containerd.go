package node

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// containerd runs the machine's executable apart from any
// that the machine itself runs: with folders and a socket of its own.
func (l Layout) containerd() Component {
	config := l.Config("containerd.toml")
	return Component{
		Spec:    l.componentSpec("containerd", findExecutable("containerd"), []string{config}, "--config", config),
		Healthy: l.containerdAnswers,
		Grace:   10 * time.Second,
	}
}

func (l Layout) containerdAnswers(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "ctr", "--address", l.Socket(), "version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("asking containerd for its version: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// findExecutable returns the path of an executable, or its bare name, which says what is
// missing when it is run.
func findExecutable(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return name
}

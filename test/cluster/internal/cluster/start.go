package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/node"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/process"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/progress"
)

const (
	// startLimit is how long a component may take to become healthy.
	startLimit = 90 * time.Second
	// probeLimit is for one question about its health.
	probeLimit = 3 * time.Second
	probeEvery = 100 * time.Millisecond
	// logTail is how much of a log an error shows.
	logTail = 2000
)

// startStage starts those of the components that do not run as they should,
// and waits until all of them do.
func (c *Cluster) startStage(ctx context.Context, stage []node.Component) error {
	var started []node.Component
	var found []string
	for _, part := range stage {
		settled, err := c.isSettled(ctx, part)
		if err != nil {
			return err
		}
		if settled {
			found = append(found, part.Name)
			continue
		}
		if err := c.launchComponent(part); err != nil {
			return err
		}
		started = append(started, part)
	}
	if len(found) > 0 {
		c.Out.Say("running already: %s", strings.Join(found, ", "))
	}
	for _, part := range started {
		if err := c.waitForComponent(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// isSettled reports whether the component runs with its present configuration
// and is healthy. One that does not is stopped.
func (c *Cluster) isSettled(ctx context.Context, part node.Component) (bool, error) {
	r, ok, err := process.Load(c.Layout.Pids(), part.Name)
	if err != nil || !ok {
		return false, err
	}
	want, err := part.Fingerprint()
	if err != nil {
		return false, err
	}
	if r.Alive() && r.Fingerprint == want && checkHealth(ctx, part.Healthy) == nil {
		return true, nil
	}
	if r.Alive() {
		c.Out.Say("%s is not as it should be: starting it again", part.Name)
	}
	return false, process.Stop(c.Layout.Pids(), part.Name, part.Grace)
}

func (c *Cluster) launchComponent(part node.Component) error {
	for _, address := range part.Listens {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("%s cannot listen on %s: %w; stop what uses the port (see `ss -ltnp`), "+
				"or set KUBECONFIG to use another cluster", part.Name, address, err)
		}
		l.Close()
	}
	_, err := process.Start(c.Layout.Pids(), part.Spec)
	return err
}

// waitForComponent waits until the component is healthy, or has ended.
func (c *Cluster) waitForComponent(ctx context.Context, part node.Component) error {
	r, ok, err := process.Load(c.Layout.Pids(), part.Name)
	if err != nil || !ok {
		return errors.Join(err, fmt.Errorf("%s has no pid file", part.Name))
	}
	return c.Out.Phase("starting "+part.Name, func(*progress.Note) error {
		err := waitUntilHealthy(ctx, startLimit, func(ctx context.Context) error {
			if !r.Alive() {
				return errEnded
			}
			return part.Healthy(ctx)
		})
		if err != nil {
			return fmt.Errorf("starting %s: %w; the end of %s:\n%s", part.Name, err, part.Log, readLogTail(part.Log))
		}
		return nil
	})
}

var errEnded = errors.New("it ended by itself")

// waitUntilHealthy asks until the answer is nil, errEnded, or too late.
func waitUntilHealthy(ctx context.Context, limit time.Duration, healthy func(context.Context) error) error {
	end := time.Now().Add(limit)
	for {
		err := checkHealth(ctx, healthy)
		if err == nil || errors.Is(err, errEnded) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("not there after %s: %w", limit, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(probeEvery):
		}
	}
}

func checkHealth(ctx context.Context, healthy func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	return healthy(ctx)
}

// readLogTail returns the last part of a log.
func readLogTail(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	b = b[max(0, len(b)-logTail):]
	return strings.TrimSpace(string(b))
}

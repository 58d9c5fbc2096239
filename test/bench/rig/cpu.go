package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CPUTimes are seconds of CPU by program: "kube-apiserver", "named", "lockstep controller". The benchmark itself is "client".
type CPUTimes map[string]float64

// ReadCPUTimes returns what the programs on this machine have used since their start. Of a cluster on other machines none is there.
func ReadCPUTimes() (CPUTimes, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	times := CPUTimes{}
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil {
			continue // It has ended.
		}
		times[programOf(p)] += stat.CPUTime()
	}
	return times, nil
}

// Since returns what was used since earlier times.
func (t CPUTimes) Since(earlier CPUTimes) CPUTimes {
	used := CPUTimes{}
	for program, seconds := range t {
		used[program] = max(0, seconds-earlier[program])
	}
	return used
}

func programOf(p procfs.Proc) string {
	args, err := p.CmdLine()
	switch {
	case p.PID == os.Getpid():
		return "client"
	case err != nil || len(args) == 0:
		return "kernel threads"
	case filepath.Base(args[0]) == "lockstep" && len(args) > 1:
		return "lockstep " + args[1]
	}
	return filepath.Base(args[0])
}

// profileSeconds is how long profiles last, profilePort where the controller serves them if --pprof-bind-address says so.
const (
	profileSeconds = 5
	profilePort    = 6060
)

// SaveProfiles takes a CPU profile of kube-apiserver, of our API server and of the controller at the same time and writes those that there
// are: one file for each program, whose name begins with the prefix.
func (r *Rig) SaveProfiles(ctx context.Context, prefix string) error {
	path := fmt.Sprintf("/debug/pprof/profile?seconds=%d", profileSeconds)
	var group errgroup.Group
	save := func(program string, read func() ([]byte, error)) {
		group.Go(func() error {
			profile, err := read()
			if err != nil {
				fmt.Printf("  no profile of %s: %v\n", program, err)
				return nil
			}
			return os.WriteFile(prefix+program+".pprof", profile, 0o600)
		})
	}
	save("kube-apiserver", func() ([]byte, error) { profile, _, err := r.ReadPath(ctx, path); return profile, err })
	save("apiserver", func() ([]byte, error) {
		pods, err := r.apiServerPods(ctx)
		if err != nil || len(pods) == 0 {
			return nil, fmt.Errorf("%d pods: %w", len(pods), err)
		}
		return r.readReplica(ctx, pods[0].Status.PodIP, path)
	})
	save("controller", func() ([]byte, error) {
		var pods corev1.PodList
		err := r.Client.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "controller"})
		if err != nil || len(pods.Items) == 0 {
			return nil, fmt.Errorf("%d pods: %w", len(pods.Items), err)
		}
		return fetchPage(ctx, fmt.Sprintf("http://%s:%d%s", pods.Items[0].Status.PodIP, profilePort, path))
	})
	return group.Wait()
}

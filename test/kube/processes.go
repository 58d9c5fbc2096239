package kube

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// ContainerID returns the ID of a running container of a pod.
func ContainerID(pod *corev1.Pod, container string) (string, error) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == container && c.State.Running != nil {
			_, id, _ := strings.Cut(c.ContainerID, "://")
			return id, nil
		}
	}
	return "", fmt.Errorf("container %s of pod %s does not run", container, pod.Name)
}

// ProcessesOf returns the processes of a container on this machine, by its control group.
func ProcessesOf(id string) ([]int, error) {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, file := range groups {
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(data, []byte(id)) {
			continue // it has ended, or is another container's
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return nil, errors.New("no process of the container runs here")
	}
	return pids, nil
}

// Signal sends a signal to processes; one that has ended is no error.
func Signal(pids []int, s syscall.Signal) error {
	var errs []error
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

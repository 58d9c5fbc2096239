package controller

import (
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Timing of the leases. Two leaders at a time would do no harm: updates are compare-and-swap on the zone's SOA, writes to
// Kubernetes on the resource version or by server-side apply. So a lease only has to be long enough that a slow
// kube-apiserver does not cost the leader a restart.
const (
	leaseDuration = 6 * time.Second
	renewDeadline = 5 * time.Second
	retryPeriod   = time.Second
)

// newLock returns the lock on the process's lease. Its holder is the pod: a container that starts anew in the same pod
// goes on with the lease of the one before, which has ended (the kubelet runs one at a time). It is nil outside of a pod,
// where the manager makes a lock of its own.
func (p *Process) newLock(config *rest.Config) (resourcelock.Interface, error) {
	if !p.LeaderElect || p.podName == "" {
		return nil, nil
	}
	holder := resourcelock.ResourceLockConfig{Identity: p.podName}
	return resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, p.Namespace, p.name, holder, config, renewDeadline)
}

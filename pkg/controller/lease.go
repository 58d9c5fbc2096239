package controller

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Timing of the leases. A leader that cannot renew its lease in time ends, and is started anew by a kubelet that makes it
// wait longer each time: so a kube-apiserver and an etcd that are away one after the other must not cost it. Who takes over
// need not wait for the lease to expire (podLock).
const (
	leaseDuration = 30 * time.Second
	renewDeadline = 25 * time.Second
	retryPeriod   = time.Second
)

// tenureDuration is how long after a renewal the holder changes servers. takeoverDelay is how long the lease has to be as it is before
// somebody else takes it who knows that the holder's pod is gone: its processes may run on. The difference is for what the holder sent last;
// its kernel repeats that for four seconds (outbound).
const (
	tenureDuration = 10 * time.Second
	takeoverDelay  = 15 * time.Second
)

// newLock returns the lock on the process's lease. It is nil outside of a pod, where the manager makes a lock of its own.
func (p *Process) newLock(config *rest.Config) (resourcelock.Interface, error) {
	if !p.LeaderElect || p.podName == "" {
		return nil, nil
	}
	holder := resourcelock.ResourceLockConfig{Identity: p.podName}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, p.Namespace, p.name, holder, config, renewDeadline/2)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the lease's holder: %w", err)
	}
	p.tenure = &tenure{}
	return &podLock{Interface: lock, pods: client.CoreV1().Pods(p.Namespace), tenure: p.tenure}, nil
}

// podLock is a lease that a pod holds. A container that starts anew in the same pod goes on with the lease of the one before,
// which has ended: the kubelet runs one at a time. When the pod is gone or has ended, and nobody renews the lease, nobody holds it.
type podLock struct {
	resourcelock.Interface
	pods   corev1client.PodInterface
	tenure *tenure
	// seen is the lease as another process wrote it last, since when it was first seen.
	seen  []byte
	since time.Time
}

// Get implements resourcelock.Interface.
func (l *podLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil || record.HolderIdentity == l.Identity() {
		return record, raw, err
	}
	l.tenure.resign()
	if !bytes.Equal(raw, l.seen) {
		l.seen, l.since = raw, time.Now()
	}
	if time.Since(l.since) >= takeoverDelay && l.hasEnded(ctx, record.HolderIdentity) {
		record.HolderIdentity = ""
	}
	return record, raw, nil
}

// Create implements resourcelock.Interface.
func (l *podLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface. It takes the lease, renews it or gives it up.
func (l *podLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *podLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	isOwn := record.HolderIdentity == l.Identity()
	if !isOwn {
		l.tenure.resign()
	}
	began := time.Now()
	err := write(ctx, record)
	if err == nil && isOwn {
		l.tenure.extend(began)
	}
	return err
}

// hasEnded reports whether a holder is a pod that is not there any more. What it cannot find out it takes for alive.
func (l *podLock) hasEnded(ctx context.Context, holder string) bool {
	if holder == "" || strings.Contains(holder, "_") { // as those outside of a pod are called
		return false
	}
	pod, err := l.pods.Get(ctx, holder, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded)
}

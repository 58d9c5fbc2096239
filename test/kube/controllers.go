package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// home is the namespace that Lockstep runs in.
const home = "lockstep-system"

// controllersLock is held for reading by tests of what the controller promises only while it runs, and for writing while it is killed.
// Tests of several processes run at the same time.
var controllersLock = filepath.Join(os.TempDir(), "lockstep-controllers.lock")

// KeepControllers has nobody kill the controller and the fleet manager until release is called.
func KeepControllers(t testing.TB) (release func()) {
	t.Helper()
	release, err := lockControllers(syscall.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// KillControllers deletes the pods of the controller and of the fleet manager. Nobody kills those that come after them before they run.
func KillControllers(ctx context.Context, c client.Client, grace int64) error {
	release, err := lockControllers(syscall.LOCK_EX)
	if err != nil {
		return err
	}
	former, err := controllerPods(ctx, c)
	for i := range former {
		err = errors.Join(err, client.IgnoreNotFound(c.Delete(ctx, &former[i], client.GracePeriodSeconds(grace))))
	}
	go func() {
		defer release()
		_ = wait.PollUntilContextTimeout(context.WithoutCancel(ctx), 250*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			return areReplaced(ctx, c, former), nil
		})
	}()
	return err
}

func lockControllers(how int) (release func(), err error) {
	f, err := os.OpenFile(controllersLock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), how)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", controllersLock, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func controllerPods(ctx context.Context, c client.Client) (pods []corev1.Pod, err error) {
	for _, component := range []string{"controller", "fleet"} {
		var some corev1.PodList
		err = errors.Join(err, c.List(ctx, &some, client.InNamespace(home), client.MatchingLabels{"app.kubernetes.io/component": component}))
		pods = append(pods, some.Items...)
	}
	return pods, err
}

// areReplaced reports whether the former pods are gone, and the controller and the fleet manager are ready again.
func areReplaced(ctx context.Context, c client.Client, former []corev1.Pod) bool {
	now, err := controllerPods(ctx, c)
	for _, pod := range now {
		for _, gone := range former {
			if pod.UID == gone.UID {
				return false
			}
		}
	}
	for _, name := range []string{"lockstep-controller", "lockstep-fleet"} {
		var deployment appsv1.Deployment
		err = errors.Join(err, c.Get(ctx, client.ObjectKey{Namespace: home, Name: name}, &deployment))
		if deployment.Status.ReadyReplicas == 0 || deployment.Status.ReadyReplicas != deployment.Status.Replicas {
			return false
		}
	}
	return err == nil
}

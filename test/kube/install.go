package kube

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var installation struct {
	once sync.Once
	err  error
}

// install makes sure that Lockstep runs in the cluster, once for all tests of a process.
func install(t testing.TB) {
	t.Helper()
	installation.once.Do(func() { installation.err = runInstall(t, "OVERLAY="+Overlay) })
	if installation.err != nil {
		t.Fatal(installation.err)
	}
}

// restore waits until Lockstep runs as before a disruptive test, so that the next one finds what it needs. What a test has left broken is
// installed again.
func restore(t testing.TB) {
	t.Helper()
	c := Client(t)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Start.Duration())
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, 250*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		last = componentsRun(ctx, c)
		return last == nil || apierrors.IsNotFound(last), nil
	})
	if err == nil && last == nil {
		return
	}
	t.Errorf("Lockstep does not run after the test, and is installed again: %v", last)
	if err := runInstall(t, "OVERLAY="+Overlay); err != nil {
		t.Error(err)
	}
}

// Overlay is what the tests install, as a user would who has Cluster API.
const Overlay = "manifests/overlays/cluster-api"

// Reinstall installs Lockstep after a test has removed it.
func Reinstall(t testing.TB) {
	t.Helper()
	if err := runInstall(t, "OVERLAY="+Overlay); err != nil {
		t.Fatal(err)
	}
}

// InstallOverlay installs Lockstep from another overlay than usual, which sets the namespace.
func InstallOverlay(t testing.TB, overlay, namespace string) {
	t.Helper()
	if err := runInstall(t, "OVERLAY="+overlay, "NAMESPACE="+namespace); err != nil {
		t.Fatal(err)
	}
}

// Uninstall removes what an overlay installs into a namespace, as a user does, and waits until it is gone.
func Uninstall(t testing.TB, overlay, namespace string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var hurrying sync.WaitGroup
	hurrying.Go(func() { hurryDeletion(ctx, Client(t), namespace) })
	out, err := TryKubectl(t, "", "delete", "-k", overlay, "--ignore-not-found", "--timeout=150s")
	stop()
	hurrying.Wait()
	if err != nil {
		t.Fatalf("uninstalling %s: %v\n%s", overlay, err, out)
	}
}

// hurryDeletion has Kubernetes look again at a namespace that is being deleted as soon as its pods have gone. It does so five seconds
// after a change of the namespace, and by itself only after half of the pods' grace period, which the fleet manager needs for a large
// installation.
func hurryDeletion(ctx context.Context, c client.Client, namespace string) {
	_ = wait.PollUntilContextCancel(ctx, 500*time.Millisecond, false, func(ctx context.Context) (bool, error) {
		var ns corev1.Namespace
		var pods corev1.PodList
		if c.Get(ctx, client.ObjectKey{Name: namespace}, &ns) != nil || ns.DeletionTimestamp == nil ||
			c.List(ctx, &pods, client.InNamespace(namespace)) != nil || len(pods.Items) > 0 {
			return false, nil
		}
		return c.Patch(ctx, &ns, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"pods":"gone"}}}`))) == nil, nil
	})
}

func runInstall(t testing.TB, environment ...string) error {
	t.Helper()
	Config(t)
	if out, err := runCommand(Root(t), "", "env", append(environment, "test/install")...); err != nil {
		return fmt.Errorf("installing Lockstep: %w\n%s", err, out)
	}
	if out, err := runCommand(Root(t), guard, "kubectl", "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("guarding what isolated tests share: %w\n%s", err, out)
	}
	return nil
}

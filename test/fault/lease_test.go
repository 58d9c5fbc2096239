package fault

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// A component that does not reach kube-apiserver for a quarter of a minute keeps its lease and its process. Otherwise the kubelet lets it wait,
// longer each time, and nothing converges meanwhile.
func TestFaultKeepsLease(t *testing.T) {
	kube.Disruptive(t, nil)
	w := &world{T: t, client: kube.Client(t)}
	for _, name := range []string{"controller", "fleet"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, err := w.component(name)
			if err != nil {
				t.Fatal(err)
			}
			cut := time.Now()
			if err := w.filtered(before, func() { w.pause(15 * time.Second) }, cutFromKubernetes); err != nil {
				t.Fatal(err)
			}
			t.Logf("cut off for %s", time.Since(cut).Round(100*time.Millisecond))
			again := time.Now()
			if err := w.until(restartTimeout, func(ctx context.Context) error { return w.isRenewedSince(ctx, name, again) }); err != nil {
				t.Fatal(err)
			}
			after, err := w.component(name)
			if err != nil {
				t.Fatal(err)
			}
			if after.id != before.id {
				t.Errorf("another container runs: the one before ended when it was cut off")
			}
		})
	}
}

// isRenewedSince returns an error unless a component has renewed its lease since a time.
func (w *world) isRenewedSince(ctx context.Context, name string, since time.Time) error {
	var lease coordinationv1.Lease
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: system, Name: "lockstep-" + name}, &lease); err != nil {
		return err
	}
	if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(since) {
		return errors.New("the lease is not renewed yet")
	}
	return nil
}

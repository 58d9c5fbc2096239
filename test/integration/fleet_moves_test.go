package integration

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// A zone that moves is on its old server until the new one answers; from one that never does it does not move.
func TestFleetZoneMovesWithoutGap(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	side := func(name string) *v1beta1.Bind9Instance {
		i := f.instance(name, v1beta1.RolePrimary, 1)
		i.Labels = map[string]string{"side": name}
		return i
	}
	on := func(name string) []v1beta1.InstanceSource {
		return []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"side": name}}}}
	}
	left, right, never := side("left"), side("right"), side("never")
	never.Spec.Image = &v1beta1.ImageConfig{Image: noImage}
	zone := f.dnsZone("main", "gapless.example")
	zone.Spec.ClusterRef, zone.Spec.Bind9InstancesFrom = "", on("left")
	f.create(left, right, never, zone, f.aRecord("www", "www", "192.0.2.1"))
	kube.WaitReady(f, f.client, f.namespace, kube.Settle, "bind9instance/left", "bind9instance/right", "dnszone/main")

	servers, err := f.servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asks := 0
	move := func(to, from string) {
		change(f, zone, func(z *v1beta1.DNSZone) { z.Spec.Bind9InstancesFrom = on(to) })
		kube.Throughout(f, kube.Settle, func(context.Context) error {
			// The old one is asked first: when it has let go, the new one has the zone.
			old, young := f.askUntilAnswered(servers[from+"-0"], "www.gapless.example."), f.askUntilAnswered(servers[to+"-0"], "www.gapless.example.")
			asks++
			if old != "192.0.2.1" && young != "192.0.2.1" {
				t.Errorf("neither serves the zone: %s answers %s, %s %s", from, old, to, young)
			}
			if old == "192.0.2.1" || young != "192.0.2.1" {
				return fmt.Errorf("%s answers %s, %s %s", from, old, to, young)
			}
			return nil
		})
	}
	for range 3 {
		move("right", "left")
		move("left", "right")
	}
	t.Logf("6 moves, %d questions to both servers, none that neither of them answered", asks)

	change(f, zone, func(z *v1beta1.DNSZone) { z.Spec.Bind9InstancesFrom = on("never") })
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(zone), zone); err != nil {
			return err
		}
		c := meta.FindStatusCondition(zone.Status.Conditions, "Ready")
		if c == nil || c.Status != metav1.ConditionFalse || c.ObservedGeneration != zone.Generation {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	f.waitPodCheck("left")
	if got, err := queryRdata(servers["left-0"], "www.gapless.example.", 1); len(got) != 1 {
		t.Errorf("nobody serves the zone: left answers %q, %v", got, err)
	}
	change(f, never, func(i *v1beta1.Bind9Instance) { i.Spec.Image = nil })
	f.waitHosted("gapless.example", kube.Start, map[string]bool{"left-0": false, "never-0": true})
}

// waitPodCheck waits until the controller has looked at the instance's pods after this moment: what it does on the way to a
// status, it has done.
func (f *fixture) waitPodCheck(instance string) {
	f.Helper()
	i := &v1beta1.Bind9Instance{ObjectMeta: f.meta(instance, nil)}
	scale := func(replicas int32) {
		change(f, i, func(i *v1beta1.Bind9Instance) { i.Spec.Replicas = &replicas })
		kube.Eventually(f, kube.Start, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(i), i); err != nil {
				return err
			}
			if i.Status.ObservedGeneration != i.Generation || i.Status.ReadyReplicas != replicas {
				return fmt.Errorf("status %+v", i.Status)
			}
			return nil
		})
	}
	scale(2)
	scale(1)
}

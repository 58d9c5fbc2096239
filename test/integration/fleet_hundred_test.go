package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// manyInstances is how many instances the cluster has here: enough to see that writes are gathered. The limits for a real hundred are
// those of a unit test of the controller.
const manyInstances = 16

// A cluster of many instances keeps a small status, and neither their coming nor their pods' coming and going makes more than
// one write of it a second. No node takes the pods; the test writes their status.
func TestFleetOfAHundred(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	cluster := f.cluster("dns", 1, manyInstances-1)
	cluster.Spec.Global = &v1beta1.Bind9Config{BindcarConfig: &v1beta1.BindcarConfig{Resources: &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")},
	}}}
	clusters, instances := f.countWrites(&v1beta1.Bind9ClusterList{}), f.countWrites(&v1beta1.Bind9InstanceList{})
	measure := func(what string, run func()) {
		t.Helper()
		began, c, i := time.Now(), clusters.Load(), instances.Load()
		run()
		span := time.Since(began)
		c, i = clusters.Load()-c, instances.Load()-i
		t.Logf("%s: %s, %d writes of the cluster, %d of its instances", what, span.Round(100*time.Millisecond), c, i)
		if limit := int64(span/time.Second) + 3; c > limit {
			t.Errorf("%s: %d writes of the cluster in %s", what, c, span)
		}
	}
	ready := func(want int32) {
		t.Helper()
		kube.Eventually(f, kube.Roll, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
				return err
			}
			if s := cluster.Status; s.InstanceCount != manyInstances || s.ReadyInstances != want || len(s.Conditions) != manyInstances+1 {
				return fmt.Errorf("%d instances, %d ready, %d conditions", s.InstanceCount, s.ReadyInstances, len(s.Conditions))
			}
			return nil
		})
	}
	pods := &corev1.PodList{}
	measure("made", func() {
		f.create(cluster)
		ready(0)
		kube.Eventually(f, kube.Roll, func(ctx context.Context) error {
			err := f.client.List(ctx, pods, client.InNamespace(f.namespace), client.MatchingLabels{named.LabelName: named.AppName})
			if err == nil && len(pods.Items) != manyInstances {
				err = fmt.Errorf("%d pods", len(pods.Items))
			}
			return err
		})
	})
	measure("ready", func() { f.setPodsReady(pods, corev1.ConditionTrue); ready(manyInstances) })
	status, err := json.Marshal(cluster.Status)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := json.Marshal(cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("status of %d bytes, object of %d", len(status), len(whole))
	if len(whole) > manyInstances*(128<<10)/100 {
		t.Errorf("the object has %d bytes", len(whole))
	}
	measure("flaps", func() {
		for range 2 {
			f.setPodsReady(pods, corev1.ConditionFalse)
			f.setPodsReady(pods, corev1.ConditionTrue)
		}
		ready(manyInstances)
	})
}

// countWrites counts the changes of all objects of a kind in the namespace from now on.
func (f *fixture) countWrites(list client.ObjectList) *atomic.Int64 {
	f.Helper()
	c, err := client.NewWithWatch(kube.Config(f), client.Options{Scheme: f.client.Scheme()})
	if err != nil {
		f.Fatal(err)
	}
	w, err := c.Watch(f.Context(), list, client.InNamespace(f.namespace))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(w.Stop)
	var count atomic.Int64
	go func() {
		for e := range w.ResultChan() {
			if e.Type == watch.Modified {
				count.Add(1)
			}
		}
	}()
	return &count
}

// setPodsReady says in the kubelet's place that pods run and are ready, or not.
func (f *fixture) setPodsReady(pods *corev1.PodList, ready corev1.ConditionStatus) {
	f.Helper()
	patch, err := json.Marshal(map[string]any{"status": corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 10)
	for i := range pods.Items {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := f.client.Status().Patch(f.Context(), pods.Items[i].DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", patch)); err != nil {
				f.Error(err)
			}
		})
	}
	wg.Wait()
}

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// nodeHere is the name of the dev cluster's node.
const nodeHere = "lockstep"

// A persistent volume outlives its pod: a new one answers from it at once, without the controller.
func TestFleetStorage(t *testing.T) {
	dir := t.TempDir()
	var f *fixture
	var instance *v1beta1.Bind9Instance
	kube.Disruptive(t, func() {
		f = newFleet(t)
		instance = f.createOnVolume(dir)
	})
	if found, err := filepath.Glob(filepath.Join(dir, "zones", "*")); err != nil || len(found) == 0 {
		t.Errorf("the volume holds %q: %v", found, err)
	}
	servers, err := f.servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	serial, err := querySerial(servers["kept-0"], "kept.example.")
	if err != nil {
		t.Fatal(err)
	}

	f.withoutController(func() {
		var before corev1.Pod
		key := client.ObjectKey{Namespace: f.namespace, Name: "kept-0"}
		if err := f.client.Get(t.Context(), key, &before); err != nil {
			t.Fatal(err)
		}
		f.kubectl("delete", "pod", "kept-0", "--wait=false")
		kube.Throughout(f, kube.Start, func(ctx context.Context) error {
			var after corev1.Pod
			if err := f.client.Get(ctx, key, &after); err != nil {
				return err
			}
			if after.UID == before.UID {
				return errors.New("the old pod is still there")
			}
			servers, err := f.servers(ctx)
			if err != nil {
				return err
			}
			got, err := queryRdata(servers["kept-0"], "www.kept.example.", 1)
			if err != nil || len(got) != 1 || got[0] != "192.0.2.1" {
				return fmt.Errorf("answers %q: %w", got, err)
			}
			again, err := querySerial(servers["kept-0"], "kept.example.")
			if err != nil {
				return err
			}
			if again != serial {
				t.Errorf("serial %d after, %d before", again, serial)
			}
			return nil
		})
	})
	waitConditions(f, kube.Start, instance, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod kept-0 is ready")

	// Kubernetes keeps a StatefulSet's claims as they are; docs/reference/fleet.md describes how to change them.
	change(f, instance, func(i *v1beta1.Bind9Instance) { i.Spec.Storage = nil })
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(instance), instance); err != nil {
			return err
		}
		if s := instance.Status; s.FailureReason != "ConfigurationInvalid" || s.ObservedGeneration != instance.Generation {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	f.kubectl("delete", "statefulset", "kept", "--cascade=orphan")
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
		var pod corev1.Pod
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "kept-0"}, &pod); err != nil {
			return err
		}
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				return errors.New("the pod has its claim still")
			}
		}
		return nil
	})
	waitConditions(f, kube.Start, instance, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod kept-0 is ready")
}

// createOnVolume creates an instance with a volume in a directory of this machine, and a zone of one record on it.
func (f *fixture) createOnVolume(dir string) *v1beta1.Bind9Instance {
	f.Helper()
	class := f.namespace
	f.localVolume(class, dir)
	instance := f.instance("kept", v1beta1.RolePrimary, 1)
	instance.Labels = map[string]string{"side": "kept"}
	instance.Spec.Storage = &v1beta1.StorageConfig{StorageType: v1beta1.StoragePersistentVolumeClaim,
		PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimConfig{Size: "10Mi", StorageClassName: &class}}
	zone := f.dnsZone("main", "kept.example")
	zone.Spec.ClusterRef = ""
	zone.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: instance.Labels}}}
	f.create(instance, zone, f.aRecord("www", "www", "192.0.2.1"))
	waitConditions(f, kube.Start, instance, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod kept-0 is ready")
	f.waitServed("www.kept.example.", "A", "192.0.2.1")
	return instance
}

// localVolume makes a volume of a storage class of its own from a directory of the cluster's only node, this machine.
func (f *fixture) localVolume(class, dir string) {
	f.Helper()
	var nodes corev1.NodeList
	if err := f.client.List(f.Context(), &nodes); err != nil {
		f.Fatal(err)
	}
	if len(nodes.Items) != 1 || nodes.Items[0].Name != nodeHere {
		f.Skipf("the cluster's node is not this machine: a local volume cannot be made")
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		f.Fatal(err)
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Mi")},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: dir}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{nodeHere}}},
		}}}},
	}}
	f.create(volume)
	f.Cleanup(func() {
		if err := f.client.Delete(context.Background(), volume, &client.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
			f.Error(err)
		}
	})
}

// withoutController does something while neither the controller nor the fleet manager runs, and brings them back.
func (f *fixture) withoutController(do func()) {
	f.Helper()
	stopControllers(f)
	defer func() {
		for _, deployment := range []string{"deployment/lockstep-controller", "deployment/lockstep-fleet"} {
			kube.Kubectl(f, "", "-n", system, "scale", deployment, "--replicas=1")
			kube.Kubectl(f, "", "-n", system, "rollout", "status", deployment, "--timeout=120s")
		}
	}()
	do()
}

// stopControllers scales the controller and the fleet manager to zero.
func stopControllers(t testing.TB) {
	t.Helper()
	kube.Kubectl(t, "", "-n", system, "scale", "deployment/lockstep-controller", "deployment/lockstep-fleet", "--replicas=0")
	kube.Kubectl(t, "", "-n", system, "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component in (controller,fleet)", "--timeout=120s")
}

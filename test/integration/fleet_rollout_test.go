package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// sameImage is the default image under its full name: a change of image that needs no other image.
const sameImage = "docker.io/library/lockstep-bind9:9.20"

// componentsImage is the one of the components. Sidecars ran it before they had one of their own.
const componentsImage = "docker.io/library/lockstep:dev"

// noImage is one that nobody has.
const noImage = "lockstep.invalid/bind9:none"

// Resolvers that ask the servers all the time get an answer to each query and no wrong one, and never are two servers replaced at once,
// while a new image and a mistake roll out, and while servers come and go.
func TestFleetRolloutUnderLoad(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "load.example", 1, 2)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitServed("www.load.example.", "A", "192.0.2.1")
	cluster := f.cluster("dns", 0, 0)
	instances := []string{"dns-primary-0", "dns-secondary-0", "dns-secondary-1"}
	servers := f.services(instances...)

	f.runSub("image", func(f *fixture) {
		end, replaced := f.startLoad(servers, "www.load.example.", "192.0.2.1"), f.followReplacements(instances...)
		change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Image = &v1beta1.ImageConfig{Image: sameImage} })
		f.waitRolledOut(3, func(pod *corev1.PodSpec) bool { return pod.Containers[0].Image == sameImage })
		f.report(end(), "new image")
		replaced()
	})
	f.runSub("sidecar", func(f *fixture) {
		setSidecar := func(image string) {
			change(f, cluster, func(c *v1beta1.Bind9Cluster) {
				c.Spec.Global = &v1beta1.Bind9Config{BindcarConfig: &v1beta1.BindcarConfig{Image: image}}
			})
		}
		setSidecar(componentsImage)
		f.waitRolledOut(3, func(pod *corev1.PodSpec) bool { return pod.Containers[1].Image == componentsImage })
		end, replaced := f.startLoad(servers, "www.load.example.", "192.0.2.1"), f.followReplacements(instances...)
		setSidecar("")
		f.waitRolledOut(3, func(pod *corev1.PodSpec) bool {
			return pod.Containers[1].Image != componentsImage && pod.InitContainers[0].Image == pod.Containers[1].Image
		})
		f.report(end(), "an image of the sidecar's own")
		replaced()
	})
	f.runSub("mistake", func(f *fixture) {
		end, replaced := f.startLoad(servers, "www.load.example.", "192.0.2.1"), f.followReplacements(instances...)
		change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Image = &v1beta1.ImageConfig{Image: noImage} })
		kube.Eventually(f, kube.Start, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
				return err
			}
			if c := meta.FindStatusCondition(cluster.Status.Conditions, "Ready"); c == nil || c.Reason != "PartiallyReady" {
				return fmt.Errorf("condition %+v", c)
			}
			if n := f.countWithImage(noImage); n != 1 {
				return fmt.Errorf("%d instances have the image that there is not, want 1", n)
			}
			return nil
		})
		change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Image = &v1beta1.ImageConfig{Image: sameImage} })
		f.waitRolledOut(3, func(pod *corev1.PodSpec) bool { return pod.Containers[0].Image == sameImage })
		f.report(end(), "mistake and its repair")
		replaced()
	})
	f.runSub("scale", func(f *fixture) {
		end, replaced := f.startLoad(servers, "www.load.example.", "192.0.2.1"), f.followReplacements(instances...)
		change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Secondary.Replicas = new(int32(4)) })
		f.waitRolledOut(5, func(*corev1.PodSpec) bool { return true })
		f.waitServed("www.load.example.", "A", "192.0.2.1")
		change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Secondary.Replicas = new(int32(2)) })
		f.waitRolledOut(3, func(*corev1.PodSpec) bool { return true })
		f.report(end(), "scaling up and down")
		replaced()
	})
}

// A fleet goes from the default release of BIND to the other one and back. Resolvers that ask all the time get an answer to each query and no wrong one,
// records are written while servers of both releases serve the zone, and never are two servers replaced at once.
func TestFleetVersions(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "versions.example", 1, 2)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitServed("www.versions.example.", "A", "192.0.2.1")
	cluster := f.cluster("dns", 0, 0)
	instances := []string{"dns-primary-0", "dns-secondary-0", "dns-secondary-1"}
	servers := f.services(instances...)
	for i, version := range []string{"9.18", "9.20"} {
		f.runSub(version, func(f *fixture) {
			end, replaced := f.startLoad(servers, "www.versions.example.", "192.0.2.1"), f.followReplacements(instances...)
			change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Version = version })
			name := fmt.Sprintf("during-%d", i)
			f.create(f.aRecord(name, name, "192.0.2.7"))
			f.waitRolledOut(3, func(pod *corev1.PodSpec) bool { return strings.HasSuffix(pod.Containers[0].Image, ":"+version) })
			f.waitServed(name+".versions.example.", "A", "192.0.2.7")
			f.report(end(), "to BIND "+version)
			replaced()
			f.checkRunning(version, 3)
		})
	}
}

// checkRunning checks that so many servers say that they are of a release.
func (f *fixture) checkRunning(release string, servers int) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		s, err := f.status(ctx, "bind9cluster.dns")
		if err != nil {
			return err
		}
		n := 0
		for _, row := range s.Servers {
			if strings.HasPrefix(row.Version, release+".") {
				n++
			}
		}
		if n != servers {
			return fmt.Errorf("%d servers say that they run BIND %s, want %d: %+v", n, release, servers, s.Servers)
		}
		return nil
	})
}

// waitRolledOut waits until there are so many instances, all as they should be, and the cluster is ready.
func (f *fixture) waitRolledOut(instances int, want func(*corev1.PodSpec) bool) {
	f.Helper()
	kube.Eventually(f, kube.Roll, func(ctx context.Context) error {
		var sets appsv1.StatefulSetList
		if err := f.client.List(ctx, &sets, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		if len(sets.Items) != instances {
			return fmt.Errorf("%d instances, want %d", len(sets.Items), instances)
		}
		for _, set := range sets.Items {
			if s := set.Status; s.ObservedGeneration < set.Generation || s.UpdatedReplicas != 1 || s.AvailableReplicas != 1 || !want(&set.Spec.Template.Spec) {
				return fmt.Errorf("%s has not changed yet", set.Name)
			}
		}
		return nil
	})
	kube.WaitReady(f, f.client, f.namespace, kube.Settle, "bind9cluster/dns")
}

// countWithImage counts the StatefulSets whose named runs the image.
func (f *fixture) countWithImage(image string) int {
	f.Helper()
	n := 0
	for _, set := range f.statefulSets() {
		if set.Spec.Template.Spec.Containers[0].Image == image {
			n++
		}
	}
	return n
}

func (f *fixture) statefulSets() []appsv1.StatefulSet {
	f.Helper()
	var sets appsv1.StatefulSetList
	if err := f.client.List(f.Context(), &sets, client.InNamespace(f.namespace)); err != nil {
		f.Fatal(err)
	}
	return sets.Items
}

// A cluster all of whose servers are broken by the same mistake is mended by one change: none of them waits for another.
func TestFleetMended(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	cluster := f.cluster("dns", 1, 2)
	cluster.Spec.Image = &v1beta1.ImageConfig{Image: noImage}
	f.create(cluster)
	kube.Eventually(f, kube.Start, func(context.Context) error {
		if n := f.countWithImage(noImage); n != 3 {
			return fmt.Errorf("%d of 3 instances exist", n)
		}
		return nil
	})
	change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Image = nil })
	waitConditions(f, kube.Start, cluster, clusterConditions,
		"Ready True AllReady: All 3 instances are ready",
		"Bind9Instance-0 True Ready: Instance dns-primary-0 is ready (1/1 pods)",
		"Bind9Instance-1 True Ready: Instance dns-secondary-0 is ready (1/1 pods)",
		"Bind9Instance-2 True Ready: Instance dns-secondary-1 is ready (1/1 pods)")
}

// A drain takes one server of a role at a time.
func TestFleetDrain(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	f.create(f.cluster("dns", 1, 2))
	kube.WaitReady(f, f.client, f.namespace, kube.Settle, "bind9cluster/dns")
	evict := func(ctx context.Context, pod string) error {
		o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: pod}}
		return f.client.SubResource("eviction").Create(ctx, o, &policyv1.Eviction{ObjectMeta: o.ObjectMeta})
	}
	replaced := f.followReplacements("dns-secondary-0", "dns-secondary-1")
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error { return evict(ctx, "dns-secondary-0-0") })
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error { return evict(ctx, "dns-primary-0-0") })
	kube.Eventually(f, kube.Start, func(ctx context.Context) error { return evict(ctx, "dns-secondary-1-0") }) // refused while the other one is away
	replaced()
}

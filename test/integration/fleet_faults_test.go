package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// childKinds are the kinds of objects that servers need, each with how many of them a cluster of a primary and a secondary, of
// which the first signs a zone, has at least.
var childKinds = map[string]struct {
	list client.ObjectList
	want int
}{
	"ServiceAccount":      {&corev1.ServiceAccountList{}, 2},
	"ConfigMap":           {&corev1.ConfigMapList{}, 2},
	"Service":             {&corev1.ServiceList{}, 2},
	"StatefulSet":         {&appsv1.StatefulSetList{}, 2},
	"PodDisruptionBudget": {&policyv1.PodDisruptionBudgetList{}, 2},
	"Secret":              {&corev1.SecretList{}, 7},
	"Role":                {&rbacv1.RoleList{}, 3},
	"RoleBinding":         {&rbacv1.RoleBindingList{}, 3},
}

// children returns the objects of a kind that were made for servers, with their UIDs.
func (f *fixture) children(ctx context.Context, list client.ObjectList) (map[string]client.Object, error) {
	if err := f.client.List(ctx, list, client.InNamespace(f.namespace)); err != nil {
		return nil, err
	}
	all := map[string]client.Object{}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		if child := o.(client.Object); metav1.GetControllerOf(child) != nil {
			all[child.GetName()] = child.DeepCopyObject().(client.Object)
		}
		return nil
	})
	return all, err
}

// Whatever servers are made of is made again when it is deleted, and pods that are replaced meanwhile start.
func TestFleetChildrenComeBack(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	zone := f.dnsZone("main", "comeback.example")
	zone.Spec.DNSSECPolicy = "default"
	f.create(f.cluster("dns", 1, 1), zone)
	kube.WaitReady(f, f.client, f.namespace, kube.Start, "bind9cluster/dns", "dnszone/main")
	addresses := f.serviceAddresses()
	deleted := map[string]map[string]types.UID{}
	for kind, c := range childKinds {
		deleted[kind] = map[string]types.UID{}
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			found, err := f.children(ctx, c.list)
			if err == nil && len(found) < c.want {
				err = fmt.Errorf("%d objects of kind %s, want %d", len(found), kind, c.want)
			}
			for name, o := range found {
				deleted[kind][name] = o.GetUID()
			}
			return err
		})
		for name := range deleted[kind] {
			kube.Kubectl(t, "", "-n", f.namespace, "delete", strings.ToLower(kind), name, "--wait=false")
		}
	}
	for kind, c := range childKinds {
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			found, err := f.children(ctx, c.list)
			for name, uid := range deleted[kind] {
				if o := found[name]; o == nil || o.GetUID() == uid {
					err = errors.Join(err, fmt.Errorf("%s %s has not been made again", kind, name))
				}
			}
			return err
		})
	}
	if again := f.serviceAddresses(); again != addresses {
		f.Errorf("the Services had the addresses %s and have %s", addresses, again)
	}
	f.restartPods("dns-primary-0-0", "dns-secondary-0-0")
	kube.WaitReady(f, f.client, f.namespace, kube.Start, "bind9cluster/dns", "dnszone/main")
}

// serviceAddresses returns the names and addresses of the Services of the test's namespace.
func (f *fixture) serviceAddresses() string {
	f.Helper()
	return kube.Kubectl(f, "", "-n", f.namespace, "get", "services", "-o", `jsonpath={range .items[*]}{.metadata.name}={.spec.clusterIP} {end}`)
}

// restartPods deletes pods, and waits until others of their names are ready.
func (f *fixture) restartPods(names ...string) {
	f.Helper()
	for _, name := range names {
		pod := &corev1.Pod{ObjectMeta: f.meta(name, nil)}
		before := f.uidOf(pod)
		kube.Kubectl(f, "", "-n", f.namespace, "delete", "pod", name, "--wait=false", "--ignore-not-found") // It may be going already.
		kube.Eventually(f, kube.Start, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
				return err
			}
			ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
			if pod.UID == before || !ready {
				return fmt.Errorf("pod %s is not replaced by one that is ready: %+v", name, pod.Status.Conditions)
			}
			return nil
		})
	}
}

// uidOf returns the UID of an object, empty if there is none.
func (f *fixture) uidOf(o client.Object) types.UID {
	f.Helper()
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil {
		f.Fatal(err)
	}
	return o.GetUID()
}

// Servers that were taken away and are wanted again at once come up as any others do: nothing is remembered of those before.
func TestFleetAgain(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	cluster := f.cluster("dns", 1, 1)
	f.create(cluster)
	ready := func() {
		t.Helper()
		waitConditions(f, kube.Start, cluster, clusterConditions, "Ready True AllReady: All 2 instances are ready",
			"Bind9Instance-0 True Ready: Instance dns-primary-0 is ready (1/1 pods)", "Bind9Instance-1 True Ready: Instance dns-secondary-0 is ready (1/1 pods)")
	}
	ready()
	secondary := &v1beta1.Bind9Instance{ObjectMeta: f.meta("dns-secondary-0", nil)}
	former := f.uidOf(secondary)
	setSecondaries := func(n int32) {
		change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Secondary.Replicas = new(n) })
	}
	setSecondaries(0)
	kube.Eventually(f, kube.Settle, func(context.Context) error {
		if uid := f.uidOf(&v1beta1.Bind9Instance{ObjectMeta: f.meta("dns-secondary-0", nil)}); uid == former {
			return errors.New("the instance is there")
		}
		return nil
	})
	setSecondaries(1)
	ready()

	saw := f.watchReasons(cluster)
	f.deleteAnyway(cluster)
	cluster = f.cluster("dns", 1, 1)
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error { return f.client.Create(ctx, cluster) })
	ready()
	if reasons := saw(""); slices.Contains(reasons, "False ConfigurationInvalid") {
		t.Errorf("what a former cluster left was somebody else's: %q", reasons)
	}
}

// A pod that waits for a Secret says for which, and so does its instance.
func TestFleetMissingMount(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	instance := f.instance("alone", v1beta1.RolePrimary, 1)
	instance.Spec.Volumes = []corev1.Volume{{Name: "mine", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "theirs"}}}}
	instance.Spec.VolumeMounts = []corev1.VolumeMount{{Name: "mine", MountPath: "/mine"}}
	f.create(instance)
	const cause = "Secret theirs, which its volume mine needs, does not exist"
	waitConditions(f, kube.Start, instance, instanceConditions,
		"Ready False PodsPending: No pods are ready: "+cause, "Pod-0 False PodsPending: Pod alone-0 is pending: "+cause)
	f.create(&corev1.Secret{ObjectMeta: f.meta("theirs", nil)})
	waitConditions(f, kube.Start, instance, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod alone-0 is ready")
}

// What runs is reported whatever is wrong with the object that declares it, and whoever made it.
func TestFleetKeepsFacts(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "facts.example", 1, 1)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitServed("www.facts.example.", "A", "192.0.2.1")
	byHand := f.instance("by-hand", v1beta1.RoleSecondary, 1)
	byHand.Spec.ClusterRef = "dns"
	f.create(byHand)
	cluster := f.cluster("dns", 1, 1)
	parts := []string{
		"Bind9Instance-0 True Ready: Instance dns-primary-0 is ready (1/1 pods)", "Bind9Instance-1 True Ready: Instance dns-secondary-0 is ready (1/1 pods)",
		"Bind9Instance-2 True Ready: Instance by-hand is ready (1/1 pods)",
	}
	counts := func() {
		t.Helper()
		if s := cluster.Status; s.InstanceCount != 3 || s.ReadyInstances != 3 || !slices.Equal(s.Instances, []string{"dns-primary-0", "dns-secondary-0", "by-hand"}) {
			t.Errorf("status %+v", s)
		}
	}
	waitConditions(f, kube.Start, cluster, clusterConditions, append(parts, "Ready True AllReady: All 3 instances are ready")...)
	counts()

	change(f, cluster, func(c *v1beta1.Bind9Cluster) {
		c.Spec.Primary.RNDCKey = &v1beta1.RNDCKeyConfig{SecretRef: &v1beta1.RNDCSecretRef{Name: "nowhere"}}
	})
	waitConditions(f, kube.Settle, cluster, clusterConditions,
		append(parts, "Ready False NotReady: reading the update key: Secret nowhere does not exist or may not be read")...)
	counts()
	change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Primary.RNDCKey = nil })
	waitConditions(f, kube.Settle, cluster, clusterConditions, append(parts, "Ready True AllReady: All 3 instances are ready")...)

	// Without a primary the zone is still on its secondaries.
	change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Primary.Replicas = new(int32(0)) })
	f.waitZone("none of the zone's instances is a primary: "+f.namespace+"/by-hand, "+f.namespace+"/dns-secondary-0", "by-hand Configured", "dns-secondary-0 Configured")
	primary := f.instance("primary", v1beta1.RolePrimary, 0)
	primary.Spec.ClusterRef = "dns"
	f.create(primary)
	f.waitZone("primary "+f.namespace+"/primary has no pods: its spec.replicas is 0", "by-hand Configured", "dns-secondary-0 Configured")
}

// waitZone waits until the zone is not ready, for this reason, with these instances and its record.
func (f *fixture) waitZone(message string, instances ...string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		zone := &v1beta1.DNSZone{ObjectMeta: f.meta("main", nil)}
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(zone), zone); err != nil {
			return err
		}
		var got []string
		for _, i := range zone.Status.Bind9Instances {
			got = append(got, i.Name+" "+string(i.Status))
		}
		ready := meta.FindStatusCondition(zone.Status.Conditions, "Ready")
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Message != message || !slices.Equal(got, instances) || zone.Status.RecordsCount == 0 || len(zone.Status.Records) == 0 {
			return fmt.Errorf("Ready is %+v, instances %v, %d records", ready, got, zone.Status.RecordsCount)
		}
		return nil
	})
}

// An image that cannot be pulled is the business of every parent of the pod.
func TestFleetImageIsMissing(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	cluster.Spec.Namespace = f.namespace
	cluster.Spec.Primary = &v1beta1.RoleConfig{Replicas: new(int32(1))}
	cluster.Spec.Image = &v1beta1.ImageConfig{Image: noImage}
	f.create(cluster)
	t.Cleanup(func() { kube.Kubectl(t, "", "delete", "bind9globalcluster", cluster.Name, "--timeout=120s") })
	instance := &v1beta1.Bind9Instance{ObjectMeta: f.meta(cluster.Name+"-primary-0", nil)}
	for what, o := range map[string]struct {
		object     client.Object
		conditions func() []metav1.Condition
		reason     string
		names      string
	}{
		"instance": {instance, func() []metav1.Condition { return instance.Status.Conditions }, "PodsPending", ""},
		"cluster":  {cluster, func() []metav1.Condition { return cluster.Status.Conditions }, "ClustersProgressing", "Instance " + instance.Name + " is not ready (0/1 pods)"},
	} {
		kube.Eventually(f, kube.Start, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(o.object), o.object); err != nil {
				return err
			}
			ready := meta.FindStatusCondition(o.conditions(), "Ready")
			if ready == nil || ready.Reason != o.reason || !strings.Contains(ready.Message, "container named: ") || !strings.Contains(ready.Message, noImage) || !strings.Contains(ready.Message, o.names) {
				return fmt.Errorf("%s: Ready is %+v", what, ready)
			}
			return nil
		})
	}
}

// A cluster says that it is scaled until that is done, on the way up and on the way down.
func TestFleetSaysThatItScales(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	cluster := f.cluster("dns", 1, 0)
	saw := f.watchReasons(cluster)
	f.create(cluster)
	const one, two = "Bind9Instance-0 True Ready: Instance dns-primary-0 is ready (1/1 pods)", "Bind9Instance-1 True Ready: Instance dns-secondary-0 is ready (1/1 pods)"
	waitConditions(f, kube.Start, cluster, clusterConditions, "Ready True AllReady: All 1 instances are ready", one)
	change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Secondary.Replicas = new(int32(1)) })
	waitConditions(f, kube.Start, cluster, clusterConditions, "Ready True AllReady: All 2 instances are ready", one, two)
	change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Secondary.Replicas = new(int32(0)) })
	saw("True InstancesScaling: All 1 instances are ready; still being removed: dns-secondary-0")
	waitConditions(f, kube.Settle, cluster, clusterConditions, "Ready True AllReady: All 1 instances are ready", one)
	all := saw("")
	want := []string{"False InstancesCreated", "True AllReady", "False InstancesScaling", "True AllReady", "True InstancesScaling", "True AllReady"}
	if got := withoutLapses(all); !slices.Equal(got, want) {
		t.Errorf("reasons of Ready %q, of these on the way %q, want %q", all, got, want)
	}
	if pods, err := f.servers(t.Context()); err != nil || len(pods) != 1 {
		t.Errorf("pods %v: %v", pods, err)
	}
}

// withoutLapses leaves out when a server is not ready, and is again: on a busy machine its probes and its sidecar may fail. Ready may name
// one of the causes at any time. Another reason is a lapse only after one that does not say that instances are on their way.
func withoutLapses(all []string) (kept []string) {
	causes := []string{"False PodsCrashing", "False BindcarUnreachable"}
	others := []string{"False NotReady", "False PartiallyReady", "False PodsPending"}
	underWay := []string{"False InstancesCreated", "False InstancesScaling"}
	for i, line := range all {
		isLapse := slices.Contains(causes, line) || slices.Contains(others, line) && i > 0 && !slices.Contains(underWay, all[i-1])
		if isBack := len(kept) > 0 && line == kept[len(kept)-1]; !isLapse && !isBack {
			kept = append(kept, line)
		}
	}
	return kept
}

// TestWithoutLapses checks which reasons TestFleetSaysThatItScales lets pass.
func TestWithoutLapses(t *testing.T) {
	for _, all := range [][]string{
		{"False InstancesCreated", "True AllReady"},
		{"False InstancesCreated", "True AllReady", "False NotReady", "True AllReady"},
		{"False InstancesCreated", "False BindcarUnreachable", "False NotReady", "True AllReady"},
	} {
		if got := withoutLapses(all); !slices.Equal(got, []string{"False InstancesCreated", "True AllReady"}) {
			t.Errorf("of %q remain %q", all, got)
		}
	}
	for _, all := range [][]string{
		{"False InstancesCreated", "False NotReady", "True AllReady"},
		{"False NotReady", "False InstancesCreated", "True AllReady"},
		{"False NoChildren", "False InstancesCreated", "True AllReady"},
		{"True AllReady", "True InstancesScaling", "True AllReady", "True InstancesScaling", "True AllReady"},
	} {
		if got := withoutLapses(all); !slices.Equal(got, all) {
			t.Errorf("of %q remain %q", all, got)
		}
	}
}

// watchReasons follows the reasons of a cluster's Ready condition. The function that it returns waits until the condition was as
// given, if something is, and returns status and reason of all that were, without repetitions.
func (f *fixture) watchReasons(cluster *v1beta1.Bind9Cluster) func(until string) []string {
	f.Helper()
	c, err := client.NewWithWatch(kube.Config(f), client.Options{Scheme: f.client.Scheme()})
	if err != nil {
		f.Fatal(err)
	}
	watcher, err := c.Watch(f.Context(), &v1beta1.Bind9ClusterList{}, client.InNamespace(f.namespace))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(watcher.Stop)
	var all []string
	seen := map[string]bool{}
	take := func(o any) {
		c, ok := o.(*v1beta1.Bind9Cluster)
		if !ok || c.Name != cluster.Name {
			return
		}
		ready := meta.FindStatusCondition(c.Status.Conditions, "Ready")
		if ready == nil {
			return
		}
		seen[fmt.Sprintf("%s %s: %s", ready.Status, ready.Reason, ready.Message)] = true
		if line := fmt.Sprintf("%s %s", ready.Status, ready.Reason); len(all) == 0 || all[len(all)-1] != line {
			all = append(all, line)
		}
	}
	return func(until string) []string {
		f.Helper()
		kube.Eventually(f, kube.Settle, func(context.Context) error {
			for {
				select {
				case e := <-watcher.ResultChan():
					take(e.Object)
					continue
				default:
				}
				if until == "" || seen[until] {
					return nil
				}
				return fmt.Errorf("Ready was %q, not %q", all, until)
			}
		})
		return all
	}
}

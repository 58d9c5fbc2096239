package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// A cluster and an instance that grow get a condition for each new part.
func TestFleetScalesUp(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	cluster := f.cluster("dns", 1, 0)
	f.create(cluster)
	waitConditions(f, kube.Start, cluster, clusterConditions, "Ready True AllReady: All 1 instances are ready",
		"Bind9Instance-0 True Ready: Instance dns-primary-0 is ready (1/1 pods)")
	change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Secondary = &v1beta1.RoleConfig{Replicas: new(int32(1))} })
	waitConditions(f, kube.Start, cluster, clusterConditions, "Ready True AllReady: All 2 instances are ready",
		"Bind9Instance-0 True Ready: Instance dns-primary-0 is ready (1/1 pods)",
		"Bind9Instance-1 True Ready: Instance dns-secondary-0 is ready (1/1 pods)")
	if cluster.Status.PhaseSince == nil || cluster.Status.ObservedGeneration != cluster.Generation {
		t.Errorf("status %+v", cluster.Status)
	}
	secondary := &v1beta1.Bind9Instance{ObjectMeta: f.meta("dns-secondary-0", nil)}
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(secondary), secondary); err != nil {
		t.Fatal(err)
	}
	if got := secondary.Annotations[v1beta1.InstanceIndexAnnotation]; got != "0" {
		t.Errorf("instance index %q", got)
	}

	alone := f.instance("alone", v1beta1.RolePrimary, 1)
	f.create(alone)
	waitConditions(f, kube.Start, alone, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod alone-0 is ready")
	change(f, alone, func(i *v1beta1.Bind9Instance) { i.Spec.Replicas = new(int32(2)) })
	waitConditions(f, kube.Start, alone, instanceConditions, "Ready True AllReady: All 2 pods are ready",
		"Pod-0 True Ready: Pod alone-0 is ready", "Pod-1 True Ready: Pod alone-1 is ready")
}

// A pod whose sidecar has stopped says so, and its cluster says it of the instance, until the sidecar is back.
func TestFleetSidecarStopped(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	cluster := f.cluster("dns", 1, 0)
	f.create(cluster)
	waitConditions(f, kube.Start, cluster, clusterConditions, "Ready True AllReady: All 1 instances are ready",
		"Bind9Instance-0 True Ready: Instance dns-primary-0 is ready (1/1 pods)")
	setImage := f.replaceImage("dns-primary-0-0", "bindcar")
	image := setImage("localhost/no-such-image:none")
	instance := &v1beta1.Bind9Instance{ObjectMeta: f.meta("dns-primary-0", nil)}
	waitConditions(f, kube.Start, instance, instanceConditions, "Ready False BindcarUnreachable: No pods are ready",
		"Pod-0 False BindcarUnreachable: Pod dns-primary-0-0 cannot connect to Bindcar API")
	if s := instance.Status; s.Ready || s.FailureReason != "" || s.Phase != v1beta1.PhaseCreating {
		t.Errorf("a transient problem is reported as a failure: %+v", s.LifecycleStatus)
	}
	waitConditions(f, kube.Settle, cluster, clusterConditions, "Ready False BindcarUnreachable: No instances are ready",
		"Bind9Instance-0 False BindcarUnreachable: Instance dns-primary-0 is not ready (0/1 pods): No pods are ready")
	setImage(image)
	waitConditions(f, kube.Start, cluster, clusterConditions, "Ready True AllReady: All 1 instances are ready",
		"Bind9Instance-0 True Ready: Instance dns-primary-0 is ready (1/1 pods)")
}

// One pod of two without its sidecar: its instance is partly ready, and so is the cluster, each in the words that docs/reference/fleet.md shows. The
// other one without its named: the instance is not ready, for no common reason.
func TestFleetPartlyReady(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	cluster := f.cluster("dns", 1, 1)
	extra := f.instance("extra", v1beta1.RoleSecondary, 2)
	extra.Spec.ClusterRef = "dns"
	f.create(cluster, extra)
	const primary, secondary = "Bind9Instance-0 True Ready: Instance dns-primary-0 is ready (1/1 pods)", "Bind9Instance-1 True Ready: Instance dns-secondary-0 is ready (1/1 pods)"
	waitConditions(f, kube.Start, cluster, clusterConditions, "Ready True AllReady: All 3 instances are ready", primary, secondary,
		"Bind9Instance-2 True Ready: Instance extra is ready (2/2 pods)")
	setImage := f.replaceImage("extra-1", "bindcar")
	image := setImage("localhost/no-such-image:none")
	waitConditions(f, kube.Start, extra, instanceConditions, "Ready False PartiallyReady: 1 of 2 pods are ready",
		"Pod-0 True Ready: Pod extra-0 is ready", "Pod-1 False BindcarUnreachable: Pod extra-1 cannot connect to Bindcar API")
	waitConditions(f, kube.Settle, cluster, clusterConditions, "Ready False PartiallyReady: 2 of 3 instances are ready", primary, secondary,
		"Bind9Instance-2 False PartiallyReady: Instance extra is progressing (1/2 pods)")
	setNamed := f.replaceImage("extra-0", "named")
	named := setNamed("localhost/no-such-image:none")
	waitCondition(f, extra, instanceConditions, "Ready", metav1.ConditionFalse, "NotReady", "No pods are ready")
	setNamed(named)
	setImage(image)
	waitConditions(f, kube.Start, cluster, clusterConditions, "Ready True AllReady: All 3 instances are ready", primary, secondary,
		"Bind9Instance-2 True Ready: Instance extra is ready (2/2 pods)")
}

// replaceImage returns what gives a container of a pod another image, and returns the one before. The kubelet stops a container whose image is
// to be another one, and cannot start it from one that does not exist.
func (f *fixture) replaceImage(name, container string) func(to string) (before string) {
	pod := &corev1.Pod{ObjectMeta: f.meta(name, nil)}
	return func(to string) (before string) {
		f.Helper()
		change(f, pod, func(p *corev1.Pod) {
			for i := range p.Spec.Containers {
				if c := &p.Spec.Containers[i]; c.Name == container {
					before, c.Image = c.Image, to
				}
			}
		})
		return before
	}
}

// A secondary whose zone no primary has is not to blame.
func TestFleetWithoutUpstream(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	primary, secondary := f.instance("first", v1beta1.RolePrimary, 0), f.instance("second", v1beta1.RoleSecondary, 1)
	primary.Labels, secondary.Labels = map[string]string{"serves": "it"}, map[string]string{"serves": "it"}
	zone := f.dnsZone("main", "upstream.example")
	zone.Spec.ClusterRef = ""
	zone.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: primary.Labels}}}
	f.create(zone, primary, secondary)
	waitConditions(f, kube.Start, secondary, instanceConditions, "Ready False UpstreamUnreachable: No pods are ready",
		"Pod-0 False UpstreamUnreachable: Pod second-0 serves 0 of 1 zones: no primary of upstream.example is ready")
}

// An instance does nothing before its cluster exists, a wrong configuration is reported until it is repaired, and both show it
// by events and phases.
func TestFleetWaitsAndRecovers(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	early := f.instance("early", v1beta1.RoleSecondary, 1)
	early.Spec.ClusterRef = "later"
	f.create(early)
	waitConditions(f, kube.Settle, early, instanceConditions, "Ready False NotReady: no Bind9Cluster later is in namespace "+f.namespace)
	if s := early.Status; s.Phase != v1beta1.PhaseCreating || s.PhaseSince == nil {
		t.Errorf("waiting: %+v", s.LifecycleStatus)
	}
	if out, err := kube.TryKubectl(t, "", "-n", f.namespace, "get", "statefulset", "early"); err == nil {
		t.Errorf("an instance without its cluster runs: %s", out)
	}
	f.create(f.cluster("later", 0, 0))
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(early), early); err != nil {
			return err
		}
		if meta.FindStatusCondition(early.Status.Conditions, "Pod-0") == nil {
			return fmt.Errorf("conditions %+v", early.Status.Conditions)
		}
		return nil
	})

	wrong := f.instance("wrong", v1beta1.RolePrimary, 0)
	wrong.Spec.Config = &v1beta1.Bind9Config{AllowQuery: v1beta1.AddressMatchList{"office"}}
	f.create(wrong)
	phase := func(want v1beta1.Phase, reason string) {
		t.Helper()
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(wrong), wrong); err != nil {
				return err
			}
			if s := wrong.Status; s.Phase != want || s.FailureReason != reason {
				return fmt.Errorf("status %+v", s.LifecycleStatus)
			}
			return nil
		})
	}
	phase(v1beta1.PhaseFailed, "ConfigurationInvalid")
	change(f, wrong, func(i *v1beta1.Bind9Instance) { i.Spec.Config.AllowQuery = v1beta1.AddressMatchList{"any"} })
	phase(v1beta1.PhaseCreating, "")
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		var events eventsv1.EventList
		if err := f.client.List(ctx, &events, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		var reasons []string
		for _, e := range events.Items {
			if e.Regarding.Name == "wrong" {
				reasons = append(reasons, e.Reason)
			}
		}
		if all := strings.Join(reasons, " "); !strings.Contains(all, "ConfigurationInvalid") || !strings.Contains(all, "ConfigurationValid") {
			return fmt.Errorf("events %s", all)
		}
		return nil
	})

	finalizer := "example.com/hold"
	change(f, wrong, func(i *v1beta1.Bind9Instance) { i.Finalizers = append(i.Finalizers, finalizer) })
	if err := f.client.Delete(t.Context(), wrong); err != nil {
		t.Fatal(err)
	}
	phase(v1beta1.PhaseDeleting, "")
	change(f, wrong, func(i *v1beta1.Bind9Instance) { i.Finalizers = nil })
}

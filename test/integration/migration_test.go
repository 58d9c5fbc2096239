package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/load"
)

// Selectors that users of Bindy have find instances and pods; a pod that Bindy's Deployment made for the instance gets no query from our
// Service, and one that has all of our labels is reported.
func TestMigrationOfPods(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "migration.example", 1, 0)
	f.expectSelected(&v1beta1.Bind9InstanceList{}, "app.kubernetes.io/part-of=bindy,bindy.firestoned.io/managed-by=Bind9Cluster,bindy.firestoned.io/role=primary")
	f.expectSelected(&corev1.PodList{}, "app=bind9,instance=dns-primary-0,app.kubernetes.io/component=dns-server,app.kubernetes.io/part-of=bindy")
	instance := &v1beta1.Bind9Instance{ObjectMeta: f.meta("dns-primary-0", nil)}
	f.waitReadyReason(instance, status.AllReady, "")
	if first := instance.Status.Conditions[0]; first.Type != status.Ready || instance.Status.ObservedParentGeneration == 0 {
		t.Errorf("conditions[0] is %s, the parent's generation is %d", first.Type, instance.Status.ObservedParentGeneration)
	}

	former := map[string]string{named.LabelName: named.AppName, serving.LabelInstance: "dns-primary-0", "app": "bind9", named.LabelManagedBy: "Bind9Cluster"}
	f.create(f.idlePod("dns-primary-0-7c9d-x2b4q", former))
	former[named.LabelManagedBy] = named.Manager
	stranger := f.idlePod("stranger", former)
	f.create(stranger)
	f.waitReadyReason(instance, status.ForeignPods, "Pod stranger; delete them")
	f.waitVerdict("dnszone.main", syncv1.PhaseOutOfSync, status.ForeignPods)
	f.waitVerdict("bind9instance.dns-primary-0", syncv1.PhaseOutOfSync, status.ForeignPods)
	addresses := f.serviceEndpoints("dns-primary-0")
	if len(addresses) != 2 || !slices.Contains(addresses, "stranger") || !slices.Contains(addresses, "dns-primary-0-0") {
		t.Errorf("the Service sends queries to %v", addresses)
	}
	if _, err := kube.TryKubectl(t, "", "-n", f.namespace, "label", "pod", "stranger", "app.kubernetes.io/managed-by-"); err != nil {
		t.Fatal(err)
	}
	f.waitReadyReason(instance, status.AllReady, "")
	byHand := &discoveryv1.EndpointSlice{ObjectMeta: f.meta("by-hand", map[string]string{discoveryv1.LabelServiceName: "dns-primary-0"}), AddressType: discoveryv1.AddressTypeIPv4}
	byHand.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.53"}}}
	f.create(byHand)
	f.waitReadyReason(instance, status.ForeignPods, "EndpointSlice by-hand; delete them")
	f.deleteAnyway(byHand)
	f.waitReadyReason(instance, status.AllReady, "")
	f.waitVerdict("dnszone.main", syncv1.PhaseInSync, string(syncv1.StateInSync))
}

// waitVerdict waits until a SyncStatus has a phase, for the reason of its condition Propagated.
func (f *fixture) waitVerdict(name string, phase syncv1.Phase, reason string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		v, err := f.status(ctx, name)
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(v.Status.Conditions, syncv1.ConditionPropagated); v.Status.Phase != phase || c == nil || c.Reason != reason {
			return fmt.Errorf("%s says %+v", name, v.Status)
		}
		return nil
	})
}

// A zone that a server of Bindy's answers for is taken over: kubectl lockstep migrate says what is to be done, does it, goes on where it
// was interrupted, and no query on the way is left without the right answer.
func TestMigration(t *testing.T) {
	var f *pluginTest
	var m *formerInstallation
	kube.Disruptive(t, func() { f = &pluginTest{newFleet(t), pluginFolder(t)} })
	var end func(what string)
	f.withoutController(func() {
		m = f.installFormer("former.example")
		end = f.startFormerLoad(m.instance.Name)
		f.forbidPods()
	})
	f.expectOutput(1, `(?s)1 +stop Bindy; .*Deployment `+f.namespace+`/bindy.*2 +delete its admission policies +ValidatingAdmissionPolicy bindy-.*3 +install Lockstep +done.*`+
		`4 +remove Bindy's finalizers +1 ARecord, 1 Bind9Instance, 1 DNSZone.*7 +delete the former servers +Deployment `+f.namespace+`/web\n8 +delete what served them .*Nothing was changed`, "migrate")
	f.expectOutput(1, `(?s)6\. wait until .*these former servers stay, because queries need them: .*`+f.namespace+`/web \(`, "migrate", "--apply", "--wait=1ms")
	f.permitPods()
	f.expectOutput(0, `(?s)7\. delete the former servers.*Done\.`, "migrate", "--apply", "--wait=2m")
	f.waitGone(m.server)
	end("from Bindy to Lockstep")
	f.waitServed("www.former.example.", "A", "192.0.2.1")
	if pods := f.serviceEndpoints(m.instance.Name); !slices.Equal(pods, []string{m.instance.Name + "-0"}) {
		t.Errorf("the Service sends queries to %v", pods)
	}
	f.expectOutput(0, `Nothing is left to do`, "migrate")
	f.deleteAnyway(m.zone)
	f.waitGone(m.zone) // It had a finalizer of Bindy's.
}

// noPods is a quota that no further pod fits into.
func (f *fixture) noPods() *corev1.ResourceQuota {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "no-pods"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	return quota
}

// forbidPods keeps servers from becoming ready: no pod is made in the namespace any more.
func (f *fixture) forbidPods() {
	f.Helper()
	f.create(f.noPods())
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		quota := f.noPods()
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return errors.New("nothing enforces the quota yet")
		}
		return nil
	})
}

func (f *fixture) permitPods() {
	f.Helper()
	if err := f.client.Delete(f.Context(), f.noPods()); err != nil {
		f.Fatal(err)
	}
}

// startFormerLoad waits until the Services of Bindy's instances answer, and has a resolver ask each of them from then on. The returned
// function ends that, and fails the test for each query that was left without the right answer.
func (f *fixture) startFormerLoad(instances ...string) (end func(what string)) {
	f.Helper()
	const name, address = "www.former.example.", "192.0.2.1"
	var ends []func() load.Result
	for instance, service := range f.services(instances...) {
		kube.Eventually(f, kube.Settle, func(context.Context) error {
			answer, err := load.Ask(service, name)
			if err == nil && answer != address {
				err = fmt.Errorf("the Service of Bindy answers %s", answer)
			}
			return err
		})
		ends = append(ends, f.startLoad(map[string]string{instance: service}, name, address))
	}
	return func(what string) {
		f.Helper()
		for _, end := range ends {
			f.report(end(), what)
		}
	}
}

// Until the former servers are deleted, the migration can be interrupted and taken back: Bindy, started again, replaces its Services, and then
// Lockstep's servers go. No query on the way there and back is left without the right answer.
func TestMigrationTakenBack(t *testing.T) {
	var f *pluginTest
	kube.Disruptive(t, func() { f = &pluginTest{newFleet(t), pluginFolder(t)} })
	var m *formerInstallation
	var end func(what string)
	former := &corev1.Service{}
	f.withoutController(func() {
		m = f.installFormer("former.example")
		if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(m.instance), former); err != nil {
			t.Fatal(err)
		}
		end = f.startFormerLoad(m.instance.Name)
	})
	ctx, interrupt := context.WithCancel(t.Context())
	command := f.command(ctx, "migrate", "--apply", "--wait=2m")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	f.waitEndpoints(m.instance.Name, m.instance.Name+"-0")
	interrupt()
	_ = command.Wait() // It was killed.
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(m.server), m.server); err != nil {
		t.Fatalf("the former server is gone already: %v", err)
	}
	var pods corev1.PodList
	if err := f.client.List(t.Context(), &pods, client.InNamespace(f.namespace), client.MatchingLabels(m.server.Spec.Selector.MatchLabels)); err != nil || len(pods.Items) != 1 {
		t.Fatalf("the former server has %d pods, error %v", len(pods.Items), err)
	}
	f.withoutController(func() {
		back := former.DeepCopy() // Bindy writes all of a Service, but for its addresses.
		back.ResourceVersion = ""
		if err := f.client.Update(t.Context(), back); err != nil {
			t.Fatal(err)
		}
		f.waitEndpoints(m.instance.Name, pods.Items[0].Name)
		f.waitFormerServes(m.instance.Name)
		kube.Kubectl(t, "", "delete", "statefulsets", "-n", f.namespace, "-l", "app.kubernetes.io/managed-by=lockstep")
		kube.Kubectl(t, "", "wait", "-n", f.namespace, "--for=delete", "pod/"+m.instance.Name+"-0", "--timeout=120s")
		end("to Lockstep and back to Bindy")
	})
}

// formerSerial is the serial of the zone on Bindy's servers.
const formerSerial = 1

// waitFormerServes waits until the nodes have followed a Service, and Bindy's server answers through it.
func (f *fixture) waitFormerServes(instance string) {
	f.Helper()
	service := f.services(instance)[instance]
	kube.Eventually(f, kube.Settle, func(context.Context) error {
		serial, err := querySerial(service, "former.example.")
		if err == nil && serial != formerSerial {
			err = fmt.Errorf("Service %s answers with serial %d", instance, serial)
		}
		return err
	})
}

// waitEndpoints waits until a Service sends queries to these pods alone.
func (f *fixture) waitEndpoints(service string, pods ...string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(context.Context) error {
		if got := f.serviceEndpoints(service); !slices.Equal(got, pods) {
			return fmt.Errorf("Service %s sends queries to %v", service, got)
		}
		return nil
	})
}

// The servers of a ClusterBind9Provider, a primary and a secondary, come over without being made anew: Bindy gave them to a Bind9Cluster of its
// name, which goes.
func TestMigrationOfProvider(t *testing.T) {
	var f *pluginTest
	kube.Disruptive(t, func() { f = &pluginTest{newFleet(t), pluginFolder(t)} })
	provider := &v1beta1.ClusterBind9Provider{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	provider.Spec.Namespace = f.namespace
	provider.Spec.Primary, provider.Spec.Secondary = &v1beta1.RoleConfig{}, &v1beta1.RoleConfig{}
	names := []string{f.namespace + "-primary-0", f.namespace + "-secondary-0"}
	former := map[string]types.UID{}
	var end func(what string)
	f.withoutController(func() {
		f.create(provider)
		f.Cleanup(func() { _ = f.client.Delete(context.Background(), provider) })
		for _, o := range f.formerProvider(provider, names) {
			former[o.Name] = o.UID
			f.formerServer(o, "Bind9Cluster", "former.example")
		}
		zone := f.dnsZone("main", "former.example")
		zone.Spec.ClusterRef = provider.Name
		f.create(zone, f.aRecord("www", "www", "192.0.2.1"))
		kube.Kubectl(f, "", "-n", f.namespace, "wait", "--for=condition=Available", "deployment", "--all", "--timeout=120s")
		end = f.startFormerLoad(names...)
	})
	f.expectOutput(1, `5 +give instances of ClusterBind9Providers to these +2 of Bind9Cluster `+f.namespace+`/`+provider.Name, "migrate")
	f.expectOutput(0, `(?s)5\. give instances.*6\. wait until .*7\. delete the former servers.*Done\.`, "migrate", "--apply", "--wait=3m")
	end("from Bindy's provider to Lockstep")
	for name, uid := range former {
		instance := &v1beta1.Bind9Instance{ObjectMeta: f.meta(name, nil)}
		f.waitReadyReason(instance, status.AllReady, "")
		if owner := metav1.GetControllerOf(instance); instance.UID != uid || owner == nil || owner.UID != provider.UID {
			t.Errorf("%s has UID %s, before %s; it belongs to %+v", name, instance.UID, uid, owner)
		}
		if pods := f.serviceEndpoints(name); !slices.Equal(pods, []string{name + "-0"}) {
			t.Errorf("Service %s sends queries to %v", name, pods)
		}
	}
	f.waitGone(&v1beta1.Bind9Cluster{ObjectMeta: f.meta(provider.Name, nil)})
	f.waitServed("www.former.example", "A", "192.0.2.1")
	f.expectOutput(0, `Nothing is left to do`, "migrate")
	f.deleteAnyway(&v1beta1.DNSZone{ObjectMeta: f.meta("main", nil)})
	f.deleteAnyway(provider)
	f.waitGone(provider)
}

// formerProvider makes what Bindy makes of a provider: a Bind9Cluster of its name, and its instances, which that controls.
func (f *fixture) formerProvider(provider *v1beta1.ClusterBind9Provider, names []string) (instances []*v1beta1.Bind9Instance) {
	f.Helper()
	inner := &v1beta1.Bind9Cluster{ObjectMeta: f.meta(provider.Name, map[string]string{v1beta1.ManagedByLabel: "ClusterBind9Provider", v1beta1.ClusterLabel: provider.Name})}
	inner.Finalizers = []string{"bindy.firestoned.io/bind9cluster-finalizer"}
	inner.Spec = provider.Spec.Bind9ClusterSpec
	f.create(inner)
	for n, name := range names {
		role := []v1beta1.ServerRole{v1beta1.RolePrimary, v1beta1.RoleSecondary}[n]
		o := f.instance(name, role, 1)
		o.Labels = map[string]string{v1beta1.ManagedByLabel: "Bind9Cluster", v1beta1.ClusterLabel: provider.Name, v1beta1.RoleLabel: string(role), named.LabelPartOf: "bindy"}
		o.Spec.ClusterRef = provider.Name
		o.Finalizers = []string{"bindy.firestoned.io/bind9instance-finalizer"}
		o.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(inner, v1beta1.GroupVersion.WithKind("Bind9Cluster"))}
		f.create(o)
		instances = append(instances, o)
	}
	return instances
}

// formerInstallation is what Bindy made and left: objects with its finalizers, and a server that answers.
type formerInstallation struct {
	instance *v1beta1.Bind9Instance
	zone     *v1beta1.DNSZone
	server   *appsv1.Deployment
}

// installFormer makes what Bindy makes for an instance with a zone, and an idle operator of its name.
func (f *fixture) installFormer(zone string) *formerInstallation {
	f.Helper()
	m := &formerInstallation{instance: f.instance("web", v1beta1.RolePrimary, 1), zone: f.dnsZone("main", zone)}
	m.instance.Labels, m.instance.Finalizers = map[string]string{"app": "web"}, []string{"bindy.firestoned.io/bind9instance-finalizer"}
	m.zone.Finalizers = []string{"bindy.firestoned.io/dnszone-finalizer"}
	m.zone.Spec.ClusterRef = ""
	m.zone.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: m.instance.Labels}}}
	record := f.aRecord("www", "www", "192.0.2.1")
	record.Finalizers = []string{"bindy.firestoned.io/arecord-finalizer"}
	f.create(m.instance, m.zone, record)

	m.server = f.formerServer(m.instance, "Bind9Instance", zone)
	operator := map[string]string{"app": "bindy"}
	account := &corev1.ServiceAccount{ObjectMeta: f.meta("bind9", map[string]string{named.LabelName: named.AppName, named.LabelPartOf: "bindy"})}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "bindy-" + f.namespace, Labels: map[string]string{named.LabelPartOf: "bindy"}}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{"bindy.firestoned.io"}, APIVersions: []string{"v1beta1"}, Resources: []string{"arecords"}},
	}}}}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "true"}}
	f.create(account, policy, f.deploymentOf("bindy", operator, f.idlePod("bindy", operator)))
	f.Cleanup(func() { _ = f.client.Delete(context.Background(), policy) })
	kube.Kubectl(f, "", "-n", f.namespace, "wait", "--for=condition=Available", "deployment/web", "--timeout=120s")
	return m
}

// formerServer makes what Bindy makes for an instance: a ConfigMap, a Deployment of a named that answers for a zone, and a Service.
func (f *fixture) formerServer(instance *v1beta1.Bind9Instance, manager, zone string) *appsv1.Deployment {
	f.Helper()
	name := instance.Name
	former := map[string]string{
		"app": "bind9", "instance": name, named.LabelName: named.AppName, serving.LabelInstance: name, named.LabelComponent: "dns-server",
		named.LabelPartOf: "bindy", named.LabelManagedBy: manager,
	}
	owners := []metav1.OwnerReference{*metav1.NewControllerRef(instance, v1beta1.GroupVersion.WithKind("Bind9Instance"))}
	config := &corev1.ConfigMap{ObjectMeta: f.meta(name+"-former", former), Data: map[string]string{
		"named.conf": `options { directory "/var/cache/bind"; listen-on port 5353 { any; }; recursion no; dnssec-validation no; empty-zones-enable no; pid-file none; };
controls {};
zone "` + zone + `" { type primary; file "/etc/former/zone"; };
`,
		"zone": fmt.Sprintf("$TTL 300\n@ SOA ns1 hostmaster %d 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.53\nwww A 192.0.2.1\n", formerSerial),
	}}
	pod := f.idlePod(name, former)
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Name = sameImage, "bind9"
	pod.Spec.Containers[0].Command = []string{"named", "-g", "-c", "/etc/former/named.conf"}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/former"}, {Name: "cache", MountPath: "/var/cache/bind"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: config.Name}}}},
		{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	server := f.deploymentOf(name, former, pod)
	server.OwnerReferences = owners
	service := &corev1.Service{ObjectMeta: f.meta(name, former)}
	service.OwnerReferences, service.Spec.Selector = owners, former
	service.Spec.Ports = []corev1.ServicePort{
		{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(5353)},
		{Name: "dns-udp", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(5353)},
	}
	f.create(config, server, service)
	return server
}

// deploymentOf returns a Deployment of one pod.
func (f *fixture) deploymentOf(name string, labels map[string]string, pod *corev1.Pod) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: f.meta(name, labels)}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec}
	return d
}

// expectSelected checks that a selector finds objects.
func (f *fixture) expectSelected(list client.ObjectList, selector string) {
	f.Helper()
	s, err := labels.Parse(selector)
	if err == nil {
		err = f.client.List(f.Context(), list, client.InNamespace(f.namespace), client.MatchingLabelsSelector{Selector: s})
	}
	if err != nil || meta.LenList(list) == 0 {
		f.Errorf("%s selects %d objects of %T, error %v", selector, meta.LenList(list), list, err)
	}
}

// waitReadyReason waits until the Ready condition of an instance has a reason and a message with a text.
func (f *fixture) waitReadyReason(instance *v1beta1.Bind9Instance, reason, says string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(instance), instance); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(instance.Status.Conditions, status.Ready)
		if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, says) {
			return fmt.Errorf("the instance says %+v", ready)
		}
		return nil
	})
}

// serviceEndpoints returns the names of the pods that a Service sends queries to.
func (f *fixture) serviceEndpoints(service string) (pods []string) {
	f.Helper()
	var slices discoveryv1.EndpointSliceList
	if err := f.client.List(f.Context(), &slices, client.InNamespace(f.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		f.Fatal(err)
	}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			pods = append(pods, endpoint.TargetRef.Name)
		}
	}
	return pods
}

// idlePod returns a pod that does nothing, and meets the restricted Pod Security Standard.
func (f *fixture) idlePod(name string, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: f.meta(name, labels)}
	pod.Spec = corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(65534)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{Name: "idle", Image: "docker.io/library/lockstep-pause:1", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}
	return pod
}

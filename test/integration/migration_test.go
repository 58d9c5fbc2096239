package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/test/kube"
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

	former := map[string]string{named.LabelName: named.AppName, named.LabelInstance: "dns-primary-0", "app": "bind9", named.LabelManagedBy: "Bind9Cluster"}
	f.create(f.idlePod("dns-primary-0-7c9d-x2b4q", former))
	former[named.LabelManagedBy] = named.Manager
	stranger := f.idlePod("stranger", former)
	f.create(stranger)
	f.waitReadyReason(instance, status.ForeignPods, "stranger; delete them")
	addresses := f.serviceEndpoints("dns-primary-0")
	if len(addresses) != 2 || !slices.Contains(addresses, "stranger") || !slices.Contains(addresses, "dns-primary-0-0") {
		t.Errorf("the Service sends queries to %v", addresses)
	}
	if _, err := kube.TryKubectl(t, "", "-n", f.namespace, "label", "pod", "stranger", "app.kubernetes.io/managed-by-"); err != nil {
		t.Fatal(err)
	}
	f.waitReadyReason(instance, status.AllReady, "")
}

// A zone that a server of Bindy's answers for is taken over: kubectl lockstep migrate says what is to be done, does it, goes on where it
// was interrupted, and no query on the way is left without the right answer.
func TestMigration(t *testing.T) {
	var f *pluginTest
	var m *formerInstallation
	kube.Disruptive(t, func() { f = &pluginTest{newFleet(t), buildPlugin(t)} })
	var end func() *queryLoad
	f.withoutController(func() {
		m = f.installFormer("former.example")
		servers := f.services(m.instance.Name)
		kube.Eventually(f, settleTimeout, func(ctx context.Context) error {
			answer, err := queryServer(ctx, servers[m.instance.Name], "www.former.example.")
			if err == nil && answer != "192.0.2.1" {
				err = fmt.Errorf("the Service of Bindy answers %s", answer)
			}
			return err
		})
		end = f.startLoad(servers, "www.former.example.", "192.0.2.1")
	})
	f.expectOutput(1, `(?s)1 +stop Bindy; .*Deployment `+f.namespace+`/bindy.*2 +delete its admission policies +ValidatingAdmissionPolicy bindy-.*3 +install Lockstep +done.*`+
		`4 +remove Bindy's finalizers +1 ARecord, 1 Bind9Instance, 1 DNSZone.*7 +delete the former servers +Deployment `+f.namespace+`/web\n8 +delete what served them .*Nothing was changed`, "migrate")
	f.expectOutput(2, `error: migrate: step 6: after 1ms: `+f.namespace+`/web \(`, "migrate", "--apply", "--wait=1ms")
	f.expectOutput(0, `(?s)6\. wait until .*7\. delete the former servers.*Done\.`, "migrate", "--apply", "--wait=2m")
	f.waitGone(m.server)
	load := end()
	if load.report(f.fixture, "from Bindy to Lockstep"); len(load.silent) > 0 {
		t.Errorf("%d queries were not answered, the first at %s", len(load.silent), load.silent[0].began.Format(time.StampMilli))
	}
	f.waitServed("www.former.example.", "A", "192.0.2.1")
	if pods := f.serviceEndpoints(m.instance.Name); !slices.Equal(pods, []string{m.instance.Name + "-0"}) {
		t.Errorf("the Service sends queries to %v", pods)
	}
	f.expectOutput(0, `Nothing is left to do`, "migrate")
	f.deleteAnyway(m.zone)
	f.waitGone(m.zone) // It had a finalizer of Bindy's.
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

	former := map[string]string{
		"app": "bind9", "instance": "web", named.LabelName: named.AppName, named.LabelInstance: "web", named.LabelComponent: "dns-server",
		named.LabelPartOf: "bindy", named.LabelManagedBy: "Bind9Instance",
	}
	owners := []metav1.OwnerReference{*metav1.NewControllerRef(m.instance, v1beta1.GroupVersion.WithKind("Bind9Instance"))}
	config := &corev1.ConfigMap{ObjectMeta: f.meta("web-former", former), Data: map[string]string{
		"named.conf": `options { directory "/var/cache/bind"; listen-on port 5353 { any; }; recursion no; dnssec-validation no; empty-zones-enable no; pid-file none; };
controls {};
zone "` + zone + `" { type primary; file "/etc/former/zone"; };
`,
		"zone": "$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.53\nwww A 192.0.2.1\n",
	}}
	pod := f.idlePod("web", former)
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Name = sameImage, "bind9"
	pod.Spec.Containers[0].Command = []string{"named", "-g", "-c", "/etc/former/named.conf"}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/former"}, {Name: "cache", MountPath: "/var/cache/bind"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: config.Name}}}},
		{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	m.server = f.deploymentOf("web", former, pod)
	m.server.OwnerReferences = owners
	service := &corev1.Service{ObjectMeta: f.meta("web", former)}
	service.OwnerReferences, service.Spec.Selector = owners, former
	service.Spec.Ports = []corev1.ServicePort{
		{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(5353)},
		{Name: "dns-udp", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(5353)},
	}
	operator := map[string]string{"app": "bindy"}
	account := &corev1.ServiceAccount{ObjectMeta: f.meta("bind9", map[string]string{named.LabelName: named.AppName, named.LabelPartOf: "bindy"})}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "bindy-" + f.namespace, Labels: map[string]string{named.LabelPartOf: "bindy"}}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{"bindy.firestoned.io"}, APIVersions: []string{"v1beta1"}, Resources: []string{"arecords"}},
	}}}}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "true"}}
	f.create(config, m.server, service, account, policy, f.deploymentOf("bindy", operator, f.idlePod("bindy", operator)))
	f.Cleanup(func() { _ = f.client.Delete(context.Background(), policy) })
	kube.Kubectl(f, "", "-n", f.namespace, "wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
	return m
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
	kube.Eventually(f, settleTimeout, func(ctx context.Context) error {
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

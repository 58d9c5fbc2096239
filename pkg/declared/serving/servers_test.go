package serving_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

func instance(name, role, index string, replicas *int32) *v1beta1.Bind9Instance {
	i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}}
	i.Spec.Role, i.Spec.Replicas, i.Spec.ClusterRef = v1beta1.ServerRole(role), replicas, "c"
	i.Annotations = map[string]string{v1beta1.InstanceIndexAnnotation: index}
	return i
}

func pod(instance, name string, status corev1.PodStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name, Labels: map[string]string{serving.LabelInstance: instance}},
		Status:     status,
	}
}

func TestServers(t *testing.T) {
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	deleted := pod("c-secondary-2", "c-secondary-2-0", corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.4", Conditions: ready})
	deleted.DeletionTimestamp = new(metav1.Now())

	served := instance("c-secondary-2", "secondary", "2", nil)
	served.Status.ServiceAddress = "10.96.0.7"
	hosted := instance("c-primary-1", "primary", "1", new(int32(1)))
	hosted.Status.ServiceAddress = "lb.example.net"

	got := serving.Servers(
		[]*v1beta1.Bind9Instance{
			instance("c-secondary-10", "SECONDARY", "10", nil),
			served,
			instance("c-primary-0", "Primary", "0", new(int32(3))),
			hosted,
		},
		[]*corev1.Pod{
			pod("c-primary-0", "c-primary-0-0", corev1.PodStatus{
				Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: ready,
				ContainerStatuses: []corev1.ContainerStatus{{Name: "named", RestartCount: 2}, {Name: "bindcar", RestartCount: 1}},
			}),
			pod("c-primary-0", "c-primary-0-1", corev1.PodStatus{
				Phase: corev1.PodRunning, PodIP: "fd00::2",
				ContainerStatuses: []corev1.ContainerStatus{{Name: "named", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"},
				}}},
			}),
			pod("c-primary-0", "c-primary-0-3", corev1.PodStatus{Phase: corev1.PodRunning}), // one too many
			pod("other", "c-primary-0-2", corev1.PodStatus{Phase: corev1.PodRunning}),       // not ours
			pod("c-secondary-10", "c-secondary-10-0", corev1.PodStatus{
				Phase: corev1.PodFailed, PodIP: "10.0.0.3", Reason: "Evicted", Message: "low on memory",
			}),
			deleted,
		})
	want := []observe.Server{
		{Namespace: "dns", Instance: "c-primary-0", Pod: "c-primary-0-0", Role: observe.Primary, Addr: netip.MustParseAddrPort("10.0.0.1:5353"),
			PodPhase: corev1.PodRunning, PodReady: true, Restarts: 3},
		{Namespace: "dns", Instance: "c-primary-0", Pod: "c-primary-0-1", Role: observe.Primary, Addr: netip.MustParseAddrPort("[fd00::2]:5353"),
			PodPhase: corev1.PodRunning, Message: "container named: CrashLoopBackOff: back-off 10s"},
		{Namespace: "dns", Instance: "c-primary-0", Pod: "c-primary-0-2", Role: observe.Primary},
		{Namespace: "dns", Instance: "c-primary-1", Pod: "c-primary-1-0", Role: observe.Primary},
		{Namespace: "dns", Instance: "c-secondary-2", Pod: "c-secondary-2-0", Role: observe.Secondary, Addr: netip.MustParseAddrPort("10.0.0.4:5353"),
			Service: netip.MustParseAddr("10.96.0.7"), ServiceAddresses: []netip.Addr{netip.MustParseAddr("10.96.0.7")}, PodPhase: corev1.PodRunning, PodReady: true, Message: "the pod is being deleted"},
		{Namespace: "dns", Instance: "c-secondary-10", Pod: "c-secondary-10-0", Role: observe.Secondary,
			PodPhase: corev1.PodFailed, Message: "Evicted: low on memory"},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Each server of an instance has what the fleet manager says of the instance's Service.
func TestForeignEndpoints(t *testing.T) {
	two := int32(2)
	theirs := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "a"}, Spec: v1beta1.Bind9InstanceSpec{Role: v1beta1.RolePrimary, Replicas: &two}}
	theirs.Status.Conditions = []metav1.Condition{{Type: status.Ready, Status: metav1.ConditionFalse, Reason: status.ForeignPods, Message: "Pod old"}}
	ours := theirs.DeepCopy()
	ours.Name, ours.Status.Conditions[0].Reason = "b", status.PodsPending
	want := map[string]string{"a-0": "instance a: Pod old", "a-1": "instance a: Pod old", "b-0": "", "b-1": ""}
	for _, s := range serving.Servers([]*v1beta1.Bind9Instance{theirs, ours}, nil) {
		if s.Foreign != want[s.Pod] {
			t.Errorf("%s: %q, want %q", s.Pod, s.Foreign, want[s.Pod])
		}
	}
}

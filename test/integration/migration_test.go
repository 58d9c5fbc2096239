package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
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

package podcheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// What clients of a Service may reach besides the instance's pods: ready pods with its labels, and EndpointSlices that name other addresses.
func TestForeignEndpoints(t *testing.T) {
	pod := func(name, set, address string, ready corev1.ConditionStatus) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		if set != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: set, Controller: new(true)}}
		}
		p.Status.PodIPs = []corev1.PodIP{{IP: address}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		return p
	}
	slice := func(name, namespace, service, address string, ready *bool) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}}}
		s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}}
		return s
	}
	own := pod("web-0", "web", "192.0.2.1", corev1.ConditionTrue)
	for name, c := range map[string]struct {
		pods   []*corev1.Pod
		slices []*discoveryv1.EndpointSlice
		want   []string
	}{
		"nothing":                {},
		"a pod without an owner": {pods: []*corev1.Pod{pod("old", "", "192.0.2.9", corev1.ConditionTrue)}, want: []string{"Pod old"}},
		"of another set":         {pods: []*corev1.Pod{pod("old-0", "old", "192.0.2.9", corev1.ConditionTrue)}, want: []string{"Pod old-0"}},
		"one that is not ready":  {pods: []*corev1.Pod{pod("old", "", "192.0.2.9", corev1.ConditionFalse)}},
		"a slice":                {slices: []*discoveryv1.EndpointSlice{slice("hand", "team", "web", "192.0.2.9", nil)}, want: []string{"EndpointSlice hand"}},
		"one that is ready":      {slices: []*discoveryv1.EndpointSlice{slice("hand", "team", "web", "192.0.2.9", new(true))}, want: []string{"EndpointSlice hand"}},
		"one that is not":        {slices: []*discoveryv1.EndpointSlice{slice("hand", "team", "web", "192.0.2.9", new(false))}},
		"one of our own pod":     {slices: []*discoveryv1.EndpointSlice{slice("hand", "team", "web", "192.0.2.1", nil)}},
		"of another Service":     {slices: []*discoveryv1.EndpointSlice{slice("hand", "team", "www", "192.0.2.9", nil)}},
		"of another namespace":   {slices: []*discoveryv1.EndpointSlice{slice("hand", "else", "web", "192.0.2.9", nil)}},
		"pods and a slice":       {pods: []*corev1.Pod{pod("b", "", "192.0.2.8", corev1.ConditionTrue), pod("a", "", "192.0.2.9", corev1.ConditionTrue)}, slices: []*discoveryv1.EndpointSlice{slice("hand", "team", "web", "192.0.2.8", nil)}, want: []string{"Pod a", "Pod b", "EndpointSlice hand"}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := discoveryv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			var objects []client.Object
			for _, s := range c.slices {
				objects = append(objects, s)
			}
			selected := map[string]*corev1.Pod{own.Name: own}
			for _, p := range c.pods {
				selected[p.Name] = p
			}
			checker := &Checker{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
			instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
			got, err := checker.foreignEndpoints(t.Context(), instance, selected)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// A Service that is made again waits for its former address, which Kubernetes frees after the Service has gone, and takes another if
// somebody else has it meanwhile.
func TestRestoreService(t *testing.T) {
	const former = "10.96.0.7"
	for name, test := range map[string]struct {
		refusals int
		want     string
	}{"free": {0, former}, "free soon": {3, former}, "taken": {1000, ""}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, refused := "none", 0
				c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
					service := appliedService(t, o)
					if service.Spec.ClusterIP != "" && refused < test.refusals {
						refused++
						return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "dns", nil)
					}
					got = service.Spec.ClusterIP
					return nil
				}}).Build()
				w := &workloads{client: c, Options: Options{Children: apply.NewChildren(c)}}
				service := corev1ac.Service("dns", "team").WithSpec(corev1ac.ServiceSpec())
				digest, err := apply.StampDigest(service)
				if err != nil {
					t.Fatal(err)
				}
				if err := w.restoreService(t.Context(), service, digest, former); err != nil || got != test.want {
					t.Errorf("the Service has the address %q after %d refusals, want %q; %v", got, refused, test.want, err)
				}
			})
		})
	}
}

func appliedService(t *testing.T, configuration any) (service corev1.Service) {
	t.Helper()
	text, err := json.Marshal(configuration)
	if err := errors.Join(err, json.Unmarshal(text, &service)); err != nil {
		t.Fatal(err)
	}
	return service
}

// An instance whose Service is exposed has another one for its sidecars; external IPs that somebody has added by hand expose it, too.
func TestApplyServices(t *testing.T) {
	inside := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Name: "dns", Namespace: "team", UID: "s", Labels: map[string]string{named.LabelManagedBy: named.Manager},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Bind9Instance", Name: "dns", UID: "i", Controller: new(true)}},
	}}
	opened := inside.DeepCopy()
	opened.Spec.ExternalIPs = []string{"203.0.113.11"}
	for name, test := range map[string]struct {
		spec *corev1.ServiceSpec
		live *corev1.Service
		want []string
	}{
		"inside":          {nil, inside, []string{"dns 53 53 80"}},
		"exposed":         {&corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}, inside, []string{"dns-bindcar 80", "dns 53 53"}},
		"exposed by hand": {nil, opened, []string{"dns-bindcar 80", "dns 53 53"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			record := func(o any) {
				service := appliedService(t, o)
				text := service.Name
				for _, p := range service.Spec.Ports {
					text += fmt.Sprint(" ", p.Port)
				}
				got = append(got, text)
			}
			c := fake.NewClientBuilder().WithObjects(test.live).WithInterceptorFuncs(interceptor.Funcs{
				Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
					record(o)
					return nil
				},
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					record(o)
					return nil
				}}).Build()
			w := &workloads{client: c, Options: Options{Children: apply.NewChildren(c)}}
			instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Name: "dns", Namespace: "team", UID: "i"}}
			instance.Spec = v1beta1.Bind9InstanceSpec{Role: v1beta1.RolePrimary, BindcarConfig: &v1beta1.BindcarConfig{ServiceSpec: test.spec}}
			if err := w.applyService(t.Context(), &named.Workload{Instance: instance}, &workloadResult{}); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("applied %q, want %q; %v", got, test.want, err)
			}
		})
	}
}

// The ports of nodes are those that lead to DNS, over each protocol.
func TestNodePortsOf(t *testing.T) {
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Protocol: corev1.ProtocolUDP, Port: 53, NodePort: 30053}, {Protocol: corev1.ProtocolTCP, Port: 53, NodePort: 30054}, {Port: 8443, NodePort: 30055},
	}}}
	if got := nodePortsOf(service); got == nil || got.UDP != 30053 || got.TCP != 30054 {
		t.Errorf("%+v", got)
	}
	for i := range service.Spec.Ports {
		service.Spec.Ports[i].NodePort = 0
	}
	if got := nodePortsOf(service); got != nil {
		t.Errorf("%+v", got)
	}
}

// The addresses of a Service are those at which its clients reach it.
func TestAddressesOf(t *testing.T) {
	inside := corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7", "fd00::7"}}
	with := func(change func(*corev1.ServiceSpec)) corev1.ServiceSpec {
		spec := *inside.DeepCopy()
		change(&spec)
		return spec
	}
	for name, test := range map[string]struct {
		spec    corev1.ServiceSpec
		ingress []corev1.LoadBalancerIngress
		address string
		clients []string
		exposed bool
	}{
		"inside":   {spec: inside, address: "10.96.0.7", clients: []string{"10.96.0.7", "fd00::7"}},
		"headless": {spec: with(func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "None", []string{"None"} }), address: "10.96.0.1"},
		"load balancer": {
			spec:    with(func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer }),
			ingress: []corev1.LoadBalancerIngress{{IP: "203.0.113.10"}, {IP: "2001:db8::10"}, {Hostname: "lb.example.net"}},
			address: "10.96.0.7", clients: []string{"2001:db8::10", "203.0.113.10"}, exposed: true,
		},
		"load balancer without an address": {
			spec: with(func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer }), address: "10.96.0.7", exposed: true,
		},
		"node port": {spec: with(func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort }), address: "10.96.0.7", exposed: true},
		"external IPs": {
			spec:    with(func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"203.0.113.11"} }),
			address: "10.96.0.7", clients: []string{"203.0.113.11"}, exposed: true,
		},
	} {
		service := &corev1.Service{Spec: test.spec}
		service.Status.LoadBalancer.Ingress = test.ingress
		address, clients, exposed := addressesOf(service, "10.96.0.1")
		if address != test.address || !slices.Equal(clients, test.clients) || exposed != test.exposed {
			t.Errorf("%s: %s, %v, %t", name, address, clients, exposed)
		}
	}
}

// Servers take more records when the last pod runs with a higher limit, and fewer as soon as a lower one is declared.
func TestRecordsTaken(t *testing.T) {
	healthy := appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 1, ReadyReplicas: 1}
	half := appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdatedReplicas: 0, ReadyReplicas: 1}
	for name, c := range map[string]struct {
		declared *int32
		last     int32
		isNew    bool
		applied  bool
		status   appsv1.StatefulSetStatus
		want     int32
	}{
		"BIND's own":              {nil, 0, false, true, healthy, 100},
		"from the beginning":      {new(int32(300)), 0, true, false, appsv1.StatefulSetStatus{}, 300},
		"raised, and not applied": {new(int32(300)), 0, false, false, healthy, 100},
		"raised, pods to replace": {new(int32(300)), 0, false, true, half, 100},
		"raised once more":        {new(int32(300)), 200, false, true, half, 200},
		"raised":                  {new(int32(300)), 200, false, true, healthy, 300},
		"lowered, not applied":    {new(int32(200)), 300, false, false, healthy, 200},
		"taken out":               {nil, 300, false, true, half, 100},
	} {
		w := &named.Workload{Instance: &v1beta1.Bind9Instance{Status: v1beta1.Bind9InstanceStatus{MaxRecordsPerType: c.last}}}
		w.Cluster.Global = &v1beta1.Bind9Config{MaxRecordsPerType: c.declared}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{UID: "s", Generation: 2}, Status: c.status}
		if c.isNew {
			set = &appsv1.StatefulSet{}
		}
		if got := recordsTaken(w, set, c.applied); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

package named

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Names of the ports of an instance's Service and pods.
const (
	portDNS     = "dns"
	portDNSTCP  = "dns-tcp"
	portBindcar = "bindcar"
)

// Service is the stable address of an instance. The sidecar's serviceSpec and the cluster's service.spec can change
// its type and what belongs to it; ports and selector stay.
func (w Workload) Service() *corev1ac.ServiceApplyConfiguration {
	adjust := w.serviceSpec()
	spec := corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithSelector(SelectorLabels(w.Instance.Name)).
		WithPorts(
			servicePort(adjust, portDNS, corev1.ProtocolUDP, ServicePort),
			servicePort(adjust, portDNSTCP, corev1.ProtocolTCP, ServicePort),
			servicePort(adjust, portBindcar, corev1.ProtocolTCP, ServiceBindcarPort),
		)
	adjustService(spec, adjust)
	service := corev1ac.Service(w.Instance.Name, w.Instance.Namespace).
		WithLabels(w.Labels()).WithOwnerReferences(w.owner()).WithSpec(spec)
	if config := w.roleConfig().Service; config != nil {
		service.WithAnnotations(config.Annotations)
	}
	return service
}

func (w Workload) serviceSpec() corev1.ServiceSpec {
	role := ptr.Deref(w.roleConfig().Service, v1beta1.ServiceConfig{})
	return ptr.Deref(first(w.bindcar().ServiceSpec, role.Spec), corev1.ServiceSpec{})
}

func servicePort(adjust corev1.ServiceSpec, name string, protocol corev1.Protocol, port int32) *corev1ac.ServicePortApplyConfiguration {
	out := corev1ac.ServicePort().WithName(name).WithProtocol(protocol).WithPort(port).WithTargetPort(intstr.FromString(name))
	for _, wanted := range adjust.Ports {
		if wanted.NodePort != 0 && (wanted.Name == name || wanted.Port == port && wanted.Protocol == protocol) {
			out.WithNodePort(wanted.NodePort)
		}
	}
	return out
}

func adjustService(spec *corev1ac.ServiceSpecApplyConfiguration, adjust corev1.ServiceSpec) {
	if adjust.Type != "" {
		spec.WithType(adjust.Type)
	}
	if adjust.ClusterIP != "" {
		spec.WithClusterIP(adjust.ClusterIP)
	}
	if adjust.LoadBalancerIP != "" { //nolint:staticcheck // deprecated, and still what many load balancers read
		spec.WithLoadBalancerIP(adjust.LoadBalancerIP) //nolint:staticcheck // see above
	}
	if adjust.ExternalTrafficPolicy != "" {
		spec.WithExternalTrafficPolicy(adjust.ExternalTrafficPolicy)
	}
	if adjust.SessionAffinity != "" {
		spec.WithSessionAffinity(adjust.SessionAffinity)
	}
	if adjust.IPFamilyPolicy != nil {
		spec.WithIPFamilyPolicy(*adjust.IPFamilyPolicy)
	}
	spec.LoadBalancerClass = adjust.LoadBalancerClass
	spec.InternalTrafficPolicy = adjust.InternalTrafficPolicy
	spec.WithExternalIPs(adjust.ExternalIPs...)
	spec.WithLoadBalancerSourceRanges(adjust.LoadBalancerSourceRanges...)
	spec.WithIPFamilies(adjust.IPFamilies...)
}

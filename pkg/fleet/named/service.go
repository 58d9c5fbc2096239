package named

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
)

// Names of the ports of an instance's Service and pods.
const (
	portDNS     = "dns-udp"
	portDNSTCP  = "dns-tcp"
	portBindcar = "bindcar"
	portHealth  = "health"
)

// Service returns the stable address of an instance. The cluster's service.spec and, before it, the sidecar's serviceSpec can
// change everything but the ports and the selector; of the ports they can choose the nodePort. The error wraps ErrConfig.
func (w Workload) Service() (*corev1ac.ServiceApplyConfiguration, error) {
	role := ptr.Deref(w.roleConfig().Service, v1beta1.ServiceConfig{})
	adjust := ptr.Deref(overlay(role.Spec, w.bindcarConfig().ServiceSpec), corev1.ServiceSpec{})
	spec, err := toApply[corev1ac.ServiceSpecApplyConfiguration](adjust)
	if err != nil {
		return nil, fmt.Errorf("%w: service.spec: %w", ErrConfig, err)
	}
	if adjust.Type == "" {
		spec.WithType(corev1.ServiceTypeClusterIP)
	}
	spec.Selector, spec.Ports = nil, nil
	spec.WithSelector(SelectorLabels(w.Instance.Name)).WithPorts(
		servicePort(adjust, portDNS, corev1.ProtocolUDP, serving.ServicePort, serving.Port),
		servicePort(adjust, portDNSTCP, corev1.ProtocolTCP, serving.ServicePort, serving.Port),
		servicePort(adjust, portBindcar, corev1.ProtocolTCP, ServiceBindcarPort, SidecarPort),
	)
	return corev1ac.Service(w.Instance.Name, w.Instance.Namespace).
		WithLabels(w.Labels()).WithOwnerReferences(w.ownerReference()).WithAnnotations(role.Annotations).WithSpec(spec), nil
}

func servicePort(adjust corev1.ServiceSpec, name string, protocol corev1.Protocol, port, target int32) *corev1ac.ServicePortApplyConfiguration {
	out := corev1ac.ServicePort().WithName(name).WithProtocol(protocol).WithPort(port).WithTargetPort(intstr.FromInt32(target))
	for _, wanted := range adjust.Ports {
		if wanted.NodePort != 0 && (wanted.Name == name || wanted.Port == port && wanted.Protocol == protocol) {
			out.WithNodePort(wanted.NodePort)
		}
	}
	return out
}

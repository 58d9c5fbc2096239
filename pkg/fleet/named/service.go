package named

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

// Names of the ports of an instance's Service and pods.
const (
	portDNS     = "dns-udp"
	portDNSTCP  = "dns-tcp"
	portBindcar = "bindcar"
	portHealth  = "health"
)

// Exposed reports whether a Service leads clients from outside of the Kubernetes cluster to its pods.
func Exposed(spec corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeLoadBalancer || spec.Type == corev1.ServiceTypeNodePort || len(spec.ExternalIPs) > 0
}

// Services returns the stable address of an instance and, if that is exposed by its specification or by what others have added to the
// live Service, another Service inside of the Kubernetes cluster for the sidecar: what is exposed has port 53 alone. The specifications
// can change everything but the ports and the selector; of the ports they can choose the nodePort. The error wraps ErrConfig.
func (w Workload) Services(live corev1.ServiceSpec) (service, sidecar *corev1ac.ServiceApplyConfiguration, err error) {
	config := w.serviceConfig()
	adjust := ptr.Deref(config.Spec, corev1.ServiceSpec{})
	if err := joinProblems(checkServiceSpec(adjust)); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	spec, err := toApply[corev1ac.ServiceSpecApplyConfiguration](adjust)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: service.spec: %w", ErrConfig, err)
	}
	if adjust.Type == "" {
		spec.WithType(corev1.ServiceTypeClusterIP)
	}
	spec.Selector, spec.Ports = nil, nil
	spec.WithSelector(SelectorLabels(w.Instance.Name)).WithPorts(
		servicePort(adjust, portDNS, corev1.ProtocolUDP, serving.ServicePort, serving.Port),
		servicePort(adjust, portDNSTCP, corev1.ProtocolTCP, serving.ServicePort, serving.Port),
	)
	bindcar := servicePort(corev1.ServiceSpec{}, portBindcar, corev1.ProtocolTCP, layout.ServiceBindcarPort, layout.SidecarPort)
	if Exposed(adjust) || len(live.ExternalIPs) > 0 {
		sidecar = w.service(w.Instance.Name+"-"+portBindcar, corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).WithSelector(SelectorLabels(w.Instance.Name)).WithPorts(bindcar))
	} else {
		spec.WithPorts(bindcar)
	}
	return w.service(w.Instance.Name, spec).WithLabels(config.Labels).WithLabels(w.Labels()).WithAnnotations(config.Annotations), sidecar, nil
}

// serviceConfig merges the settings of the instance's Service, field by field and key by key: those of the cluster and of the role, the
// sidecar's serviceSpec, and those of the instance.
func (w Workload) serviceConfig() v1beta1.ServiceConfig {
	merged := v1beta1.ServiceConfig{Labels: v1beta1.ExtraLabels{}, Annotations: map[string]string{}}
	sidecar := v1beta1.ServerConfig{Service: &v1beta1.ServiceConfig{Spec: w.bindcarConfig().ServiceSpec}}
	for _, c := range slices.Insert(w.serverConfigs(), 2, sidecar) {
		config := ptr.Deref(c.Service, v1beta1.ServiceConfig{})
		maps.Copy(merged.Labels, config.Labels)
		maps.Copy(merged.Annotations, config.Annotations)
		merged.Spec = overlay(merged.Spec, config.Spec)
	}
	return merged
}

func (w Workload) service(name string, spec *corev1ac.ServiceSpecApplyConfiguration) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name, w.Instance.Namespace).WithLabels(w.Labels()).WithOwnerReferences(w.ownerReference()).WithSpec(spec)
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

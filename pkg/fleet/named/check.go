package named

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named/releases"
)

// Check returns what is wrong with the specifications of an instance and its cluster by themselves, before anything is made of them: why its
// objects could not be made, and that its version may have no image. Files that ConfigMaps replace are not checked. The error joins one for
// each field, which begins with the field as the instance or its options have it: "allowTransfer[0]: …".
func (w Workload) Check() error {
	_, configErr := w.Config().render()
	_, podErr := w.podSpec("")
	_, claimErr := w.volumeClaim()
	return errors.Join(w.checkVersion(), configErr, podErr, claimErr, checkServiceSpec(ptr.Deref(w.serviceConfig().Spec, corev1.ServiceSpec{})))
}

// checkVersion doubts versions of which Lockstep has no image.
func (w Workload) checkVersion() error {
	version := w.version()
	if version == "" || w.imageConfig().Image != "" || releases.OfVersion(version).IsSupported() {
		return nil
	}
	var tested []string
	for _, release := range releases.Supported() {
		tested = append(tested, string(release))
	}
	return fmt.Errorf("version: Lockstep has images of BIND %s, and is tested with these: servers of version %q start only if your registry has an image with that tag; set one of these, or image.image",
		strings.Join(tested, " and "), version)
}

// checkServiceSpec refuses what kube-apiserver would not store in a Service's specification, in fields whose values are few or addresses.
func checkServiceSpec(spec corev1.ServiceSpec) error {
	path := field.NewPath("service", "spec")
	problems := slices.Concat(
		checkChoice(path.Child("type"), spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName),
		checkChoice(path.Child("externalTrafficPolicy"), spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal),
		checkChoice(path.Child("internalTrafficPolicy"), ptr.Deref(spec.InternalTrafficPolicy, ""), corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal),
		checkChoice(path.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone),
		checkChoice(path.Child("ipFamilyPolicy"), ptr.Deref(spec.IPFamilyPolicy, ""), corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack),
	)
	for i, family := range spec.IPFamilies {
		problems = append(problems, checkChoice(path.Child("ipFamilies").Index(i), family, corev1.IPv4Protocol, corev1.IPv6Protocol)...)
	}
	for i, source := range spec.LoadBalancerSourceRanges {
		problems = append(problems, validation.IsValidCIDRForLegacyField(path.Child("loadBalancerSourceRanges").Index(i), strings.TrimSpace(source), false, nil)...)
	}
	for i, address := range spec.ExternalIPs {
		problems = append(problems, validation.IsValidIPForLegacyField(path.Child("externalIPs").Index(i), address, false, nil)...)
	}
	var errs []error
	for _, problem := range problems {
		errs = append(errs, problem)
	}
	return errors.Join(errs...)
}

// checkChoice refuses a value that is none of those that a field can have. An empty value is the default.
func checkChoice[T ~string](path *field.Path, value T, choices ...T) field.ErrorList {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, choices)}
}

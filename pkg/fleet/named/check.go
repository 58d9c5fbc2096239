package named

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	problems := slices.Concat(
		checkServiceSpec(ptr.Deref(w.serviceConfig().Spec, corev1.ServiceSpec{})),
		checkTolerations(field.NewPath("placement", "tolerations"), w.placement().Tolerations),
		checkResources(field.NewPath("resources"), w.ownResources()),
		checkResources(field.NewPath("bindcarConfig", "resources"), w.bindcarConfig().Resources),
	)
	return errors.Join(w.checkVersion(), configErr, podErr, claimErr, joinProblems(problems))
}

func joinProblems(problems field.ErrorList) error {
	var errs []error
	for _, problem := range problems {
		errs = append(errs, problem)
	}
	return errors.Join(errs...)
}

// CheckFiles returns what is wrong with the files that replace generated ones, as Check does. What depends on a ConfigMap that read does not
// know is not checked.
func (w Workload) CheckFiles(read func(name string) *corev1.ConfigMap) error {
	replaced := w.ReplacedFiles()
	w.Replacements = map[string]string{}
	var errs []error
	for _, file := range slices.Sorted(maps.Keys(replaced)) {
		if configMap := read(replaced[file]); configMap != nil {
			text, err := ReplacementIn(configMap, file)
			w.Replacements[file], errs = text, append(errs, err)
		}
	}
	files, err := Render(w.Config())
	if missing := errors.Join(errs...); missing != nil || err != nil || len(w.Replacements) < len(replaced) {
		return missing
	}
	return w.checkReplacements(w.withReplacements(files))
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
func checkServiceSpec(spec corev1.ServiceSpec) field.ErrorList {
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
	return problems
}

// checkTolerations refuses what kube-apiserver would not store in a pod.
func checkTolerations(path *field.Path, all []corev1.Toleration) (problems field.ErrorList) {
	for i, t := range all {
		at := path.Index(i)
		problems = append(problems, checkChoice(at.Child("operator"), t.Operator, corev1.TolerationOpExists, corev1.TolerationOpEqual, "Lt", "Gt")...)
		problems = append(problems, checkChoice(at.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
		if t.Key == "" && t.Operator != corev1.TolerationOpExists {
			problems = append(problems, field.Invalid(at.Child("operator"), t.Operator, "must be Exists where there is no key: that tolerates all taints"))
		}
		if t.Key != "" {
			problems = append(problems, invalid(at.Child("key"), t.Key, validation.IsQualifiedName(t.Key))...)
		}
		if t.Operator == corev1.TolerationOpExists && t.Value != "" {
			problems = append(problems, field.Invalid(at.Child("value"), t.Value, "must be empty with the operator Exists; for taints with this value, write operator: Equal"))
		} else {
			problems = append(problems, invalid(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			problems = append(problems, field.Invalid(at.Child("tolerationSeconds"), *t.TolerationSeconds, "goes with effect: NoExecute alone"))
		}
	}
	return problems
}

func invalid(path *field.Path, value string, reasons []string) (problems field.ErrorList) {
	for _, reason := range reasons {
		problems = append(problems, field.Invalid(path, value, reason))
	}
	return problems
}

// checkResources refuses resources that kube-apiserver would not store in a container, and memory with a fraction of a byte: "512m" are
// thousandths.
func checkResources(path *field.Path, resources *corev1.ResourceRequirements) (problems field.ErrorList) {
	if resources == nil {
		return nil
	}
	for kind, list := range map[string]corev1.ResourceList{"requests": resources.Requests, "limits": resources.Limits} {
		for name, quantity := range list {
			at, isMemory := path.Child(kind).Key(string(name)), name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
			switch {
			case !isMemory && name != corev1.ResourceCPU && !strings.Contains(string(name), "/") && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
				problems = append(problems, field.Invalid(at, quantity.String(), "is no resource of containers: these are cpu, memory, ephemeral-storage, and names with a domain"))
			case quantity.Sign() < 0:
				problems = append(problems, field.Invalid(at, quantity.String(), "must not be negative"))
			case isMemory && quantity.Cmp(*resource.NewQuantity(quantity.Value(), quantity.Format)) != 0:
				problems = append(problems, field.Invalid(at, quantity.String(), "has a fraction of a byte, as m stands for thousandths; write Mi for mebibytes"))
			}
		}
	}
	for name, quantity := range resources.Requests {
		if limit, limited := resources.Limits[name]; limited && quantity.Cmp(limit) > 0 {
			problems = append(problems, field.Invalid(path.Child("requests").Key(string(name)), quantity.String(), "must not be above the limit of "+limit.String()))
		}
	}
	slices.SortFunc(problems, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return problems
}

// checkChoice refuses a value that is none of those that a field can have. An empty value is the default.
func checkChoice[T ~string](path *field.Path, value T, choices ...T) field.ErrorList {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, choices)}
}

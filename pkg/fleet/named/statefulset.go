package named

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

// minReadySeconds is how long a pod has to be ready before the next is replaced: time for every node and load balancer to
// learn that it is back.
const minReadySeconds = 5

// Replicas returns the number of pods that an instance asks for, 1 when it does not say.
func Replicas(instance *v1beta1.Bind9Instance) int32 { return ptr.Deref(instance.Spec.Replicas, 1) }

// StatefulSet runs the instance's pods. The error wraps ErrConfig.
func (w Workload) StatefulSet() (*appsv1ac.StatefulSetApplyConfiguration, error) {
	files, err := Render(w.Config())
	if err != nil {
		return nil, err
	}
	files = w.withReplacements(files)
	if err := w.checkReplacements(files); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	checksum := layout.ConfigChecksum(files) // Keys are not part of it: they change without a restart.
	pod, err := w.podSpec(checksum)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	spec := appsv1ac.StatefulSetSpec().
		WithReplicas(Replicas(w.Instance)).
		WithServiceName(w.Instance.Name).
		WithPodManagementPolicy(appsv1.ParallelPodManagement).
		WithMinReadySeconds(minReadySeconds).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(w.setLabels())).
		WithTemplate(corev1ac.PodTemplateSpec().
			WithLabels(w.labelsOfPods()).
			WithAnnotations(w.annotationsOfPods(map[string]string{
				ChecksumAnnotation:                        checksum,
				"kubectl.kubernetes.io/default-container": containerNamed,
			})).
			WithSpec(pod))
	claim, err := w.volumeClaim()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if claim != nil {
		spec.WithVolumeClaimTemplates(claim)
	}
	return appsv1ac.StatefulSet(w.Instance.Name, w.Instance.Namespace).
		WithLabels(w.Labels()).WithOwnerReferences(w.ownerReference()).WithSpec(spec), nil
}

func (w Workload) podSpec(configChecksum string) (*corev1ac.PodSpecApplyConfiguration, error) {
	server, err := w.namedContainer()
	if err != nil {
		return nil, err
	}
	sidecar, err := w.bindcarContainer()
	if err != nil {
		return nil, err
	}
	volumes, err := w.podVolumes()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.checkSidecarPort(), checkDistinctMounts(volumes, w.hasVolumeClaim(), server, sidecar)); err != nil {
		return nil, err
	}
	pod := corev1ac.PodSpec().
		WithServiceAccountName(ServiceAccountName(w.Instance.Name)).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(30).
		WithImagePullSecrets(pullSecrets(w.imageConfig().ImagePullSecrets)...).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(layout.UserID).WithRunAsGroup(layout.UserID).WithFSGroup(layout.UserID).
			WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithReadinessGates(corev1ac.PodReadinessGate().WithConditionType(v1beta1.ZonesLoadedGate)).
		WithInitContainers(w.initContainer(configChecksum)).
		WithContainers(server, sidecar).
		WithVolumes(volumes...)
	return pod, w.place(pod)
}

func (w Workload) checkSidecarPort() error {
	port := w.bindcarConfig().Port
	if slices.Contains([]int32{serving.Port, layout.ControlPort, layout.StatisticsPort, layout.NoticePort, layout.HealthPort}, port) {
		return fmt.Errorf("bindcarConfig.port: %d is one of the pod's own; 5353, 8053, 9953, 9954 and 9955 are taken", port)
	}
	return nil
}

// hasVolumeClaim reports whether each pod has a claim of its own for what named keeps.
func (w Workload) hasVolumeClaim() bool {
	storage := ptr.Deref(w.Instance.Spec.Storage, v1beta1.StorageConfig{})
	return storage.StorageType == v1beta1.StoragePersistentVolumeClaim &&
		ptr.Deref(storage.PersistentVolumeClaim, v1beta1.PersistentVolumeClaimConfig{}).ClaimName == ""
}

func (w Workload) volumeClaim() (*corev1ac.PersistentVolumeClaimApplyConfiguration, error) {
	if !w.hasVolumeClaim() {
		return nil, nil //nolint:nilnil // no claim is a value
	}
	config := ptr.Deref(w.Instance.Spec.Storage.PersistentVolumeClaim, v1beta1.PersistentVolumeClaimConfig{})
	quantity, err := resource.ParseQuantity(cmp.Or(config.Size, "1Gi"))
	if err != nil {
		return nil, fmt.Errorf("storage.persistentVolumeClaim.size: %w", err)
	}
	modes := config.AccessModes
	if len(modes) == 0 {
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	claim := corev1ac.PersistentVolumeClaimSpec().WithAccessModes(modes...).
		WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: quantity}))
	claim.StorageClassName = config.StorageClassName
	return &corev1ac.PersistentVolumeClaimApplyConfiguration{
		ObjectMetaApplyConfiguration: metav1ac.ObjectMeta().WithName(volumeCache).WithLabels(w.setLabels()),
		Spec:                         claim,
	}, nil
}

// DisruptionBudget lets drains of nodes take away one server at a time of those that share a role in a cluster, or of a
// standalone instance's pods. All instances of the role apply the same object, which belongs to owner, the cluster. A
// pod that is not ready may always go. A role's only server may too: a drain would never end otherwise.
func (w Workload) DisruptionBudget(owner *metav1ac.OwnerReferenceApplyConfiguration) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	name, labels := w.Instance.Name, w.peerLabels()
	if cluster := w.Instance.Spec.ClusterRef; cluster != "" {
		name = cluster + "-" + string(w.role())
	} else {
		owner = w.ownerReference()
	}
	return policyv1ac.PodDisruptionBudget(name, w.Instance.Namespace).WithLabels(labels).WithOwnerReferences(owner).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(w.peerLabels())))
}

// peerLabels returns the labels of the servers that can stand in for one another: those of a cluster that have the same role, or
// a standalone instance's pods.
func (w Workload) peerLabels() map[string]string {
	if cluster := w.Instance.Spec.ClusterRef; cluster != "" {
		return map[string]string{LabelName: AppName, LabelManagedBy: Manager, v1beta1.ClusterLabel: cluster, v1beta1.RoleLabel: string(w.role())}
	}
	return SelectorLabels(w.Instance.Name)
}

// setLabels returns the selector of the StatefulSet, which cannot be changed.
func (w Workload) setLabels() map[string]string {
	return map[string]string{LabelName: AppName, serving.LabelInstance: w.Instance.Name}
}

package podcheck

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// isMounting reports whether a pod has a node and none of its containers has ever run: the kubelet prepares its volumes.
func isMounting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp.IsZero() &&
		!slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
			return c.State.Waiting == nil
		})
}

// mountTolerance is how long a pod may take to mount its volumes before somebody looks for what is missing.
const mountTolerance = 5 * time.Second

// checkMounts finds out what a pod waits for that is mounting.
func (c *Checker) checkMounts(ctx context.Context, pod *corev1.Pod) podResult {
	result := podResult{serving: status.True(status.ReconcileSucceeded, ""), requeue: mountTolerance}
	if c.now().Sub(pod.CreationTimestamp.Time) >= mountTolerance {
		result.missing, result.err = c.missingMount(ctx, pod)
	}
	return result
}

// missingMount says which Secret or ConfigMap does not exist that a pod mounts; empty if all do. The kubelet waits for it, and
// says so in Events only.
func (c *Checker) missingMount(ctx context.Context, pod *corev1.Pod) (string, error) {
	mounted := mountedVolumes(pod)
	for _, volume := range pod.Spec.Volumes {
		if !mounted[volume.Name] {
			continue // The kubelet leaves it alone.
		}
		for _, source := range mountedObjects(volume) {
			err := c.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: source.Name}, source)
			if apierrors.IsNotFound(err) {
				return status.MissingVolume(source.Kind, source.Name, volume.Name), nil
			}
			if err != nil {
				return "", fmt.Errorf("reading %s %s of pod %s: %w", source.Kind, source.Name, pod.Name, err)
			}
		}
	}
	return "", nil
}

// mountedVolumes has the names of the volumes that containers mount.
func mountedVolumes(pod *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, mount := range container.VolumeMounts {
			names[mount.Name] = true
		}
	}
	return names
}

// mountedObjects are the Secrets and ConfigMaps without which a volume cannot be mounted, by kind and name.
func mountedObjects(volume corev1.Volume) (all []*metav1.PartialObjectMetadata) {
	add := func(kind, name string, optional *bool) {
		if !ptr.Deref(optional, false) {
			o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
			o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
			all = append(all, o)
		}
	}
	if s := volume.Secret; s != nil {
		add("Secret", s.SecretName, s.Optional)
	}
	if m := volume.ConfigMap; m != nil {
		add("ConfigMap", m.Name, m.Optional)
	}
	for _, source := range ptr.Deref(volume.Projected, corev1.ProjectedVolumeSource{}).Sources {
		if s := source.Secret; s != nil {
			add("Secret", s.Name, s.Optional)
		}
		if m := source.ConfigMap; m != nil {
			add("ConfigMap", m.Name, m.Optional)
		}
	}
	return all
}

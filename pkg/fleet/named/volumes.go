package named

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

// Names of volumes.
const (
	volumeConfig       = "config"
	volumeConfigSource = "config-source"
	volumeKeys         = "tsig-keys"
	volumeCache        = "cache"
	volumeRun          = "run"
	volumeAPIAccess    = "kube-api-access"
	volumeKeyNames     = "key-names"
	volumeTLS          = "bindcar-tls"
)

// apiAccessDir is where client libraries look for a pod's credentials. Only the sidecar has them.
const apiAccessDir = "/var/run/secrets/kubernetes.io/serviceaccount"

func volumeMount(volume, path string, readOnly bool) *corev1ac.VolumeMountApplyConfiguration {
	out := corev1ac.VolumeMount().WithName(volume).WithMountPath(path)
	if readOnly {
		out.WithReadOnly(true)
	}
	return out
}

func (w Workload) podVolumes() ([]*corev1ac.VolumeApplyConfiguration, error) {
	out := []*corev1ac.VolumeApplyConfiguration{
		memoryVolume(volumeConfig),
		w.configSourceVolume(),
		w.keysVolume(volumeKeys, KeyClauseEntry),
		memoryVolume(volumeRun),
		w.keysVolume(volumeKeyNames, layout.KeyNamesEntry), // It holds no secret, and is for the sidecar.
		corev1ac.Volume().WithName(volumeTLS).WithSecret(
			corev1ac.SecretVolumeSource().WithSecretName(CertificateSecretName(w.Instance.Name)).WithDefaultMode(0o440)),
	}
	if w.needsAPIAccess() {
		out = append(out, apiAccessVolume())
	}
	cache, err := w.cacheVolume()
	if err != nil {
		return nil, err
	}
	if cache != nil {
		out = append(out, cache)
	}
	for _, volume := range slices.Concat(firstSlice(w.Instance.Spec.Volumes, w.Cluster.Volumes), w.bindcarConfig().Volumes) {
		extra, err := toApply[corev1ac.VolumeApplyConfiguration](volume)
		if err != nil {
			return nil, fmt.Errorf("volumes: %w", err)
		}
		out = append(out, extra)
	}
	return out, nil
}

func memoryVolume(name string) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithMedium(corev1.StorageMediumMemory))
}

// configSourceVolume has the configuration files, ours or those of a user's ConfigMap.
func (w Workload) configSourceVolume() *corev1ac.VolumeApplyConfiguration {
	replaced := w.ReplacedFiles()
	own := corev1ac.ConfigMapProjection().WithName(w.Instance.Name + "-config").WithItems(keyToPath(ControlFile, ControlFile))
	for _, file := range []string{MainFile, OptionsFile, ZonesFile} {
		if replaced[file] == "" {
			own.WithItems(keyToPath(file, file))
		}
	}
	sortItems(own.Items)
	projected := corev1ac.ProjectedVolumeSource().WithDefaultMode(0o440).WithSources(corev1ac.VolumeProjection().WithConfigMap(own))
	for _, file := range slices.Sorted(maps.Keys(replaced)) {
		projected.WithSources(corev1ac.VolumeProjection().WithConfigMap(
			corev1ac.ConfigMapProjection().WithName(replaced[file]).WithItems(keyToPath(file, file))))
	}
	return corev1ac.Volume().WithName(volumeConfigSource).WithProjected(projected)
}

// keysVolume has an entry of each key ring, in a directory for each role.
func (w Workload) keysVolume(name, entry string) *corev1ac.VolumeApplyConfiguration {
	projected := corev1ac.ProjectedVolumeSource().WithDefaultMode(0o440)
	for _, role := range w.Config().keyRoles() {
		projected.WithSources(corev1ac.VolumeProjection().WithSecret(
			corev1ac.SecretProjection().WithName(KeyringSecretName(serving.KeyOwner(w.Instance), role)).
				WithItems(keyToPath(entry, string(role)+"/"+entry))))
	}
	return corev1ac.Volume().WithName(name).WithProjected(projected)
}

// CertificateSecretName returns the name, in the instance's namespace, of the Secret with the serving certificate of its
// sidecars. It is of the type kubernetes.io/tls.
func CertificateSecretName(instance string) string { return instance + "-bindcar-tls" }

func keyToPath(key, path string) *corev1ac.KeyToPathApplyConfiguration {
	return corev1ac.KeyToPath().WithKey(key).WithPath(path)
}

// needsAPIAccess reports whether the sidecar may have to keep the keys that sign a zone: those of secondaries never do.
func (w Workload) needsAPIAccess() bool { return w.role() == v1beta1.RolePrimary }

// apiAccessVolume returns what Kubernetes mounts into every container by itself, here for the sidecar alone.
func apiAccessVolume() *corev1ac.VolumeApplyConfiguration {
	namespace := corev1ac.DownwardAPIVolumeFile().WithPath("namespace").
		WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.namespace"))
	return corev1ac.Volume().WithName(volumeAPIAccess).WithProjected(corev1ac.ProjectedVolumeSource().WithDefaultMode(0o440).WithSources(
		corev1ac.VolumeProjection().WithServiceAccountToken(corev1ac.ServiceAccountTokenProjection().WithPath("token").WithExpirationSeconds(3600)),
		corev1ac.VolumeProjection().WithConfigMap(corev1ac.ConfigMapProjection().WithName("kube-root-ca.crt").WithItems(keyToPath("ca.crt", "ca.crt"))),
		corev1ac.VolumeProjection().WithDownwardAPI(corev1ac.DownwardAPIProjection().WithItems(namespace)),
	))
}

// cacheVolume returns nil when the StatefulSet makes a claim for each pod.
func (w Workload) cacheVolume() (*corev1ac.VolumeApplyConfiguration, error) {
	storage := ptr.Deref(w.Instance.Spec.Storage, v1beta1.StorageConfig{})
	if storage.StorageType == v1beta1.StoragePersistentVolumeClaim {
		config := ptr.Deref(storage.PersistentVolumeClaim, v1beta1.PersistentVolumeClaimConfig{})
		if config.ClaimName == "" {
			return nil, nil //nolint:nilnil // no volume is a value
		}
		return corev1ac.Volume().WithName(volumeCache).WithPersistentVolumeClaim(
			corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(config.ClaimName)), nil
	}
	source := corev1ac.EmptyDirVolumeSource()
	if storage.EmptyDir != nil {
		custom, err := toApply[corev1ac.EmptyDirVolumeSourceApplyConfiguration](storage.EmptyDir)
		if err != nil {
			return nil, fmt.Errorf("storage.emptyDir: %w", err)
		}
		source = custom
	}
	return corev1ac.Volume().WithName(volumeCache).WithEmptyDir(source), nil
}

// sortItems keeps the order the same from one rendering to the next: the items are an atomic list.
func sortItems(items []corev1ac.KeyToPathApplyConfiguration) {
	slices.SortFunc(items, func(a, b corev1ac.KeyToPathApplyConfiguration) int { return strings.Compare(*a.Path, *b.Path) })
}

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImageConfig says which image to run and how to pull it.
type ImageConfig struct {
	// Image reference of the BIND container.
	// +optional
	Image string `json:"image,omitempty"`
	// ImagePullPolicy of the BIND container.
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// ImagePullSecrets are names of Secrets in the pods' namespace.
	// +optional
	// +listType=atomic
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
}

// ConfigMapRefs names ConfigMaps that replace generated configuration files of named.
type ConfigMapRefs struct {
	// NamedConf holds named.conf.
	// +optional
	NamedConf string `json:"namedConf,omitempty"`
	// NamedConfOptions holds named.conf.options.
	// +optional
	NamedConfOptions string `json:"namedConfOptions,omitempty"`
	// NamedConfZones holds named.conf.zones.
	// +optional
	NamedConfZones string `json:"namedConfZones,omitempty"`
}

// Bind9Config are options of named.
type Bind9Config struct {
	// Recursion says whether the server also resolves other people's names.
	// +optional
	Recursion *bool `json:"recursion,omitempty"`
	// AllowQuery lists who may ask.
	// +optional
	// +listType=atomic
	AllowQuery []string `json:"allowQuery,omitempty"`
	// AllowTransfer lists who may transfer zones.
	// +optional
	// +listType=atomic
	AllowTransfer []string `json:"allowTransfer,omitempty"`
	// Forwarders are resolvers to forward recursive queries to.
	// +optional
	// +listType=atomic
	Forwarders []string `json:"forwarders,omitempty"`
	// ListenOn lists IPv4 addresses to listen on.
	// +optional
	// +listType=atomic
	ListenOn []string `json:"listenOn,omitempty"`
	// ListenOnV6 lists IPv6 addresses to listen on.
	// +optional
	// +listType=atomic
	ListenOnV6 []string `json:"listenOnV6,omitempty"`
	// DNSSEC settings.
	// +optional
	DNSSEC *DNSSECConfig `json:"dnssec,omitempty"`
	// BindcarConfig configures the sidecar.
	// +optional
	BindcarConfig *BindcarConfig `json:"bindcarConfig,omitempty"`
	// RNDCSecretRef names a Secret with the rndc key.
	// +optional
	RNDCSecretRef *RNDCSecretRef `json:"rndcSecretRef,omitempty"`
}

// DNSSECConfig configures validation and signing.
type DNSSECConfig struct {
	// Enabled is the older switch for DNSSEC.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Validation of answers by a recursive server.
	// +optional
	Validation *bool `json:"validation,omitempty"`
	// Signing of zones by the primaries.
	// +optional
	Signing *DNSSECSigningConfig `json:"signing,omitempty"`
}

// DNSSECSigningConfig configures how primaries sign zones.
type DNSSECSigningConfig struct {
	// Enabled turns signing on.
	Enabled bool `json:"enabled"`
	// Policy names the dnssec-policy.
	// +optional
	Policy string `json:"policy,omitempty"`
}

// RNDCSecretRef names a Secret with an rndc key, and the entries in it.
type RNDCSecretRef struct {
	// Name of the Secret.
	Name string `json:"name"`
	// Algorithm of the key.
	// +optional
	Algorithm RNDCAlgorithm `json:"algorithm,omitempty"`
	// KeyNameKey is the entry that holds the key's name.
	// +optional
	KeyNameKey string `json:"keyNameKey,omitempty"`
	// SecretKey is the entry that holds the secret.
	// +optional
	SecretKey string `json:"secretKey,omitempty"`
}

// RNDCAlgorithm is an HMAC algorithm of an rndc key.
type RNDCAlgorithm string

// The algorithms that are accepted for rndc keys.
const (
	HMACSHA224 RNDCAlgorithm = "hmac-sha224"
	HMACSHA256 RNDCAlgorithm = "hmac-sha256"
	HMACSHA384 RNDCAlgorithm = "hmac-sha384"
	HMACSHA512 RNDCAlgorithm = "hmac-sha512"
)

// RNDCKeyConfig says where the rndc key comes from and when it changes.
type RNDCKeyConfig struct {
	// Algorithm of a generated key.
	// +optional
	Algorithm RNDCAlgorithm `json:"algorithm,omitempty"`
	// AutoRotate replaces a generated key every rotateAfter.
	// +optional
	AutoRotate bool `json:"autoRotate,omitempty"`
	// RotateAfter is the age at which a generated key is replaced.
	// +optional
	RotateAfter *metav1.Duration `json:"rotateAfter,omitempty"`
	// SecretRef names an existing Secret to use.
	// +optional
	SecretRef *RNDCSecretRef `json:"secretRef,omitempty"`
}

// BindcarConfig configures the sidecar.
type BindcarConfig struct {
	// Image of the sidecar.
	// +optional
	Image string `json:"image,omitempty"`
	// ImagePullPolicy of the sidecar.
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// LogLevel of the sidecar.
	// +optional
	LogLevel string `json:"logLevel,omitempty"`
	// Port of the sidecar's HTTP API.
	// +optional
	Port int32 `json:"port,omitempty"`
	// Resources of the sidecar.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// EnvVars are added to the sidecar's environment.
	// +optional
	// +listType=atomic
	EnvVars []corev1.EnvVar `json:"envVars,omitempty"`
	// ServiceSpec is merged into the spec of the Service.
	// +optional
	ServiceSpec *corev1.ServiceSpec `json:"serviceSpec,omitempty"`
}

// ServiceConfig adjusts the Service in front of an instance.
type ServiceConfig struct {
	// Annotations of the Service.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Spec is merged into the spec of the Service.
	// +optional
	Spec *corev1.ServiceSpec `json:"spec,omitempty"`
}

// StorageType says where zone files are kept.
type StorageType string

// Where zone files are kept.
const (
	// StorageEmptyDir keeps zone files for the life of the pod.
	StorageEmptyDir StorageType = "emptyDir"
	// StoragePersistentVolumeClaim keeps zone files on a persistent volume.
	StoragePersistentVolumeClaim StorageType = "persistentVolumeClaim"
)

// StorageConfig says where zone files are kept.
type StorageConfig struct {
	// StorageType is the kind of storage.
	// +optional
	StorageType StorageType `json:"storageType,omitempty"`
	// EmptyDir configures the volume when storageType is emptyDir.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`
	// PersistentVolumeClaim configures the claim when storageType is persistentVolumeClaim.
	// +optional
	PersistentVolumeClaim *PersistentVolumeClaimConfig `json:"persistentVolumeClaim,omitempty"`
}

// PersistentVolumeClaimConfig describes the claim for zone files.
type PersistentVolumeClaimConfig struct {
	// ClaimName of an existing claim.
	// +optional
	ClaimName string `json:"claimName,omitempty"`
	// StorageClassName of a new claim.
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// Size of a new claim, as a quantity.
	// +optional
	Size string `json:"size,omitempty"`
	// AccessModes of a new claim.
	// +optional
	// +listType=atomic
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
}

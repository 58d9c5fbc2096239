package v1beta1

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// AddressMatchList is an address match list of named: addresses, prefixes, names of ACLs, "any",
// "none", "localhost", "localnets" and "key NAME", each optionally preceded by "!". "acl:NAME" is the same as NAME.
//
// +listType=atomic
// +kubebuilder:validation:MaxItems=64
// +kubebuilder:validation:items:MaxLength=253
// +kubebuilder:validation:items:XValidation:rule="self.matches('^!? ?(key )?[A-Za-z0-9_.:/-]+$')",message="an address match list holds addresses, prefixes, names of ACLs, any, none, localhost, localnets or \"key NAME\", each optionally after \"!\""
type AddressMatchList []string

// ImageConfig selects an image and how to pull it.
type ImageConfig struct {
	// Image reference of the BIND container, for example "registry.example.com/bind9:9.20".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`
	// ImagePullPolicy of the BIND container.
	//
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// ImagePullSecrets names Secrets in the pods' namespace.
	//
	// +optional
	// +listType=atomic
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
}

// ConfigMapRefs names ConfigMaps that replace generated configuration files of named. Each holds the file under the
// name of that file.
type ConfigMapRefs struct {
	// NamedConf is the ConfigMap that holds named.conf.
	//
	// +optional
	NamedConf string `json:"namedConf,omitempty"`
	// NamedConfOptions is the ConfigMap that holds named.conf.options.
	//
	// +optional
	NamedConfOptions string `json:"namedConfOptions,omitempty"`
	// NamedConfZones is the ConfigMap that holds named.conf.zones, which declares zones in addition to those of DNSZone
	// objects.
	//
	// +optional
	NamedConfZones string `json:"namedConfZones,omitempty"`
}

// Bind9Config holds options of named.
type Bind9Config struct {
	// Recursion makes the server resolve names outside its own zones. Defaults to false.
	//
	// +optional
	Recursion *bool `json:"recursion,omitempty"`
	// AllowQuery lists who may query the server. Defaults to everybody.
	//
	// +optional
	AllowQuery AddressMatchList `json:"allowQuery,omitempty"`
	// AllowTransfer lists who may transfer zones. Holders of the transfer key always may.
	//
	// +optional
	AllowTransfer AddressMatchList `json:"allowTransfer,omitempty"`
	// Forwarders are addresses of resolvers to which a server with recursion forwards queries.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="isIP(self) || self.matches('^[0-9A-Fa-f.:]+ port [0-9]{1,5}$')",message="forwarders holds IP addresses such as 192.0.2.53, each optionally followed by \" port NUMBER\""
	Forwarders []string `json:"forwarders,omitempty"`
	// ListenOn lists IPv4 addresses to listen on. Defaults to all.
	//
	// +optional
	ListenOn AddressMatchList `json:"listenOn,omitempty"`
	// ListenOnV6 lists IPv6 addresses to listen on. Defaults to all.
	//
	// +optional
	ListenOnV6 AddressMatchList `json:"listenOnV6,omitempty"`
	// DNSSEC configures validation and signing.
	//
	// +optional
	DNSSEC *DNSSECConfig `json:"dnssec,omitempty"`
	// BindcarConfig configures the sidecar that adds and removes zones.
	//
	// +optional
	BindcarConfig *BindcarConfig `json:"bindcarConfig,omitempty"`
	// RNDCSecretRef names a Secret with the update key. rndcKey.secretRef takes precedence.
	//
	// +optional
	RNDCSecretRef *RNDCSecretRef `json:"rndcSecretRef,omitempty"`
	// RateLimit limits answers, against attacks that forge the address of their victim.
	//
	// +optional
	RateLimit *RateLimitConfig `json:"rateLimit,omitempty"`
	// MaxRecordsPerType is how many records of one name and type the server takes, 100 to 4000 (max-records-per-type, BIND 9.18.28 and
	// later). Defaults to BIND's own 100. A zone has as many as each of its servers takes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=4000
	MaxRecordsPerType *int32 `json:"maxRecordsPerType,omitempty"`
}

// RateLimitConfig limits answers (BIND's response rate limiting), by networks of clients. Over the limit a client is told to ask over TCP,
// where addresses cannot be forged; servers of the cluster and the holders of its keys are exempt.
type RateLimitConfig struct {
	// ResponsesPerSecond is how often a network may get the same answer in a second, 0 to 1000; 0 means no limit. Defaults to 1000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	ResponsesPerSecond *int32 `json:"responsesPerSecond,omitempty"`
	// NXDomainsPerSecond is how often a network may be told in a second that names of a zone do not exist, 0 to 1000; 0 means no limit.
	// Defaults to responsesPerSecond.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	NXDomainsPerSecond *int32 `json:"nxdomainsPerSecond,omitempty"`
	// ErrorsPerSecond is how many errors a network may get in a second, such as REFUSED, 0 to 1000; 0 means no limit. Defaults to
	// responsesPerSecond.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	ErrorsPerSecond *int32 `json:"errorsPerSecond,omitempty"`
	// Window is for how many seconds at most a network that asked too often has to ask less before it gets answers again, 1 to 3600.
	// Defaults to 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	Window *int32 `json:"window,omitempty"`
	// Slip is which of the answers over the limit are truncated, 0 to 10: 1 every one, 2 every second one, 0 none. The others are dropped.
	// Defaults to 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Slip *int32 `json:"slip,omitempty"`
	// ExemptClients lists whose answers are not limited, in addition to the holders of the cluster's keys.
	//
	// +optional
	ExemptClients AddressMatchList `json:"exemptClients,omitempty"`
	// IPv4PrefixLength is the size of a network of IPv4 clients, 1 to 32. Defaults to 24.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	IPv4PrefixLength *int32 `json:"ipv4PrefixLength,omitempty"`
	// IPv6PrefixLength is the size of a network of IPv6 clients, 1 to 128. Defaults to 56.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	IPv6PrefixLength *int32 `json:"ipv6PrefixLength,omitempty"`
}

// DNSSECConfig configures validation and signing.
type DNSSECConfig struct {
	// Enabled is the older form of signing.enabled. It is used only if signing is absent.
	//
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Validation makes a server with recursion validate the answers that it receives. Defaults to false.
	//
	// +optional
	Validation *bool `json:"validation,omitempty"`
	// Signing configures how zones without a dnssecPolicy of their own are signed.
	//
	// +optional
	Signing *DNSSECSigningConfig `json:"signing,omitempty"`
}

// DNSSECSigningConfig configures how primaries sign zones.
type DNSSECSigningConfig struct {
	// Enabled turns signing on.
	//
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled"`
	// Policy is the name of the dnssec-policy that algorithm, lifetimes and nsec3 define. Defaults to "signing", or to
	// named's own "default" if none of these are set.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]*$')",message="policy must be the name of a dnssec-policy: letters, digits, \".\", \"_\" and \"-\""
	Policy string `json:"policy,omitempty"`
	// Algorithm mnemonic of the keys. Defaults to ECDSAP256SHA256.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]*$')",message="algorithm must be a DNSSEC algorithm such as ECDSAP256SHA256, ECDSAP384SHA384 or RSASHA256"
	Algorithm string `json:"algorithm,omitempty"`
	// KSKLifetime is the age at which the key-signing key is rolled: "365d", "1y", "8760h", at least 14d. If it is absent,
	// the key is never rolled. Without kskLifetime and zskLifetime, a single key signs everything.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+[A-Za-z]|unlimited)$')",message="kskLifetime must be a number and a unit, such as 365d, 1y or 8760h, or unlimited"
	KSKLifetime string `json:"kskLifetime,omitempty"`
	// ZSKLifetime is the age at which the zone-signing key is rolled: "90d", "3m" (months of 30 days), "2160h", at least
	// 14d. If it is absent, the key is never rolled.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+[A-Za-z]|unlimited)$')",message="zskLifetime must be a number and a unit, such as 90d, 3m or 2160h, or unlimited"
	ZSKLifetime string `json:"zskLifetime,omitempty"`
	// NSEC3 hashes names in proofs of non-existence (RFC 5155). Defaults to false.
	//
	// +optional
	NSEC3 *bool `json:"nsec3,omitempty"`
	// NSEC3Salt sets the length of the salt; named generates the salt itself. Defaults to no salt (RFC 9276).
	//
	// +optional
	// +kubebuilder:validation:MaxLength=510
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9A-Fa-f]{2})*$')",message="nsec3Salt must be hexadecimal digits in pairs, such as AABBCCDD"
	NSEC3Salt string `json:"nsec3Salt,omitempty"`
	// NSEC3Iterations is the number of additional hash iterations. Defaults to 0, as RFC 9276 requires.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=150
	NSEC3Iterations *int32 `json:"nsec3Iterations,omitempty"`
	// KeysFrom selects the source of the keys. It has no effect: named uses the keys in the zone's Secret of signing keys.
	//
	// +optional
	KeysFrom *DNSSECKeySource `json:"keysFrom,omitempty"`
	// AutoGenerate lets named create the keys. It has no effect: named creates those that the zone's Secret lacks.
	//
	// +optional
	AutoGenerate *bool `json:"autoGenerate,omitempty"`
	// ExportToSecret keeps a copy of the keys that named created in a Secret, so that a new pod can use them. Defaults to
	// true.
	//
	// +optional
	ExportToSecret *bool `json:"exportToSecret,omitempty"`
}

// DNSSECKeySource is a source of DNSSEC keys.
type DNSSECKeySource struct {
	// SecretRef names a Secret that holds key files under the names that named uses: "Kexample.com.+013+12345.key" and
	// ".private".
	//
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// PersistentVolume describes a claim for a volume on which named keeps its keys.
	//
	// +optional
	PersistentVolume *corev1.PersistentVolumeClaimSpec `json:"persistentVolume,omitempty"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// Name of the Secret.
	Name string `json:"name"`
	// Namespace of the Secret. Defaults to that of the referring object.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// RNDCAlgorithm is an HMAC algorithm of an rndc key.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="!(self in ['hmac-md5', 'hmac-sha1'])",message="algorithm hmac-md5 and hmac-sha1 are refused as too weak: use hmac-sha256, and make a new key for it"
// +kubebuilder:validation:XValidation:rule="self in ['hmac-md5', 'hmac-sha1', 'hmac-sha224', 'hmac-sha256', 'hmac-sha384', 'hmac-sha512']",message="algorithm must be one of hmac-sha224, hmac-sha256, hmac-sha384 and hmac-sha512"
type RNDCAlgorithm string

// The algorithms that are accepted for rndc keys.
const (
	HMACSHA224 RNDCAlgorithm = "hmac-sha224"
	HMACSHA256 RNDCAlgorithm = "hmac-sha256"
	HMACSHA384 RNDCAlgorithm = "hmac-sha384"
	HMACSHA512 RNDCAlgorithm = "hmac-sha512"
)

// RNDCSecretRef names a Secret with a key, and the entries in it. An entry "rndc.key" with a complete key statement of
// named can replace the single entries.
type RNDCSecretRef struct {
	// Name of the Secret, in the namespace of the instance.
	//
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Algorithm of the key: hmac-sha224, hmac-sha256, hmac-sha384 or hmac-sha512.
	//
	// +optional
	// +kubebuilder:default="hmac-sha256"
	Algorithm RNDCAlgorithm `json:"algorithm,omitempty"`
	// KeyNameKey is the entry that holds the key's name.
	//
	// +optional
	// +kubebuilder:default="key-name"
	KeyNameKey string `json:"keyNameKey,omitempty"`
	// SecretKey is the entry that holds the secret in base64.
	//
	// +optional
	// +kubebuilder:default="secret"
	SecretKey string `json:"secretKey,omitempty"`
}

// RNDCKeyConfig configures keys. Each pod creates its own rndc key when it starts, and that key never leaves the pod:
// algorithm applies to it. The other fields apply to the TSIG keys for updates and transfers, which are stored in Secrets.
type RNDCKeyConfig struct {
	// Algorithm of a generated key: hmac-sha224, hmac-sha256, hmac-sha384 or hmac-sha512.
	//
	// +optional
	// +kubebuilder:default="hmac-sha256"
	Algorithm RNDCAlgorithm `json:"algorithm,omitempty"`
	// AutoRotate replaces the TSIG keys that the controller created when they are rotateAfter old. The keys of a cluster
	// follow the rndcKey of its primaries.
	//
	// +optional
	// +kubebuilder:default=false
	AutoRotate bool `json:"autoRotate,omitempty"`
	// RotateAfter is the age at which a key is replaced, in hours, days or weeks: "720h", "30d", "4w"; from 1h to 8760h.
	//
	// +optional
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,5}[hdw]$')",message="rotateAfter must be a number and a unit, h, d or w, such as 720h, 30d or 4w"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]{1,5}[hdw]$') || (int(self.substring(0, size(self) - 1)) * (self.endsWith('h') ? 1 : self.endsWith('d') ? 24 : 168) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('h') ? 1 : self.endsWith('d') ? 24 : 168) <= 8760)",message="rotateAfter must be from 1h to 8760h (365d)"
	RotateAfter string `json:"rotateAfter,omitempty"`
	// SecretRef names a Secret with the update key of a cluster's primaries, or of an instance without a cluster. The
	// controller follows its changes and never writes to it.
	//
	// +optional
	SecretRef *RNDCSecretRef `json:"secretRef,omitempty"`
	// Secret describes a Secret for the key. It has no effect: keys are created in Secrets with fixed names.
	//
	// +optional
	Secret *RNDCSecretTemplate `json:"secret,omitempty"`
}

// RNDCSecretTemplate describes a Secret to create for an rndc key.
type RNDCSecretTemplate struct {
	// Metadata of the Secret.
	Metadata RNDCSecretMetadata `json:"metadata"`
	// Type of the Secret. Defaults to Opaque.
	//
	// +optional
	Type corev1.SecretType `json:"type,omitempty"`
	// StringData are entries of the Secret as text.
	//
	// +optional
	StringData map[string]string `json:"stringData,omitempty"`
	// Data are entries of the Secret in base64.
	//
	// +optional
	Data map[string]string `json:"data,omitempty"`
}

// RNDCSecretMetadata is the metadata of a Secret to create.
type RNDCSecretMetadata struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Labels of the Secret.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the Secret.
	//
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// BindcarConfig configures the sidecar that adds and removes zones on its named.
type BindcarConfig struct {
	// Image of the sidecar.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`
	// ImagePullPolicy of the sidecar.
	//
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// LogLevel of the sidecar: error, warn, info, debug or trace.
	//
	// +optional
	// +kubebuilder:validation:Enum=error;warn;info;debug;trace
	LogLevel string `json:"logLevel,omitempty"`
	// Port of the sidecar's HTTP API in the pod, 1 to 65535. Defaults to 8080.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// Resources of the sidecar.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// EnvVars are added to the sidecar's environment.
	//
	// +optional
	// +listType=atomic
	EnvVars []corev1.EnvVar `json:"envVars,omitempty"`
	// TLS of the sidecar's HTTP API. It has no effect: the API always has mutual TLS, with certificates that the fleet manager issues.
	//
	// +optional
	TLS *BindcarTLSConfig `json:"tls,omitempty"`
	// ServiceSpec is merged into the spec of the instance's Service.
	//
	// +optional
	ServiceSpec *corev1.ServiceSpec `json:"serviceSpec,omitempty"`
	// Volumes are added to the pods.
	//
	// +optional
	// +listType=atomic
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// VolumeMounts are added to the sidecar.
	//
	// +optional
	// +listType=atomic
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
}

// BindcarTLSConfig configures TLS of the sidecar's HTTP API. None of it has an effect.
type BindcarTLSConfig struct {
	// Enabled turns TLS on.
	//
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// SecretName names the Secret with the sidecar's certificate.
	//
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// CABundle is what the certificate is verified against.
	//
	// +optional
	CABundle *CABundleSource `json:"caBundle,omitempty"`
	// ServerName is the expected name in the certificate.
	//
	// +optional
	ServerName string `json:"serverName,omitempty"`
	// ReloadIntervalSeconds is how often the certificate is read again.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReloadIntervalSeconds *int64 `json:"reloadIntervalSeconds,omitempty"`
}

// CABundleSource is where a CA bundle is.
type CABundleSource struct {
	// ConfigMapRef names a ConfigMap.
	//
	// +optional
	ConfigMapRef *CABundleKeyRef `json:"configMapRef,omitempty"`
	// SecretRef names a Secret.
	//
	// +optional
	SecretRef *CABundleKeyRef `json:"secretRef,omitempty"`
}

// CABundleKeyRef is an entry of a ConfigMap or a Secret.
type CABundleKeyRef struct {
	// Name of the object.
	Name string `json:"name"`
	// Key of the entry.
	//
	// +optional
	Key string `json:"key,omitempty"`
}

// ServiceConfig customizes the Service of an instance.
type ServiceConfig struct {
	// Labels of the Service, in addition to those that every Service of a server has.
	//
	// +optional
	Labels ExtraLabels `json:"labels,omitempty"`
	// Annotations of the Service.
	//
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Spec is merged into the spec of the Service. Its selector and its DNS ports cannot be changed.
	//
	// +optional
	Spec *corev1.ServiceSpec `json:"spec,omitempty"`
}

// ExtraLabels are labels in addition to those by which servers are found.
//
// +kubebuilder:validation:MaxProperties=32
// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['app', 'instance']) && !k.startsWith('app.kubernetes.io/') && !k.startsWith('bindy.firestoned.io/'))",message="app, instance and labels that begin with app.kubernetes.io/ or bindy.firestoned.io/ are those by which servers are found: use other keys",messageExpression=`'app, instance and labels that begin with app.kubernetes.io/ or bindy.firestoned.io/ are those by which servers are found: use other keys than ' + self.filter(k, k in ['app', 'instance'] || k.startsWith('app.kubernetes.io/') || k.startsWith('bindy.firestoned.io/'))[0]`
type ExtraLabels map[string]string

// ExtraAnnotations are annotations in addition to those that servers have.
//
// +kubebuilder:validation:MaxProperties=32
// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'kubectl.kubernetes.io/default-container' && !k.startsWith('bindy.firestoned.io/'))",message="kubectl.kubernetes.io/default-container and annotations that begin with bindy.firestoned.io/ are those of every server: use other keys",messageExpression=`'kubectl.kubernetes.io/default-container and annotations that begin with bindy.firestoned.io/ are those of every server: use other keys than ' + self.filter(k, k == 'kubectl.kubernetes.io/default-container' || k.startsWith('bindy.firestoned.io/'))[0]`
type ExtraAnnotations map[string]string

// ServerConfig is how servers run. It can stand in a cluster, in a role of it and in an instance; of each setting, and of each key of labels and
// annotations, the last of these places counts that has it.
type ServerConfig struct {
	// Service customizes the Services of the servers.
	//
	// +optional
	Service *ServiceConfig `json:"service,omitempty"`
	// Placement chooses the nodes that the servers run on.
	//
	// +optional
	Placement *PlacementConfig `json:"placement,omitempty"`
	// Resources of named in each pod. Defaults to requests of 50m CPU and 64Mi memory, without limits.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// PodLabels are added to the pods.
	//
	// +optional
	PodLabels ExtraLabels `json:"podLabels,omitempty"`
	// PodAnnotations are added to the pods.
	//
	// +optional
	PodAnnotations ExtraAnnotations `json:"podAnnotations,omitempty"`
}

// StorageType selects where zone files are kept.
//
// +kubebuilder:validation:Enum=emptyDir;persistentVolumeClaim
type StorageType string

// The storage types.
const (
	// StorageEmptyDir keeps zone files for the life of the pod.
	StorageEmptyDir StorageType = "emptyDir"
	// StoragePersistentVolumeClaim keeps zone files on a persistent volume.
	StoragePersistentVolumeClaim StorageType = "persistentVolumeClaim"
)

// StorageConfig configures where zone files are kept.
//
// +kubebuilder:validation:XValidation:rule="!has(self.storageType) || self.storageType != 'persistentVolumeClaim' || (has(self.persistentVolumeClaim) && (has(self.persistentVolumeClaim.size) || has(self.persistentVolumeClaim.claimName)))",message="storage.persistentVolumeClaim.size is required with storageType persistentVolumeClaim, for example 1Gi, unless claimName names an existing claim"
type StorageConfig struct {
	// StorageType is emptyDir, which lives as long as the pod, or persistentVolumeClaim.
	//
	// +optional
	// +kubebuilder:default=emptyDir
	StorageType StorageType `json:"storageType,omitempty"`
	// EmptyDir configures the volume if storageType is emptyDir.
	//
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`
	// PersistentVolumeClaim describes the claim if storageType is persistentVolumeClaim.
	//
	// +optional
	PersistentVolumeClaim *PersistentVolumeClaimConfig `json:"persistentVolumeClaim,omitempty"`
}

// PersistentVolumeClaimConfig describes the claim for zone files.
type PersistentVolumeClaimConfig struct {
	// ClaimName of an existing claim to use.
	//
	// +optional
	ClaimName string `json:"claimName,omitempty"`
	// StorageClassName of the claims to create, one for each pod. Defaults to the Kubernetes cluster's default class.
	//
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// Size of the claims to create, for example "1Gi".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self)",message="size must be a quantity such as 500Mi or 1Gi"
	Size string `json:"size,omitempty"`
	// AccessModes of the claims to create. Defaults to ReadWriteOnce.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:Enum=ReadWriteOnce;ReadOnlyMany;ReadWriteMany;ReadWriteOncePod
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
}

// Normalize lower-cases the role: RolePrimary or RoleSecondary.
func (r ServerRole) Normalize() ServerRole { return ServerRole(strings.ToLower(string(r))) }

// EffectiveRNDCKey is the first of rndcKey, rndcKeys and rndcSecretRef that the role sets, nil if it sets none.
func (c *RoleConfig) EffectiveRNDCKey() *RNDCKeyConfig {
	if c == nil {
		return nil
	}
	return firstRNDCKey(c.RNDCKey, c.RNDCKeys, c.RNDCSecretRef)
}

// EffectiveRNDCKey is the first of rndcKey, rndcKeys and rndcSecretRef that the instance sets. Nil means that the cluster's applies.
func (s *Bind9InstanceSpec) EffectiveRNDCKey() *RNDCKeyConfig {
	return firstRNDCKey(s.RNDCKey, s.RNDCKeys, s.RNDCSecretRef)
}

func firstRNDCKey(key, keys *RNDCKeyConfig, ref *RNDCSecretRef) *RNDCKeyConfig {
	switch {
	case key != nil:
		return key
	case keys != nil:
		return keys
	case ref != nil:
		return &RNDCKeyConfig{Algorithm: ref.Algorithm, SecretRef: ref}
	}
	return nil
}

// Interval parses rotateAfter; empty means 30 days.
func (c *RNDCKeyConfig) Interval() (time.Duration, error) {
	if c.RotateAfter == "" {
		return 30 * 24 * time.Hour, nil
	}
	number, unit := c.RotateAfter[:len(c.RotateAfter)-1], c.RotateAfter[len(c.RotateAfter)-1]
	n, err := strconv.Atoi(number)
	hours, known := map[byte]int{'h': 1, 'd': 24, 'w': 7 * 24}[unit]
	if err != nil || !known || n < 0 {
		return 0, fmt.Errorf("rotateAfter %q is not a number of hours (h), days (d) or weeks (w)", c.RotateAfter)
	}
	return time.Duration(n*hours) * time.Hour, nil
}

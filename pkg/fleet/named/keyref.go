package named

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// KeySettings say where the update key of a cluster or standalone instance comes from, and when keys are replaced.
type KeySettings struct {
	// Ref is a user's own Secret with the update key; nil when the controller makes it. The transfer key is never a
	// user's: it is known to more.
	Ref *v1beta1.RNDCSecretRef
	// Rotation has autoRotate and rotateAfter of the keys that the controller makes.
	Rotation v1beta1.RNDCKeyConfig
}

// ClusterKeys returns the settings of a cluster: those of its primaries, else of its secondaries; the reference also that of
// the options for all.
func ClusterKeys(spec *v1beta1.Bind9ClusterSpec) KeySettings {
	primary := spec.Primary.EffectiveRNDCKey()
	settings := KeySettings{Rotation: ptr.Deref(cmp.Or(primary, spec.Secondary.EffectiveRNDCKey()), v1beta1.RNDCKeyConfig{})}
	settings.Ref = cmp.Or(ptr.Deref(primary, v1beta1.RNDCKeyConfig{}).SecretRef, ptr.Deref(spec.Global, v1beta1.Bind9Config{}).RNDCSecretRef)
	return settings
}

// StandaloneKeys returns the settings of an instance without a cluster.
func StandaloneKeys(spec *v1beta1.Bind9InstanceSpec) KeySettings {
	key := ptr.Deref(spec.EffectiveRNDCKey(), v1beta1.RNDCKeyConfig{})
	return KeySettings{Rotation: key, Ref: cmp.Or(key.SecretRef, ptr.Deref(spec.Config, v1beta1.Bind9Config{}).RNDCSecretRef)}
}

var keyStatement = regexp.MustCompile(`^\s*key\s+"?([A-Za-z0-9_./:-]+)"?\s*\{`)

// statementData returns a key statement of named as KeyData lays a key out; nil if the text is none.
func statementData(text []byte) map[string][]byte {
	name := keyStatement.FindSubmatch(text)
	algorithm, value, ok := rndc.ParseKeyClause(text)
	if name == nil || !ok {
		return nil
	}
	return map[string][]byte{keyNameEntry: name[1], keyAlgorithmEntry: []byte(algorithm), keySecretEntry: []byte(value)}
}

// KeyFromRef reads a user's own key: from the entries that ref names, or from a key statement of named in the entry
// rndc.key. The error wraps ErrKey.
func KeyFromRef(secret *corev1.Secret, ref v1beta1.RNDCSecretRef) (*wire.Key, error) {
	read := secret.DeepCopy()
	read.Data = maps.Clone(secret.Data)
	if read.Data == nil {
		read.Data = map[string][]byte{}
	}
	if text, ok := secret.Data["rndc.key"]; ok {
		data := statementData(text)
		if data == nil {
			return nil, fmt.Errorf("%w in Secret %s/%s: entry %q is not a key statement", ErrKey, secret.Namespace, secret.Name, "rndc.key")
		}
		maps.Copy(read.Data, data)
		return KeyFromSecret(read)
	}
	nameEntry, secretEntry := cmp.Or(ref.KeyNameKey, "key-name"), cmp.Or(ref.SecretKey, keySecretEntry)
	for _, entry := range []string{nameEntry, secretEntry} {
		if len(secret.Data[entry]) == 0 {
			return nil, fmt.Errorf("%w in Secret %s/%s: it has no entry %q", ErrKey, secret.Namespace, secret.Name, entry)
		}
	}
	read.Data[keyNameEntry], read.Data[keySecretEntry] = secret.Data[nameEntry], secret.Data[secretEntry]
	if len(secret.Data[keyAlgorithmEntry]) == 0 {
		read.Data[keyAlgorithmEntry] = []byte(ref.Algorithm)
	}
	return KeyFromSecret(read)
}

// ignoredKeys notes the fields about keys that have no effect.
func (w Workload) ignoredKeys(note func(set bool, text string)) {
	own := ptr.Deref(w.Instance.Spec.EffectiveRNDCKey(), v1beta1.RNDCKeyConfig{})
	secondary := ptr.Deref(w.Cluster.Secondary.EffectiveRNDCKey(), v1beta1.RNDCKeyConfig{})
	member := w.Instance.Spec.ClusterRef != ""
	note(member && (own.SecretRef != nil || own.AutoRotate || ptr.Deref(w.Instance.Spec.Config, v1beta1.Bind9Config{}).RNDCSecretRef != nil),
		"rndcKey.secretRef and rndcKey.autoRotate of an instance of a cluster: its keys are the cluster's")
	note(secondary.SecretRef != nil || len(w.Cluster.RNDCSecretRefs) > 0, "rndcKey.secretRef of secondaries and rndcSecretRefs: the controller makes the transfer key")
	note(w.Cluster.Primary != nil && secondary.AutoRotate && w.Cluster.Primary.EffectiveRNDCKey() != nil, "rndcKey.autoRotate of secondaries: that of the primaries holds for both keys")
	note(ptr.Deref(w.effectiveKey(), v1beta1.RNDCKeyConfig{}).Secret != nil, "rndcKey.secret: keys are made in Secrets with names of their own")
}

// effectiveKey returns the instance's rndc key, else its role's.
func (w Workload) effectiveKey() *v1beta1.RNDCKeyConfig {
	role := w.roleConfig()
	return cmp.Or(w.Instance.Spec.EffectiveRNDCKey(), role.EffectiveRNDCKey())
}

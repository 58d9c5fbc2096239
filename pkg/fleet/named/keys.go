package named

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// KeyRole says what a TSIG key permits.
type KeyRole = clause.KeyRole

// The keys of a cluster, or of an instance that stands alone.
const (
	KeyUpdate   = clause.KeyUpdate
	KeyTransfer = clause.KeyTransfer
)

// Entries of a key's Secret.
const (
	keyNameEntry      = "name"
	keyAlgorithmEntry = "algorithm"
	keySecretEntry    = "secret"
	KeyClauseEntry    = "key.conf"
)

// UpdateKeySecretName returns the name, in the instance's namespace, of the Secret with the key to update its zones with.
func UpdateKeySecretName(instance *v1beta1.Bind9Instance) string {
	return KeyringSecretName(serving.KeyOwner(instance), KeyUpdate)
}

// TransferKeySecretName returns the name, in the instance's namespace, of the Secret with the key to transfer its zones with.
func TransferKeySecretName(instance *v1beta1.Bind9Instance) string {
	return KeyringSecretName(serving.KeyOwner(instance), KeyTransfer)
}

// KeySecretName returns the name of the Secret that a key of the cluster or standalone instance called owner comes from.
func KeySecretName(owner string, role KeyRole) string {
	return owner + "-" + string(role) + "-key"
}

// NewKey returns a random key of 256 bits for the cluster or standalone instance called owner.
func NewKey(namespace, owner string, role KeyRole) (*wire.Key, error) {
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return nil, fmt.Errorf("making the %s key of %s/%s: %w", role, namespace, owner, err)
	}
	return &wire.Key{
		Name:      strings.ToLower(owner + "." + namespace + "." + string(role) + "."),
		Algorithm: rndc.DefaultAlgorithm + ".",
		Secret:    base64.StdEncoding.EncodeToString(secret[:]),
	}, nil
}

// KeyData returns a key as the entries of its Secret.
func KeyData(key *wire.Key) map[string][]byte {
	algorithm := strings.TrimSuffix(key.Algorithm, ".")
	return map[string][]byte{
		keyNameEntry:      []byte(key.Name),
		keyAlgorithmEntry: []byte(algorithm),
		keySecretEntry:    []byte(key.Secret),
		KeyClauseEntry:    []byte(rndc.KeyClause(key.Name, algorithm, key.Secret)),
	}
}

// ErrKey says that a Secret holds no usable TSIG key.
var ErrKey = errors.New("no usable TSIG key")

// KeyFromSecret reads a key as KeyData lays it out; the algorithm defaults to hmac-sha256. Without an entry for the secret, it
// reads a key statement of named.conf, as tsig-keygen prints it, that is the only entry. The error wraps ErrKey.
func KeyFromSecret(secret *corev1.Secret) (*wire.Key, error) {
	data := secret.Data
	where := fmt.Sprintf("Secret %s/%s", secret.Namespace, secret.Name)
	if _, laidOut := data[keySecretEntry]; !laidOut && len(data) == 1 {
		for _, text := range secret.Data { // the only one
			if data = statementData(text); data == nil {
				return nil, fmt.Errorf("%w in %s: its only entry is not a key statement as tsig-keygen prints it", ErrKey, where)
			}
		}
	}
	name := strings.ToLower(strings.TrimSpace(string(data[keyNameEntry])))
	algorithm := cmp.Or(strings.ToLower(strings.TrimSpace(string(data[keyAlgorithmEntry]))), rndc.DefaultAlgorithm)
	value := strings.TrimSpace(string(data[keySecretEntry]))
	if !clause.IsKeyName(name) {
		return nil, fmt.Errorf("%w in %s: entry %q must be a domain name of letters, digits, hyphens, underscores, \"/\" and \":\", such as update.example.com", ErrKey, where, keyNameEntry)
	}
	algorithm = strings.TrimSuffix(algorithm, ".")
	if !rndc.IsAlgorithm(algorithm) {
		return nil, fmt.Errorf("%w in %s: %s", ErrKey, where, refuseAlgorithm(algorithm))
	}
	if raw, err := base64.StdEncoding.DecodeString(value); err != nil || len(raw) == 0 {
		return nil, fmt.Errorf("%w in %s: entry %q is not base64", ErrKey, where, keySecretEntry)
	}
	key := &wire.Key{Name: strings.TrimSuffix(name, ".") + ".", Algorithm: algorithm + ".", Secret: value}
	if err := key.Validate(); err != nil { // A message cannot be signed with it.
		return nil, fmt.Errorf("%w in %s: %w", ErrKey, where, err)
	}
	return key, nil
}

// refusedAlgorithm has the names of algorithms that exist. Any other text in a Secret may be a secret in the wrong entry.
var refusedAlgorithm = regexp.MustCompile(`^(hmac-(md5|sha[0-9]{1,3})(-[0-9]{2,3})?(\.sig-alg\.reg\.int)?|gss-tsig|gss\.microsoft\.com)$`)

// refuseAlgorithm says why an algorithm is refused, and what to do.
func refuseAlgorithm(algorithm string) string {
	const works = "hmac-sha256, hmac-sha224, hmac-sha384 and hmac-sha512 work"
	what := fmt.Sprintf("entry %q names no algorithm", keyAlgorithmEntry)
	switch {
	case strings.HasPrefix(algorithm, "gss"):
		return "algorithm " + cmp.Or(refusedAlgorithm.FindString(algorithm), "gss") + " is not supported: there is no GSS-TSIG here, so give the server a key for Lockstep; " + works
	case refusedAlgorithm.MatchString(algorithm):
		what = fmt.Sprintf("algorithm %s is refused as too weak, or not known (RFC 8945 section 6)", algorithm)
	}
	return fmt.Sprintf("%s; %s: have the server know a new key beside the old one, made with tsig-keygen -a hmac-sha256 NAME", what, works)
}

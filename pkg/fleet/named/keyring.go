package named

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// keysEntry is an entry of a key ring's Secret, beside layout.KeyNamesEntry and those of a key, which are of the one to sign with.
const keysEntry = "keys.json"

// KeyringSecretName returns the name of the Secret with the key ring of the cluster or standalone instance called owner.
func KeyringSecretName(owner string, role KeyRole) string {
	return owner + "-" + string(role) + "-keyring"
}

// Keyring is every TSIG key that servers accept in one role, at most two, and the one that clients sign with: the first.
// It follows the key in a Secret, its source, by Follow: a new key is accepted by every server before anybody signs with
// it, and an old one until nobody does any more. The zero value is a ring that was never used.
type Keyring struct {
	Keys []RingKey `json:"keys"`
	// SwitchedAt is when clients began to sign with the first key in place of another; Switches is how often they did.
	SwitchedAt time.Time `json:"switchedAt,omitzero"`
	Switches   int64     `json:"switches,omitempty"`
	// Revision is the name of a key that permits nothing, and Proof its secret. named lists it when it has loaded this
	// version of the ring.
	Revision string `json:"revision"`
	Proof    string `json:"proof"`
	// Guests are no keys of the ring's role: servers know them, and the role's ACL does not name them.
	Guests []GuestKey `json:"guests,omitempty"`
}

// RingKey is one key of a ring.
type RingKey struct {
	// Name is the key's name on the wire, and never that of another key: named knows one secret by a name.
	Name string `json:"name"`
	// Given, Algorithm and Secret are as in the source.
	Given     string `json:"given"`
	Algorithm string `json:"algorithm"`
	Secret    string `json:"secret"`
	// Since is when it came into the ring.
	Since time.Time `json:"since"`
}

// Active returns the key that clients sign with; nil in a ring that was never used.
func (r Keyring) Active() *wire.Key {
	if len(r.Keys) == 0 {
		return nil
	}
	k := r.Keys[0]
	return &wire.Key{Name: k.Name, Algorithm: k.Algorithm, Secret: k.Secret}
}

// Names returns the ring's names.
func (r Keyring) Names() layout.KeyNames {
	names := layout.KeyNames{Revision: r.Revision}
	for i, k := range r.Keys {
		if i == 0 {
			names.Active = k.Name
		}
		names.Accepted = append(names.Accepted, k.Name)
	}
	return names
}

// Clauses returns the ring as clauses of named.conf: its keys, each under its name on the wire and also the one that it was
// given, which belongs to the older of two that share it; and the ACL that names them. All stand in one file, so that
// named never sees one without the other.
func (r Keyring) Clauses(role KeyRole) string {
	var b, list strings.Builder
	taken := map[string]bool{}
	accept := func(name string, k RingKey) {
		if taken[name] {
			return
		}
		taken[name] = true
		b.WriteString(rndc.KeyClause(name, strings.TrimSuffix(k.Algorithm, "."), k.Secret))
		fmt.Fprintf(&list, "key %q; ", name)
	}
	for _, k := range r.Keys {
		accept(k.Name, k)
	}
	byAge := func(a, b RingKey) int { return a.Since.Compare(b.Since) }
	for _, k := range slices.SortedStableFunc(slices.Values(r.Keys), byAge) {
		accept(k.Given, k)
	}
	for _, k := range r.Guests {
		if !taken[k.Name] {
			b.WriteString(rndc.KeyClause(k.Name, strings.TrimSuffix(k.Algorithm, "."), k.Secret))
		}
	}
	b.WriteString(rndc.KeyClause(r.Revision, rndc.DefaultAlgorithm, r.Proof))
	fmt.Fprintf(&b, "acl %q { %s};\n", clause.KeyACL(role), list.String())
	return b.String()
}

// Data returns the ring as the entries of its Secret. KeyFromSecret reads the key to sign with.
func (r Keyring) Data(role KeyRole) (map[string][]byte, error) {
	keys, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	names, err := json.Marshal(r.Names())
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{keysEntry: keys, layout.KeyNamesEntry: names, KeyClauseEntry: []byte(r.Clauses(role))}
	if active := r.Active(); active != nil {
		data[keyNameEntry] = []byte(active.Name)
		data[keyAlgorithmEntry] = []byte(strings.TrimSuffix(active.Algorithm, "."))
		data[keySecretEntry] = []byte(active.Secret)
	}
	return data, nil
}

// KeyringFromSecret reads a ring as Data lays it out. The error wraps ErrKey.
func KeyringFromSecret(secret *corev1.Secret) (Keyring, error) {
	var r Keyring
	if err := json.Unmarshal(secret.Data[keysEntry], &r); err != nil || len(r.Keys) == 0 {
		return Keyring{}, fmt.Errorf("%w in Secret %s/%s: entry %q is not a key ring; delete the Secret, and it is made anew", ErrKey,
			secret.Namespace, secret.Name, keysEntry)
	}
	return r, nil
}

// NewKeyring returns the ring that begins with a key, under the name that it was given.
func NewKeyring(role KeyRole, key *wire.Key, now time.Time) (Keyring, error) {
	r := Keyring{Keys: []RingKey{ringKey(key, key.Name, now)}}
	return r, r.renewRevision(role)
}

func ringKey(key *wire.Key, name string, now time.Time) RingKey {
	return RingKey{Name: name, Given: key.Name, Algorithm: key.Algorithm, Secret: key.Secret, Since: now.UTC().Truncate(time.Second)}
}

// addKey puts a key into the ring under a name that no server has heard of. It is younger than the others, whatever the clock was when they came.
func (r *Keyring) addKey(key *wire.Key, now time.Time) error {
	label, err := randomBytes(4)
	added := ringKey(key, "k"+hex.EncodeToString(label)+"."+key.Name, now)
	r.Keys = slices.Clone(r.Keys)
	for i := range r.Keys {
		if latest := added.Since.Add(-time.Second); r.Keys[i].Since.After(latest) {
			r.Keys[i].Since = latest
		}
	}
	r.Keys = append(r.Keys, added)
	return err
}

// renewRevision gives the ring a new revision. Its name comes before all others in the order of names: what named 9.18 lists of its keys
// ends at the first name that has another below it.
func (r *Keyring) renewRevision(role KeyRole) error {
	label, err := randomBytes(8)
	secret, secretErr := randomBytes(32)
	r.Revision = "r" + hex.EncodeToString(label) + ".-" + clause.KeyACL(role) + "."
	r.Proof = base64.StdEncoding.EncodeToString(secret)
	return errors.Join(err, secretErr)
}

func randomBytes(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := rand.Read(b)
	return b, err
}

package named

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// GuestKey is a key with which servers outside transfer the zones that name it, and no others: a ring has servers know it, and only
// the clause of a zone permits something to it.
type GuestKey struct {
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Secret    string `json:"secret"`
}

// maxGuestSecret bounds the secret of a guest's key in bytes. HMACs hash what is longer than their block of at most 128.
const maxGuestSecret = 128

// NewGuestKey returns the key of a provider's secondaries as servers get it. The error wraps ErrKey.
func NewGuestKey(namespace, provider string, key *wire.Key) (GuestKey, error) {
	name, err := serving.GuestKeyName(namespace, provider)
	if err != nil {
		return GuestKey{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if key.Name != name {
		return GuestKey{}, fmt.Errorf("%w: the key of the secondaries is named %s; its name has to be %s, in the Secret and on the secondaries: a name of its own on servers that may have keys of others; make one with "+
			"tsig-keygen -a hmac-sha256 %s, or leave out spec.secondaries.transferKey for secondaries whose owner dictates the name: they then transfer by their addresses",
			ErrKey, key.Name, name, strings.TrimSuffix(name, "."))
	}
	secret, err := base64.StdEncoding.DecodeString(key.Secret)
	if err != nil || len(secret) > maxGuestSecret {
		return GuestKey{}, fmt.Errorf("%w: the secret of key %s is no base64 of at most %d bytes: use tsig-keygen", ErrKey, name, maxGuestSecret)
	}
	return GuestKey{Name: name, Algorithm: key.Algorithm, Secret: base64.StdEncoding.EncodeToString(secret)}, nil
}

// FollowGuests returns the ring with these guests; changed is false if it has them, or if its own keys are changing: servers take
// one change after the other, and guests come second.
func (r Keyring) FollowGuests(role KeyRole, source *wire.Key, guests []GuestKey) (next Keyring, changed bool, err error) {
	if slices.Equal(r.Guests, guests) || !r.Settled(source) {
		return r, false, nil
	}
	next = r
	next.Guests = guests
	return next, true, next.renewRevision(role)
}

package named

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// guestSuffix ends the names of guests' keys, and of no others.
const guestSuffix = ".secondary.lockstep."

// IsGuestName reports whether only the key of a DNSProvider may have a name.
func IsGuestName(name string) bool { return strings.HasSuffix(name, guestSuffix) }

// GuestKeyName returns the name that the key of a DNSProvider with secondaries must have. Nobody chooses it: of the servers that a
// key ring is for, no two providers have one name, and none has that of a key that means more there. It is an error if it
// would be no domain name (RFC 1035 section 2.3.4).
func GuestKeyName(namespace, provider string) (string, error) {
	name := strings.ToLower(provider + "." + namespace + guestSuffix)
	if _, ok := dns.IsDomainName(name); !ok {
		return "", fmt.Errorf("DNSProvider %s has too long a name for the key of its secondaries: no part of %s may have more than 63 characters, and all of it no more than 253", provider, name)
	}
	return name, nil
}

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
	name, err := GuestKeyName(namespace, provider)
	if err != nil {
		return GuestKey{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if key.Name != name {
		return GuestKey{}, fmt.Errorf("%w: the key of the secondaries is named %s; its name has to be %s, in the Secret and on the secondaries: a name of its own on servers that may have keys of others",
			ErrKey, key.Name, name)
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

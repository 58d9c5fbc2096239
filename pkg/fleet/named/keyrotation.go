package named

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// KeyGrace is how long a key stays good after clients began to sign with the next one. Whoever signs looks at the ring
// more often than that.
const KeyGrace = 2 * time.Minute

// KeyFacts are what is known of the servers of a ring, beside the ring itself. Facts that are out of date do no harm as
// long as they were true of this ring or one before it: what a server has loaded it keeps until the ring drops it.
type KeyFacts struct {
	// Loaded reports whether every server accepts the key of that name.
	Loaded func(name string) bool
	// Signing reports whether every server that signs does so with the key of that name.
	Signing func(name string) bool
}

// Follow returns the ring one step closer to its source; changed is false when there is none to make yet, or none any more.
// Each step is safe by itself, so that whoever stops between two of them, or makes one twice, breaks nothing:
//
//   - accept: a key that is new in the source joins the ring behind the one that clients sign with
//   - switch: it comes first once every server has loaded it
//   - drop: the other leaves once no server signs with it, and KeyGrace after the switch
//
// A source that changes again meanwhile waits for the drop. One that changes back takes the same steps.
func (r Keyring) Follow(role KeyRole, source *wire.Key, facts KeyFacts, now time.Time) (next Keyring, changed bool, err error) {
	if len(r.Keys) == 0 {
		next, err = NewKeyring(role, source, now)
		return next, true, err
	}
	at, next := r.indexOf(source), r
	idle := func() bool { return now.Sub(r.SwitchedAt) >= KeyGrace && facts.Signing(r.Keys[0].Name) }
	switch {
	case at == 0 && len(r.Keys) == 1:
		return r, false, nil
	case at < 0 && len(r.Keys) == 1:
		err = next.addKey(source, now)
	case at > 0 && facts.Loaded(r.Keys[at].Name):
		next.Keys = []RingKey{r.Keys[at], r.Keys[0]}
		next.SwitchedAt, next.Switches = now.UTC().Truncate(time.Second), r.Switches+1
	case at <= 0 && r.SwitchedAt.After(now): // The clock was ahead then: the grace begins anew, or it might take years.
		next.SwitchedAt = now.UTC().Truncate(time.Second)
	case at <= 0 && idle():
		next.Keys = slices.Clone(r.Keys[:1])
	default:
		return r, false, nil
	}
	if err == nil {
		err = next.renewRevision(role)
	}
	return next, err == nil, err
}

// Settled reports whether the ring has followed its source to the end.
func (r Keyring) Settled(source *wire.Key) bool { return len(r.Keys) == 1 && r.indexOf(source) == 0 }

// indexOf returns the index of the source's key in the ring, -1 when it has none like it.
func (r Keyring) indexOf(source *wire.Key) int {
	return slices.IndexFunc(r.Keys, func(k RingKey) bool {
		return k.Given == source.Name && k.Algorithm == source.Algorithm && k.Secret == source.Secret
	})
}

// RotateAt returns when the ring's key is due to be replaced; nil without autoRotate.
func (r Keyring) RotateAt(settings v1beta1.RNDCKeyConfig) *metav1.Time {
	interval, err := settings.Interval()
	if !settings.AutoRotate || err != nil || len(r.Keys) == 0 {
		return nil
	}
	return new(metav1.NewTime(r.Keys[0].Since.Add(interval)))
}

// IsDue reports whether the ring's key is due to be replaced. So is one that came while the clock was ahead.
func (r Keyring) IsDue(settings v1beta1.RNDCKeyConfig, now time.Time) bool {
	at := r.RotateAt(settings)
	return at != nil && (!now.Before(at.Time) || now.Before(r.Keys[0].Since))
}

// Rotation returns the ring's history and future for an instance's status. own says that the key is not a user's.
func (r Keyring) Rotation(settings v1beta1.RNDCKeyConfig, own bool) *v1beta1.RNDCKeyRotationStatus {
	if len(r.Keys) == 0 {
		return nil
	}
	status := &v1beta1.RNDCKeyRotationStatus{CreatedAt: new(metav1.NewTime(r.Keys[0].Since)), RotationCount: r.Switches}
	if own {
		status.RotateAt = r.RotateAt(settings)
	}
	if r.Switches > 0 {
		status.LastRotatedAt = new(metav1.NewTime(r.SwitchedAt))
	}
	return status
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

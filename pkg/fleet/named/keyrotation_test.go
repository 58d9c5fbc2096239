package named_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

var ringEpoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func sourceKey(name, secret string) *wire.Key {
	return &wire.Key{Name: name, Algorithm: "hmac-sha256.", Secret: secret}
}

// fleet is servers that take up a ring one after the other, and clients of theirs. Nothing here but Follow decides.
type fleet struct {
	t    *testing.T
	ring named.Keyring
	// loaded and signs are the ring as each server has it for either purpose, client as the clients saw it last.
	loaded, signs []named.Keyring
	client        named.Keyring
	clientAt      time.Time
	now           time.Time
	rendered      map[string]map[string]string
}

var clause = regexp.MustCompile(`key "([^"]+)" \{\s+algorithm [^;]+;\s+secret "([^"]+)";`)

// accepts are the secrets that a server with that version of the ring knows, by the names of their keys.
func (f *fleet) accepts(r named.Keyring) map[string]string {
	known := f.rendered[r.Revision]
	if known == nil {
		known = map[string]string{}
		for _, found := range clause.FindAllStringSubmatch(r.Clauses(named.KeyUpdate), -1) {
			known[found[1]] = found[2]
		}
		f.rendered[r.Revision] = known
	}
	return known
}

// works fails the test if any signer could be refused at this moment by any server.
func (f *fleet) works(when string) {
	f.t.Helper()
	for i, server := range f.loaded {
		for _, signer := range append([]named.Keyring{f.client}, f.signs...) {
			if k := signer.Keys[0]; f.accepts(server)[k.Name] != k.Secret {
				f.t.Fatalf("%s: server %d does not accept key %s", when, i, k.Name)
			}
		}
	}
}

func (f *fleet) facts() named.KeyFacts {
	return named.KeyFacts{
		Loaded: func(name string) bool {
			return !slices.ContainsFunc(f.loaded, func(r named.Keyring) bool { return !slices.Contains(r.Names().Accepted, name) })
		},
		Signing: func(name string) bool {
			return !slices.ContainsFunc(f.signs, func(r named.Keyring) bool { return r.Active().Name != name })
		},
	}
}

// TestFollow changes a source at every moment of the rotation that its last change began, with every combination of servers
// that lag behind. Whatever crashes between two steps has nothing in memory here: each step starts from the ring as its
// Secret has it.
func TestFollow(t *testing.T) {
	sources := []*wire.Key{sourceKey("a.", "YQ=="), sourceKey("a.", "Yg=="), sourceKey("b.", "Yw=="), sourceKey("a.", "YQ==")}
	for _, step := range []time.Duration{time.Second, named.KeyGrace / 3, 2 * named.KeyGrace} {
		for changeAfter := range 16 {
			for lag := range 4 {
				t.Run(fmt.Sprint(step, " ", changeAfter, " ", lag), func(t *testing.T) {
					ring, err := named.NewKeyring(named.KeyUpdate, sources[0], ringEpoch)
					if err != nil {
						t.Fatal(err)
					}
					f := &fleet{t: t, ring: ring, client: ring, now: ringEpoch, clientAt: ringEpoch, rendered: map[string]map[string]string{}}
					f.loaded, f.signs = slices.Repeat([]named.Keyring{ring}, 3), slices.Repeat([]named.Keyring{ring}, 3)
					at := 0
					for tick := range 4 * (changeAfter + 40) {
						if at < len(sources)-1 && tick == (at+1)*(changeAfter+1) {
							at++
						}
						f.tick(tick, lag, sources[at], step)
					}
					f.end(sources[at], step, lag)
				})
			}
		}
	}
}

func (f *fleet) tick(tick, lag int, source *wire.Key, step time.Duration) {
	f.t.Helper()
	f.now = f.now.Add(step)
	next, changed, err := f.ring.Follow(named.KeyUpdate, source, f.facts(), f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	if again, twice, _ := next.Follow(named.KeyUpdate, source, f.facts(), f.now); changed && twice && len(again.Keys) == len(next.Keys) && again.Active().Name == f.ring.Active().Name {
		f.t.Fatalf("tick %d: a step is undone by the next", tick)
	}
	if changed {
		next = reread(f.t, next)
	}
	f.ring = next
	f.works(fmt.Sprint("tick ", tick, ", ring changed"))
	// One server at a time reads the ring, one begins to sign by it, after the ticks that it lags.
	f.loaded[(tick/(lag+1))%3] = f.ring
	f.works(fmt.Sprint("tick ", tick, ", server loaded"))
	if i := (tick / (2*lag + 1)) % 3; slices.Contains(f.loaded[i].Names().Accepted, f.ring.Active().Name) {
		f.signs[i] = f.ring
	}
	f.works(fmt.Sprint("tick ", tick, ", server signs"))
	// The clients look at the ring more often than KeyGrace.
	if f.now.Sub(f.clientAt) >= named.KeyGrace/2 {
		f.client, f.clientAt = f.ring, f.now
	}
	f.works(fmt.Sprint("tick ", tick, ", client looked"))
}

// end checks that everything has come to rest on the source, and that no other key is worth anything.
func (f *fleet) end(source *wire.Key, step time.Duration, lag int) {
	f.t.Helper()
	if !f.ring.Settled(source) {
		f.t.Fatalf("at the end, in steps of %s with lag %d, the ring is %v", step, lag, f.ring.Names())
	}
	for _, r := range f.loaded {
		if f.accepts(r)[source.Name] != source.Secret || len(r.Names().Accepted) != 1 {
			f.t.Errorf("a server accepts %v", r.Names())
		}
	}
}

// reread is a ring as whoever comes after a crash finds it.
func reread(t *testing.T, r named.Keyring) named.Keyring {
	t.Helper()
	data, err := r.Data(named.KeyUpdate)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{Data: data}
	back, err := named.KeyringFromSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := named.KeyFromSecret(secret); err != nil || *key != *back.Active() {
		t.Fatalf("the key to sign with is %v, %v", key, err)
	}
	var names layout.KeyNames
	if err := json.Unmarshal(data[layout.KeyNamesEntry], &names); err != nil || names.Active != back.Active().Name {
		t.Fatalf("the names are %+v, %v", names, err)
	}
	for _, k := range back.Keys {
		if strings.Contains(string(data[layout.KeyNamesEntry]), k.Secret) {
			t.Fatal("a secret is among the names")
		}
	}
	return back
}

// TestFollowWaits: no step is made before its time.
func TestFollowWaits(t *testing.T) {
	old, fresh := sourceKey("a.", "YQ=="), sourceKey("a.", "Yg==")
	ring, err := named.NewKeyring(named.KeyTransfer, old, ringEpoch)
	if err != nil {
		t.Fatal(err)
	}
	now, loaded, signing := ringEpoch, false, false
	facts := named.KeyFacts{Loaded: func(string) bool { return loaded }, Signing: func(string) bool { return signing }}
	step := func(want bool, what string) {
		t.Helper()
		next, changed, err := ring.Follow(named.KeyTransfer, fresh, facts, now)
		if err != nil || changed != want {
			t.Fatalf("%s: changed %v, %v", what, changed, err)
		}
		if changed && next.Revision == ring.Revision {
			t.Errorf("%s: the revision is the same", what)
		}
		ring = next
	}
	step(true, "a new key")
	if ring.Active().Secret != old.Secret {
		t.Error("a key is used that no server has")
	}
	step(false, "not loaded")
	loaded = true
	step(true, "loaded")
	if ring.Active().Secret != fresh.Secret || ring.Active().Name == old.Name {
		t.Errorf("the key to sign with is %v", ring.Active())
	}
	signing = true
	step(false, "during the grace")
	now, signing = now.Add(named.KeyGrace), false
	step(false, "a server signs with the old one")
	signing = true
	step(true, "after the grace")
	step(false, "at rest")
	if !ring.Settled(fresh) || ring.Switches != 1 || !ring.SwitchedAt.Equal(ringEpoch) {
		t.Errorf("the ring is %v", ring.Names())
	}
}

// TestFollowWhenTheClockIsSetBack: a rotation that began while the clock was a year ahead goes on, and neither does the next one come a year late
// nor take a name from the key that has it.
func TestFollowWhenTheClockIsSetBack(t *testing.T) {
	const ahead = 365 * 24 * time.Hour
	settings := v1beta1.RNDCKeyConfig{AutoRotate: true, RotateAfter: "24h"}
	facts := named.KeyFacts{Loaded: func(string) bool { return true }, Signing: func(string) bool { return true }}
	ring, err := named.NewKeyring(named.KeyUpdate, sourceKey("a.", "YQ=="), ringEpoch)
	if err != nil {
		t.Fatal(err)
	}
	follow := func(secret string, now time.Time) {
		t.Helper()
		if ring, _, err = ring.Follow(named.KeyUpdate, sourceKey("a.", secret), facts, now); err != nil {
			t.Fatal(err)
		}
	}
	now := ringEpoch.Add(ahead)
	follow("Yg==", now) // accept
	follow("Yg==", now) // switch
	now = ringEpoch.Add(time.Hour)
	follow("Yg==", now)
	if follow("Yg==", now.Add(named.KeyGrace-time.Second)); len(ring.Keys) != 2 {
		t.Fatal("the former key is dropped within its grace")
	}
	if follow("Yg==", now.Add(named.KeyGrace)); len(ring.Keys) != 1 || !ring.IsDue(settings, now) {
		t.Fatalf("after the grace: %v, due %v", ring.Names(), ring.IsDue(settings, now))
	}
	follow("Yw==", now)
	accepted := map[string]string{}
	for _, found := range clause.FindAllStringSubmatch(ring.Clauses(named.KeyUpdate), -1) {
		accepted[found[1]] = found[2]
	}
	if accepted["a."] != "Yg==" {
		t.Errorf("the name that was given is the next key's already: %v", accepted)
	}
	follow("Yw==", now)
	if follow("Yw==", now.Add(named.KeyGrace)); len(ring.Keys) != 1 || ring.IsDue(settings, now.Add(23*time.Hour)) || !ring.IsDue(settings, now.Add(24*time.Hour)) {
		t.Errorf("after the next rotation: %v, since %s", ring.Names(), ring.Keys[0].Since)
	}
}

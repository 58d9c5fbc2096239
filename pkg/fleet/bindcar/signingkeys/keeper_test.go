package signingkeys

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
)

// emptyStore has Secrets without entries.
type emptyStore struct{}

func (emptyStore) Load(context.Context, string) (map[string][]byte, error) { return nil, nil }

func (emptyStore) Save(context.Context, string, map[string][]byte, map[string][]byte) error {
	return nil
}

// Keys that a deleted zone left on disk do not sign the next zone of that name, whose Secret does not have them.
func TestKeysOfFormerZoneAreNotUsed(t *testing.T) {
	zones := &zonefile.Dir{Path: t.TempDir()}
	left := zones.KeyFilePrefix("example.com") + "013+12345.private"
	if err := os.WriteFile(left, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(zones.Path, "Kother.com.+013+12345.private")
	if err := os.WriteFile(other, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	keeper := NewKeeper(zones, func() (Store, error) { return emptyStore{}, nil })
	zone := zonefile.Description{Name: "example.com", Type: bindcar.Primary, DNSSECPolicy: "default", KeySecret: "keys"}
	if err := keeper.Restore(t.Context(), zone); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the former zone's key is still there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("another zone's key is gone: %v", err)
	}
}

// oneSecret is a store with one Secret.
type oneSecret map[string][]byte

func (s oneSecret) Load(context.Context, string) (map[string][]byte, error) {
	return maps.Clone(s), nil
}

func (s oneSecret) Save(_ context.Context, _ string, before, after map[string][]byte) error {
	for entry := range before {
		delete(s, entry)
	}
	maps.Copy(s, after)
	return nil
}

// keeperOf keeps the keys of example.com in a Secret. put puts a key on disk.
func keeperOf(t *testing.T, secret oneSecret) (keeper *Keeper, put func(key, state string)) {
	t.Helper()
	zones := &zonefile.Dir{Path: t.TempDir()}
	if err := zones.SaveDescription(zonefile.Description{Name: "example.com", Type: bindcar.Primary, DNSSECPolicy: "default", KeySecret: "keys"}); err != nil {
		t.Fatal(err)
	}
	return NewKeeper(zones, func() (Store, error) { return secret, nil }), func(key, state string) {
		t.Helper()
		for kind, text := range map[string]string{"key": "public", "private": "secret", "state": state} {
			if err := os.WriteFile(zones.KeyFilePrefix("example.com")+"013+"+key+"."+kind, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A volume that comes from a backup has no later key: the Secret keeps it. A key that named removes later goes from there.
func TestKeysThatAnOlderVolumeLacks(t *testing.T) {
	secret := oneSecret{"013-00001.state": []byte("before"), "013-00002.private": []byte("later")}
	keeper, put := keeperOf(t, secret)
	zones := keeper.zones
	requireKeys := func(want ...string) {
		t.Helper()
		if err := keeper.SaveAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for entry := range secret {
			key, _, _ := strings.Cut(entry, ".")
			keys[key] = true
		}
		if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, want) {
			t.Errorf("the Secret has the keys %v, want %v", got, want)
		}
	}
	put("00001", "now")
	requireKeys("013-00001", "013-00002")
	if string(secret["013-00001.state"]) != "now" || len(secret) != 4 {
		t.Errorf("the Secret has %q", secret)
	}
	put("00003", "now")
	requireKeys("013-00001", "013-00002", "013-00003")
	for _, kind := range []string{"key", "private", "state"} {
		if err := os.Remove(zones.KeyFilePrefix("example.com") + "013+00001." + kind); err != nil {
			t.Fatal(err)
		}
	}
	requireKeys("013-00002", "013-00003")
}

// A Secret that somebody deletes is made again without keys, and gets them. Entries that are no keys stay.
func TestKeysOfADeletedSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret := oneSecret{}
		keeper, put := keeperOf(t, secret)
		put("00001", "now")
		for _, want := range []int{3, 4} {
			if err := keeper.SaveAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(secret) != want || string(secret["013-00001.private"]) != "secret" {
				t.Errorf("the Secret has %q", secret)
			}
			clear(secret)
			secret["note"] = []byte("mine")
			time.Sleep(rereadAfter)
		}
	})
}

// A key file that is empty, as after a loss of power, does not replace the saved one; the others wait with it.
func TestKeysOfAnEmptyFile(t *testing.T) {
	for _, kind := range []string{"key", "private", "state"} {
		secret := oneSecret{}
		keeper, put := keeperOf(t, secret)
		put("00001", "before")
		put("00002", "before")
		for _, state := range []string{"before", "now"} {
			put("00002", state)
			if err := keeper.SaveAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(secret) != 6 || len(secret["013-00001."+kind]) == 0 {
				t.Errorf("the Secret has %q", secret)
			}
			if err := os.WriteFile(keeper.zones.KeyFilePrefix("example.com")+"013+00001."+kind, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

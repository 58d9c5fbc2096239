package keyrotation

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// TestKeysAreReadInTime: a pass that began with a key ends before it is dropped, however late it read it.
func TestKeysAreReadInTime(t *testing.T) {
	if keyLifetime+time.Minute > named.KeyGrace {
		t.Errorf("a key is used for %s and accepted for %s more", keyLifetime, named.KeyGrace)
	}
}

// TestKeyringIsTheOwners: what was put by one owner is not another's, and holds at once for who signs.
func TestKeyringIsTheOwners(t *testing.T) {
	key, err := named.NewKey("dns", "x", named.KeyUpdate)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := named.NewKeyring(named.KeyUpdate, key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c, name := NewCache(nil), client.ObjectKey{Namespace: "dns", Name: "x-update-keyring"}
	c.setRing(name, "cluster", ring)
	if _, ok := c.ringOf(name, "instance"); ok {
		t.Error("somebody else's ring is taken for one's own")
	}
	if got, ok := c.ringOf(name, "cluster"); !ok || got.Revision != ring.Revision {
		t.Error("one's own ring is not found")
	}
	if got, err := c.Get(t.Context(), name); err != nil || *got != *key {
		t.Errorf("the key to sign with is %v, %v", got, err)
	}
}

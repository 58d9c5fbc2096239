package controller

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/named"
)

// TestKeysAreReadInTime: a pass that began with a key ends before it is dropped, however late it read it.
func TestKeysAreReadInTime(t *testing.T) {
	if keyLife+time.Minute > named.KeyGrace {
		t.Errorf("a key is used for %s and accepted for %s more", keyLife, named.KeyGrace)
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
	k, name := newKeyring(nil), client.ObjectKey{Namespace: "dns", Name: "x-update-keyring"}
	k.put(name, "cluster", ring)
	if _, ok := k.ring(name, "instance"); ok {
		t.Error("somebody else's ring is taken for one's own")
	}
	if got, ok := k.ring(name, "cluster"); !ok || got.Revision != ring.Revision {
		t.Error("one's own ring is not found")
	}
	if got, err := k.Get(t.Context(), name); err != nil || *got != *key {
		t.Errorf("the key to sign with is %v, %v", got, err)
	}
}

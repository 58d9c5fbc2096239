package named_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// A guest's key has the name that only its provider can have, and nothing in it that named would not load.
func TestNewGuestKey(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for name, c := range map[string]struct {
		namespace, provider string
		key                 wire.Key
		want                string // a part of the error; empty if there is none
	}{
		"good":               {"team", "isp", wire.Key{Name: "isp.team.secondary.lockstep.", Algorithm: "hmac-sha256.", Secret: secret}, ""},
		"dots":               {"team", "isp.net", wire.Key{Name: "isp.net.team.secondary.lockstep.", Algorithm: "hmac-sha256.", Secret: secret}, ""},
		"lines":              {"team", "isp", wire.Key{Name: "isp.team.secondary.lockstep.", Secret: secret[:8] + "\r\n" + secret[8:]}, ""},
		"another's":          {"team", "isp", wire.Key{Name: "isp.victim.secondary.lockstep.", Secret: secret}, "has to be isp.team.secondary.lockstep."},
		"ours":               {"team", "isp", wire.Key{Name: "dns.dns-system.update.", Secret: secret}, "has to be isp.team.secondary.lockstep."},
		"any":                {"team", "isp", wire.Key{Name: "isp.", Secret: secret}, "in the Secret and on the secondaries"},
		"any, what to do":    {"team", "isp", wire.Key{Name: "isp.", Secret: secret}, "tsig-keygen -a hmac-sha256 isp.team.secondary.lockstep, or leave out spec.secondaries.transferKey"},
		"a long label":       {"team", strings.Repeat("a", 64), wire.Key{Name: strings.Repeat("a", 64) + ".team.secondary.lockstep.", Secret: secret}, "too long a name"},
		"a long name":        {"team", strings.Repeat("a.", 120) + "a", wire.Key{Secret: secret}, "too long a name"},
		"a secret of kibi":   {"team", "isp", wire.Key{Name: "isp.team.secondary.lockstep.", Secret: base64.StdEncoding.EncodeToString(make([]byte, 1024))}, "at most 128 bytes"},
		"a secret of quotes": {"team", "isp", wire.Key{Name: "isp.team.secondary.lockstep.", Secret: `"; }; options { `}, "no base64"},
	} {
		got, err := named.NewGuestKey(c.namespace, c.provider, &c.key)
		switch {
		case c.want == "" && (err != nil || got.Name != c.key.Name || got.Secret != secret):
			t.Errorf("%s: %+v, %v", name, got, err)
		case c.want != "" && (!errors.Is(err, named.ErrKey) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case err != nil && c.key.Secret != "" && strings.Contains(err.Error(), c.key.Secret):
			t.Errorf("%s: the error has the secret", name)
		}
	}
}

// Guests come and go while the ring's own keys rest; they stand in the same file, and the role's ACL names none of them.
func TestFollowGuests(t *testing.T) {
	source, err := named.NewKey("dns", "x", named.KeyTransfer)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := named.NewKeyring(named.KeyTransfer, source, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	guests := []named.GuestKey{{Name: "isp.team.secondary.lockstep.", Algorithm: "hmac-sha256.", Secret: "c2VjcmV0"}}
	with, changed, err := ring.FollowGuests(named.KeyTransfer, source, guests)
	if err != nil || !changed || with.Revision == ring.Revision || len(ring.Guests) > 0 {
		t.Fatalf("changed %v, %v, %+v", changed, err, with)
	}
	clauses, acl, _ := strings.Cut(with.Clauses(named.KeyTransfer), "acl ")
	if !strings.Contains(clauses, `key "isp.team.secondary.lockstep."`) || strings.Contains(acl, "isp") {
		t.Errorf("clauses:\n%s", clauses+acl)
	}
	if names := with.Names(); len(names.Accepted) != 1 {
		t.Errorf("accepted in the role: %v", names.Accepted)
	}
	if _, changed, _ := with.FollowGuests(named.KeyTransfer, source, guests); changed {
		t.Error("the same guests are a change")
	}
	next, err := named.NewKey("dns", "x", named.KeyTransfer)
	if err != nil {
		t.Fatal(err)
	}
	moving, _, err := with.Follow(named.KeyTransfer, next, named.KeyFacts{}, time.Now())
	if err != nil || len(moving.Guests) != 1 {
		t.Fatalf("guests do not outlive a step: %+v, %v", moving, err)
	}
	if _, changed, _ := moving.FollowGuests(named.KeyTransfer, next, nil); changed {
		t.Error("guests hold up the rotation of the ring's own keys")
	}
	if without, changed, _ := with.FollowGuests(named.KeyTransfer, source, nil); !changed || strings.Contains(without.Clauses(named.KeyTransfer), "isp") {
		t.Error("a guest stays")
	}
}

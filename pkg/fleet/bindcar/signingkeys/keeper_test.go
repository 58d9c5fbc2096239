package signingkeys

import (
	"context"
	"os"
	"path/filepath"
	"testing"

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

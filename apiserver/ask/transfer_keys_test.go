package ask

import (
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// TestKeysAreReadInTime: a transfer that begins with a key ends before the servers drop it, however late it was read.
func TestKeysAreReadInTime(t *testing.T) {
	if keyMaxAge+30*time.Second > named.KeyGrace {
		t.Errorf("a key is used for %s and accepted for %s more", keyMaxAge, named.KeyGrace)
	}
}

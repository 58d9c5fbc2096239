package sidecar

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

// TestInitCopiesTheConfiguration: what a pod was made for is copied as soon as it is there, or what there is instead if it does not come.
func TestInitCopiesTheConfiguration(t *testing.T) {
	old, wanted := map[string]string{"named.conf": "old"}, map[string]string{"named.conf": "wanted", "named.conf.options": ""}
	for name, c := range map[string]struct {
		now, later, want map[string]string
		patience         time.Duration
	}{
		"it is there":      {now: wanted, want: wanted, patience: time.Minute},
		"it is on its way": {now: old, later: wanted, want: wanted, patience: time.Minute},
		"it does not come": {now: old, want: old, patience: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			o := &InitOptions{ConfigSourceDir: t.TempDir(), ConfigDir: t.TempDir(), ConfigChecksum: layout.ConfigChecksum(wanted)}
			put(t, o.ConfigSourceDir, c.now)
			if c.later != nil {
				time.AfterFunc(300*time.Millisecond, func() { put(t, o.ConfigSourceDir, c.later) })
			}
			if err := o.copyConfig(t.Context(), c.patience); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(o.ConfigDir, "keys")); err != nil {
				t.Errorf("the keys cannot be mounted: %v", err)
			}
			if got, err := readFiles(o.ConfigDir); err != nil || !maps.Equal(got, c.want) {
				t.Errorf("named has %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// put makes files as the kubelet does: links to what another link leads to, which is replaced.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	version, err := os.MkdirTemp(dir, "..version")
	if err != nil {
		t.Error(err)
		return
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(version, name), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)) // It may be there.
	}
	next := version + ".link"
	if err := os.Symlink(filepath.Base(version), next); err != nil {
		t.Error(err)
	}
	if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
		t.Error(err)
	}
}

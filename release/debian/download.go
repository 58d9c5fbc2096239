package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// Download fetches the packages that are not in the folder yet.
func (r Repository) Download(ctx context.Context, packages []Package) error {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return err
	}
	var missing []string
	for _, p := range packages {
		if p.verifyFile(r.Dir) != nil {
			missing = append(missing, p.Name+"="+p.Version())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := runCommand(ctx, r.Dir, "apt-get", r.options("download", "-qq", missing...)...); err != nil {
		return err
	}
	for _, p := range packages {
		if err := p.verifyFile(r.Dir); err != nil {
			return fmt.Errorf("downloading package %s: %w", p.Name, err)
		}
	}
	return nil
}

// verifyFile returns nil if the folder has the package's file, unharmed.
func (p Package) verifyFile(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, p.File))
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != p.SHA256 {
		return fmt.Errorf("%s has SHA-256 %x, want %s", p.File, sum, p.SHA256)
	}
	return nil
}

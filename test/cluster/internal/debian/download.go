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
func Download(ctx context.Context, dir string, packages []Package) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	args := []string{"-qq", "-o", "APT::Sandbox::User=root", "download"}
	missing := false
	for _, p := range packages {
		if p.verifyFile(dir) != nil {
			args, missing = append(args, p.Name+"="+p.Version()), true
		}
	}
	if !missing {
		return nil
	}
	if _, err := runCommand(ctx, dir, "apt-get", args...); err != nil {
		return err
	}
	for _, p := range packages {
		if err := p.verifyFile(dir); err != nil {
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

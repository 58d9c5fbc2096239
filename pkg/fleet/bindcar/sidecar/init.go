package sidecar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// InitOptions configure the init container of a BIND pod.
type InitOptions struct {
	// RNDCKeyFile is where the key of named's control channel goes; RNDCKeyAlgorithm is its HMAC.
	RNDCKeyFile, RNDCKeyAlgorithm string
	// ZonesDir is made if it does not exist.
	ZonesDir string
	// ConfigSourceDir has the files that are copied to ConfigDir, as soon as ConfigChecksum is their digest: see layout.ConfigChecksum. An
	// empty one has nothing copied.
	ConfigSourceDir, ConfigDir, ConfigChecksum string
}

// NewInitOptions returns the options that hold inside a pod.
func NewInitOptions() *InitOptions {
	return &InitOptions{RNDCKeyFile: layout.ControlKeyFile, RNDCKeyAlgorithm: "hmac-sha256", ZonesDir: layout.ZonesDir, ConfigDir: layout.ConfigDir}
}

// AddFlags registers the options' flags.
func (o *InitOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.RNDCKeyFile, "rndc-key-file", o.RNDCKeyFile, "File to write the key of named's control channel to.")
	fs.StringVar(&o.RNDCKeyAlgorithm, "rndc-key-algorithm", o.RNDCKeyAlgorithm, "HMAC of that key.")
	fs.StringVar(&o.ZonesDir, "zones-dir", o.ZonesDir, "Directory of zone files to make.")
	fs.StringVar(&o.ConfigSourceDir, "config-source-dir", o.ConfigSourceDir, "Directory with the configuration files of named to copy. Empty copies none.")
	fs.StringVar(&o.ConfigDir, "config-dir", o.ConfigDir, "Directory to copy them to.")
	fs.StringVar(&o.ConfigChecksum, "config-checksum", o.ConfigChecksum, "SHA-256 of the files that named is to run with, which may be on their way.")
}

// Validate joins everything that is wrong, naming the flags.
func (o *InitOptions) Validate() error {
	var problems component.Problems
	problems.Check(o.RNDCKeyFile != "", "--rndc-key-file: must be set")
	problems.Check(o.ZonesDir != "", "--zones-dir: must be set")
	_, err := rndc.NewKey(o.RNDCKeyAlgorithm)
	problems.Check(err == nil, "--rndc-key-algorithm: %w", err)
	return errors.Join(problems...)
}

// Run makes the directories and a new random key and copies the configuration, then returns. All containers of a pod start after it, so each
// sees the same key; it changes whenever the pod starts.
func (o *InitOptions) Run(ctx context.Context) error {
	for _, dir := range []string{o.ZonesDir, filepath.Dir(o.RNDCKeyFile)} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("preparing the pod: %w", err)
		}
	}
	key, err := rndc.NewKey(o.RNDCKeyAlgorithm)
	if err != nil {
		return err
	}
	if err := zonefile.WriteFile(o.RNDCKeyFile, []byte(key.Clause()), 0o640); err != nil {
		return fmt.Errorf("writing the rndc key: %w", err)
	}
	if o.ConfigSourceDir == "" {
		return nil
	}
	if err := o.copyConfig(ctx, configPatience); err != nil {
		return fmt.Errorf("copying the configuration: %w", err)
	}
	return nil
}

// configPatience is how long the configuration that a pod was made for may take to reach it. If it has been replaced, so is the pod, unless
// nobody does: then it is better to serve with the next one than not at all.
const configPatience = 20 * time.Second

// copyConfig copies the configuration that the pod was made for.
func (o *InitOptions) copyConfig(ctx context.Context, patience time.Duration) error {
	var files map[string]string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(context.Context) (done bool, err error) {
		files, err = readFiles(o.ConfigSourceDir)
		return layout.ConfigChecksum(files) == o.ConfigChecksum, err
	})
	switch {
	case wait.Interrupted(err) && ctx.Err() == nil:
		klog.FromContext(ctx).Info("named starts with another configuration than its pod was made for", "checksum", layout.ConfigChecksum(files), "wanted", o.ConfigChecksum)
	case err != nil:
		return err
	}
	if err := os.MkdirAll(filepath.Join(o.ConfigDir, filepath.Base(layout.KeyDir)), 0o750); err != nil { // Another volume is mounted there.
		return err
	}
	for name, text := range files {
		if err := zonefile.WriteFile(filepath.Join(o.ConfigDir, name), []byte(text), 0o640); err != nil {
			return err
		}
	}
	return nil
}

// readFiles reads the files of a directory, without those that a volume of Kubernetes has beside them.
func readFiles(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files[e.Name()] = string(text)
	}
	return files, nil
}

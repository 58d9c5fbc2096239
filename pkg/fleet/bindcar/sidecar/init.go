package sidecar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

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
}

// NewInitOptions returns the options that hold inside a pod.
func NewInitOptions() *InitOptions {
	return &InitOptions{RNDCKeyFile: layout.ControlKeyFile, RNDCKeyAlgorithm: "hmac-sha256", ZonesDir: layout.ZonesDir}
}

// AddFlags registers the options' flags.
func (o *InitOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.RNDCKeyFile, "rndc-key-file", o.RNDCKeyFile, "File to write the key of named's control channel to.")
	fs.StringVar(&o.RNDCKeyAlgorithm, "rndc-key-algorithm", o.RNDCKeyAlgorithm, "HMAC of that key.")
	fs.StringVar(&o.ZonesDir, "zones-dir", o.ZonesDir, "Directory of zone files to make.")
}

// Validate joins everything that is wrong, naming the flags.
func (o *InitOptions) Validate() error {
	var problems []error
	if o.RNDCKeyFile == "" {
		problems = append(problems, errors.New("--rndc-key-file: must be set"))
	}
	if o.ZonesDir == "" {
		problems = append(problems, errors.New("--zones-dir: must be set"))
	}
	if _, err := rndc.NewKey(o.RNDCKeyAlgorithm); err != nil {
		problems = append(problems, fmt.Errorf("--rndc-key-algorithm: %w", err))
	}
	return errors.Join(problems...)
}

// Run makes the directories and a new random key, then returns. All containers of a pod start after it, so each sees
// the same key; it changes whenever the pod starts.
func (o *InitOptions) Run(context.Context) error {
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
	return nil
}

package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// settings are the kernel's settings that the cluster changes, and the values
// it needs; where the value is empty, a component sets it and Restore puts
// back what was there.
var settings = map[string]string{
	"net/ipv4/ip_forward":                "1",
	"net/bridge/bridge-nf-call-iptables": "1", // or Services do not work between pods
	"net/ipv4/conf/all/route_localnet":   "",
	"net/ipv4/vs/conntrack":              "",
	"vm/overcommit_memory":               "",
	"vm/panic_on_oom":                    "",
	"kernel/panic":                       "",
	"kernel/panic_on_oops":               "",
	"kernel/keys/root_maxkeys":           "",
	"kernel/keys/root_maxbytes":          "",
}

// ApplySettings saves the present values in file, unless an earlier call has,
// and sets the needed ones.
func ApplySettings(file string) error {
	loadModules()
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := saveSettings(file); err != nil {
			return err
		}
	}
	for name, want := range settings {
		if want == "" {
			continue
		}
		if err := writeSetting(name, want); err != nil {
			return fmt.Errorf("setting %s to %s, which the pods' network needs: %w", name, want, err)
		}
	}
	return nil
}

// RestoreSettings puts the saved values back.
func RestoreSettings(file string) error {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var saved map[string]string
	if err := json.Unmarshal(b, &saved); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	var errs []error
	for name, was := range saved {
		errs = append(errs, writeSetting(name, was))
	}
	return errors.Join(errs...)
}

func saveSettings(file string) error {
	saved := map[string]string{}
	for name := range settings {
		if value, err := readSetting(name); err == nil {
			saved[name] = value
		}
	}
	b, err := json.MarshalIndent(saved, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

func readSetting(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join("/proc/sys", name))
	return strings.TrimSpace(string(b)), err
}

func writeSetting(name, value string) error {
	if now, err := readSetting(name); err == nil && now == value {
		return nil
	}
	return os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644)
}

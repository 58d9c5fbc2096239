package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/progress"
)

// PluginDir is where Debian keeps the CNI plugins.
const PluginDir = "/usr/lib/cni"

// needs maps what the cluster runs from the machine to the Debian package
// that has it.
var needs = map[string]string{
	"containerd":                         "containerd",
	"ctr":                                "containerd",
	"containerd-shim-runc-v2":            "containerd",
	"runc":                               "runc",
	"iptables":                           "iptables",
	"conntrack":                          "conntrack",
	"ip":                                 "iproute2",
	"mount":                              "mount",
	filepath.Join(PluginDir, "bridge"):   "containernetworking-plugins",
	filepath.Join(PluginDir, "portmap"):  "containernetworking-plugins",
	filepath.Join(PluginDir, "loopback"): "containernetworking-plugins",
}

// InstallPackages installs what is missing, by apt.
func InstallPackages(ctx context.Context, p *progress.Printer) error {
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("this machine lacks %v and has no apt-get to install it with; install it by hand", missing)
	}
	return p.Phase(fmt.Sprintf("installing %v", missing), func(*progress.Note) error {
		return aptInstall(ctx, missing)
	})
}

// ErrAPT is the cause of every failure of apt.
var ErrAPT = errors.New("apt failed")

func aptInstall(ctx context.Context, packages []string) error {
	if err := APTUpdate(ctx); err != nil {
		return err
	}
	args := append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300",
		"install", "--no-install-recommends"}, packages...)
	if _, err := run(ctx, "env", args...); err != nil {
		return fmt.Errorf("%w: %w", ErrAPT, err)
	}
	return nil
}

// APTUpdate renews the lists of packages.
func APTUpdate(ctx context.Context) error {
	// Without the mode apt takes a mirror that it cannot reach for a success.
	if _, err := run(ctx, "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "APT::Update::Error-Mode=any", "update"); err != nil {
		return fmt.Errorf("%w: %w", ErrAPT, err)
	}
	return nil
}

func missingPackages() []string {
	seen, missing := map[string]bool{}, []string(nil)
	for file, pkg := range needs {
		if !installed(file) && !seen[pkg] {
			seen[pkg] = true
			missing = append(missing, pkg)
		}
	}
	slices.Sort(missing)
	return missing
}

func installed(file string) bool {
	if filepath.IsAbs(file) {
		_, err := os.Stat(file)
		return err == nil
	}
	_, err := exec.LookPath(file)
	return err == nil
}

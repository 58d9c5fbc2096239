package host

import (
	"context"
	"path/filepath"
)

// PluginDir is where Debian keeps the CNI plugins.
const PluginDir = "/usr/lib/cni"

// InstallPrograms installs what the cluster and the demo run from the machine,
// as far as it is missing. root is the repository's folder.
func InstallPrograms(ctx context.Context, root string) error {
	_, err := runCommand(ctx, filepath.Join(root, "test", "setup", "install"), "demo", "cluster")
	return err
}

package host

import "os/exec"

// loadModules loads what the network and the snapshots need. A kernel that
// has them built in, or no modprobe, is left to show that by working.
func loadModules() {
	for _, name := range []string{"overlay", "br_netfilter", "nf_conntrack"} {
		_ = exec.Command("modprobe", name).Run()
	}
}

package host

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
)

// Bridge is the interface that all pods are connected to. It also carries the
// node's address, so that nothing of the cluster is reachable from elsewhere
// and no change of the machine's own addresses matters.
const Bridge = "lockstep0"

// bridgeMAC is fixed because a bridge without an address of its own takes
// that of a port, and changes it when pods come and go.
const bridgeMAC = "0a:58:0a:f4:00:01"

// Network is what the bridge has and leads to.
type Network struct {
	Node     netip.Prefix // the node's address on the bridge, with the pods' prefix length
	Services netip.Prefix // routed to the bridge, where kube-proxy's rules are
}

// ConnectBridge makes the bridge, or puts right what differs.
func ConnectBridge(ctx context.Context, n Network) error {
	if err := n.checkOverlap(); err != nil {
		return err
	}
	if !HasBridge() {
		if _, err := runCommand(ctx, "ip", "link", "add", Bridge, "type", "bridge"); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"link", "set", Bridge, "address", bridgeMAC},
		{"addr", "replace", n.Node.String(), "dev", Bridge},
		{"link", "set", Bridge, "up"},
		{"route", "replace", n.Services.String(), "dev", Bridge, "src", n.Node.Addr().String()},
	} {
		if _, err := runCommand(ctx, "ip", args...); err != nil {
			return err
		}
	}
	return nil
}

// HasBridge reports whether the bridge exists.
func HasBridge() bool {
	_, err := os.Stat(filepath.Join("/sys/class/net", Bridge))
	return err == nil
}

// RemoveBridge removes the bridge and the host's ends of the pods' links.
func RemoveBridge(ctx context.Context) error {
	if !HasBridge() {
		return nil
	}
	ports, err := filepath.Glob(filepath.Join("/sys/class/net", Bridge, "brif", "*"))
	if err != nil {
		return err
	}
	for _, p := range ports {
		// One whose pod has just gone is on its way out by itself.
		_, _ = runCommand(ctx, "ip", "link", "del", filepath.Base(p))
	}
	_, err = runCommand(ctx, "ip", "link", "del", Bridge)
	return err
}

// checkOverlap refuses to take addresses that the machine already uses.
func (n Network) checkOverlap() error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range interfaces {
		if i.Name == Bridge {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it has just gone
		}
		for _, a := range addrs {
			if used, err := netip.ParsePrefix(a.String()); err == nil && n.overlaps(used) {
				return fmt.Errorf("interface %s has the address %s, inside the networks that the dev cluster uses (%s, %s); "+
					"another Kubernetes may run here: stop it, or use it by setting KUBECONFIG", i.Name, used, n.Node.Masked(), n.Services)
			}
		}
	}
	return nil
}

func (n Network) overlaps(used netip.Prefix) bool {
	return used.Bits() > 0 && (n.Node.Overlaps(used) || n.Services.Overlaps(used))
}

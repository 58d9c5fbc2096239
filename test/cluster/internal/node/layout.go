// Package node describes what the one node of the cluster runs: each component's
// arguments, configuration, certificates and the sign of its health. It
// decides and renders; it starts nothing.
package node

import (
	"net/netip"
	"path/filepath"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/host"
)

// Addresses and names of the cluster.
const (
	Name      = "lockstep"      // of the node
	Address   = "10.244.0.1"    // of the node, on the bridge
	PodCIDR   = "10.244.0.0/24" // of the node's pods
	Services  = "10.96.0.0/16"  // ClusterIPs
	APIServer = "10.96.0.1"     // the Service kubernetes in namespace default
	// LoadBalancers are addresses that a Service's status may have: pods send what is for them to the node, where kube-proxy takes it.
	LoadBalancers = "198.51.100.0/24"
	DNSDomain     = "cluster.local" // of the Services' certificates; nothing resolves it
	Server        = "https://" + Address + ":6443"
)

// Network returns what the host's bridge has to provide.
func Network() host.Network {
	pods := netip.MustParsePrefix(PodCIDR)
	return host.Network{
		Node:     netip.PrefixFrom(netip.MustParseAddr(Address), pods.Bits()),
		Services: netip.MustParsePrefix(Services),
	}
}

// Layout is where everything is kept. Folders are absolute.
type Layout struct {
	State string // what a restart of the machine keeps
	Run   string // what it does not
	Bin   string // the executables of Kubernetes
}

// Default returns the layout of the one dev cluster that a machine can have.
func Default(bin string) Layout {
	return Layout{State: "/var/lib/lockstep-cluster", Run: "/run/lockstep-cluster", Bin: bin}
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (l Layout) Kubeconfig() string { return filepath.Join(l.State, "kubeconfig") }

// Socket returns the path of containerd's socket.
func (l Layout) Socket() string { return filepath.Join(l.Run, "containerd.sock") }

// Pids returns the folder of the pid files.
func (l Layout) Pids() string { return filepath.Join(l.State, "pids") }

// Log returns the file that a component writes to.
func (l Layout) Log(component string) string { return filepath.Join(l.State, "log", component+".log") }

// PKI returns the path of a certificate's file.
func (l Layout) PKI(file string) string { return filepath.Join(l.State, "pki", file) }

// Config returns the path of a component's configuration file.
func (l Layout) Config(file string) string { return filepath.Join(l.State, "config", file) }

// Settings returns the file with the kernel's settings as they were.
func (l Layout) Settings() string { return filepath.Join(l.State, "sysctl.json") }

// Folders returns all that have to exist before a component starts.
func (l Layout) Folders() []string {
	return []string{
		l.Run, l.State, l.Pids(), l.PKI(""), l.Config("cni"), filepath.Dir(l.Log("")),
		filepath.Join(l.State, "etcd"), filepath.Join(l.State, "kubelet"), filepath.Join(l.State, "pods"),
	}
}

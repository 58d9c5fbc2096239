// Package layout says where things are in a BIND pod: ports, folders and files, for those who describe the pod, run in it, and connect to
// it. It imports the standard library alone: the sidecar is built without Kubernetes.
package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Ports inside a pod. DNS, the sidecar and its health are reachable from outside, the others only on loopback.
const (
	// ControlPort is named's control channel (rndc).
	ControlPort = 9953
	// DNSPort is where named answers, as the Service and the probes expect it.
	DNSPort = 5353
	// StatisticsPort is named's statistics channel (HTTP, JSON).
	StatisticsPort = 8053
	// NoticePort is where the sidecar awaits named's NOTIFY, UDP and TCP.
	NoticePort = 9954
	// HealthPort is where the kubelet probes the sidecar (HTTP); nothing else is served there.
	HealthPort = 9955
	// SidecarPort is the one that the sidecar serves its API on (HTTPS).
	SidecarPort = 8080
	// ServiceBindcarPort is the port of the sidecar's API (HTTPS) on an instance's Service.
	ServiceBindcarPort = 80
)

// Where things are inside a pod's containers.
const (
	// ConfigDir holds the configuration that the pod was made for.
	ConfigDir = "/etc/bind"
	// ConfigSourceDir is where the init container finds these files, as their ConfigMaps are now.
	ConfigSourceDir = "/etc/lockstep/config"
	// ConfigFile is the one named is started with.
	ConfigFile = ConfigDir + "/named.conf"
	// KeyDir holds a directory for each TSIG key, named after its role, with the entries of its Secret.
	KeyDir = ConfigDir + "/keys"
	// KeyNamesDir is where the sidecar finds the names of the keys, in a directory for each role as in KeyDir.
	KeyNamesDir = "/etc/lockstep/keys"
	// CacheDir is named's working directory.
	CacheDir = "/var/cache/bind"
	// ZonesDir holds zone files, their journals, and named's record of the zones added at run time.
	ZonesDir = CacheDir + "/zones"
	// RunDir holds the control channel's key and the pid file.
	RunDir = "/run/named"
	// ControlKeyFile is the key of the control channel. It is made in the pod and never leaves it.
	ControlKeyFile = RunDir + "/rndc.key"
	// CertificateDir holds the sidecar's serving certificate and the authorities that verify its callers, for the sidecar alone.
	CertificateDir = "/etc/bindcar/tls"
)

// ConfigChecksum is the digest of configuration files, by name.
func ConfigChecksum(files map[string]string) string {
	digest := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(digest, "%s\n%s\n", name, files[name])
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// UserID is the user and group that every container of a pod runs as, the one of Debian's bind9 package.
const UserID = 101

// KeyNamesEntry is the entry of a key ring's Secret that the sidecar has in KeyNamesDir: KeyNames in JSON, without a secret.
const KeyNamesEntry = "names.json"

// KeyNames is what may be known of a ring without its secrets.
type KeyNames struct {
	// Revision is the name of the key that identifies this version of the ring.
	Revision string `json:"revision"`
	// Active is the key to sign with; Accepted are all keys of the ring, by their names on the wire.
	Active   string   `json:"active"`
	Accepted []string `json:"accepted"`
}

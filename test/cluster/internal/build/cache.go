// Package build compiles Kubernetes from its Go modules into a cache folder
// that is named for what was compiled, so it happens once for each version.
package build

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// executable is the one file that all components are links to.
const executable = "kubernetes"

// Components are the names that the executable answers to.
var Components = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet",
}

// Cache is the place of the binaries for one version.
type Cache struct {
	// Version is the Kubernetes release, such as v1.37.1.
	Version string
	// Bin is the folder of the components' executables.
	Bin string

	root   string
	module string // folder of the module with the sources
	flags  string
}

// Root returns the folder of all versions.
func (c *Cache) Root() string { return c.root }

// Downloads returns a folder for what is fetched once and used again.
func (c *Cache) Downloads() string { return filepath.Join(c.root, "downloads") }

// Open finds the cache that belongs to the sources in the module's folder. It
// builds nothing.
func Open(module string) (*Cache, error) {
	sources, err := filepath.Glob(filepath.Join(module, "kubernetes", "*.go"))
	if err != nil {
		return nil, err
	}
	gomod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("finding the sources of the cluster: %w", err)
	}
	v, err := kubernetesVersion(gomod)
	if err != nil {
		return nil, err
	}
	key, err := hashFiles(v.ldflags()+runtime.GOARCH, append(sources, filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum")))
	if err != nil {
		return nil, err
	}
	root, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the cache folder: %w; set XDG_CACHE_HOME", err)
	}
	root = filepath.Join(root, "lockstep", "cluster")
	bin := filepath.Join(root, v.full+"-"+key[:12], "bin")
	return &Cache{Version: v.full, Bin: bin, root: root, module: module, flags: v.ldflags()}, nil
}

// Built reports whether the binaries are there.
func (c *Cache) Built() bool {
	for _, name := range Components {
		if _, err := os.Stat(c.Path(name)); err != nil {
			return false
		}
	}
	return true
}

// Path returns the path of a component's executable.
func (c *Cache) Path(component string) string { return filepath.Join(c.Bin, component) }

func hashFiles(seed string, files []string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, seed)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %x\n", filepath.Base(f), sha256.Sum256(b))
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

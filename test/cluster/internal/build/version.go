package build

import (
	"fmt"
	"regexp"
)

var required = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)`)

// kubernetesRelease is a Kubernetes release as go.mod names it.
type kubernetesRelease struct{ full, major, minor string }

// kubernetesVersion finds in a go.mod which Kubernetes it builds.
func kubernetesVersion(gomod []byte) (kubernetesRelease, error) {
	m := required.FindSubmatch(gomod)
	if m == nil {
		return kubernetesRelease{}, fmt.Errorf("go.mod of the cluster requires no k8s.io/kubernetes, so there is nothing to build")
	}
	return kubernetesRelease{full: string(m[1]), major: string(m[2]), minor: string(m[3])}, nil
}

// ldflags give the binaries the version that a release has. Without it
// clients cannot parse what the API server says its version is.
func (v kubernetesRelease) ldflags() string {
	const component, client = "k8s.io/component-base/version", "k8s.io/client-go/pkg/version"
	flags := "-s -w"
	for _, pkg := range []string{component, client} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
			pkg, v.full, v.major, v.minor)
	}
	return flags
}

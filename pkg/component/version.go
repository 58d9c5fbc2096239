package component

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strconv"

	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"

	lockstep "github.com/lockstep-dns/lockstep/pkg/version"
)

// VersionPath is where each component says which version it is.
const VersionPath = "/version"

// Version returns the version of Lockstep in the form in which every component of Kubernetes serves its own. A build that is no release
// has no major and minor number.
func Version() *apiversion.Info {
	info := &apiversion.Info{
		GitVersion: lockstep.Module(), GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if parsed, err := version.ParseSemantic(info.GitVersion); err == nil {
		info.Major, info.Minor = strconv.FormatUint(uint64(parsed.Major()), 10), strconv.FormatUint(uint64(parsed.Minor()), 10)
	}
	return info
}

// ServeVersion answers with the version.
func ServeVersion(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Version()) // The client has gone.
}

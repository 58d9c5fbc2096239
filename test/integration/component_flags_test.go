package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// Each component takes the flags of k8s.io/component-base for its log, says in it which caches follow the Kubernetes API, and serves its version.
func TestComponentFlags(t *testing.T) {
	kube.Disruptive(t, nil)
	ports := map[string]string{"controller": "8080", "fleet": "8080", "webhook": "8080", "apiserver": "8443"}
	for component := range ports {
		addArguments(t, component, "--logging-format=json", "--v=6")
	}
	versions := map[string]bool{}
	for component, port := range ports {
		waitRolledOut(t, component)
		pod := strings.Fields(kube.Kubectl(t, "", "-n", system, "get", "pods", "-l", "app.kubernetes.io/component="+component,
			"--sort-by=.metadata.creationTimestamp", "-o", "name"))
		newest := strings.TrimPrefix(pod[len(pod)-1], "pod/")
		kube.Eventually(t, kube.Settle, func(context.Context) error {
			return logsInJSON(kube.Kubectl(t, "", "-n", system, "logs", newest))
		})
		scheme := ""
		if component == "apiserver" {
			scheme = "https:"
		}
		var version apiversion.Info
		answer := kube.Kubectl(t, "", "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s%s:%s/proxy/version", system, scheme, newest, port))
		if err := json.Unmarshal([]byte(answer), &version); err != nil || version.GitVersion == "" || version.GoVersion == "" {
			t.Errorf("%s answers /version with %s, %v", component, answer, err)
		}
		versions[version.GitVersion] = true
	}
	if len(versions) != 1 {
		t.Errorf("the components are of different versions: %v", versions)
	}
}

// logsInJSON is nil if all lines of a log are JSON objects, one of them is of a verbosity that is off by default, and one says that a cache
// follows the Kubernetes API.
func logsInJSON(log string) error {
	var verbose, follows bool
	for line := range strings.Lines(log) {
		var entry struct {
			Message string `json:"msg"`
			V       int
			Type    string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			return fmt.Errorf("a line is no JSON: %w: %s", err, line)
		}
		verbose = verbose || entry.V >= 5
		follows = follows || entry.Message == "cache follows the Kubernetes API" && entry.Type != ""
	}
	if !verbose || !follows {
		return fmt.Errorf("the log has a line of a higher verbosity: %t, a cache that follows: %t", verbose, follows)
	}
	return nil
}

// addArguments starts a component anew with more arguments. At the end of the test it has those of before.
func addArguments(t testing.TB, component string, arguments ...string) {
	t.Helper()
	deployment := "deployment/lockstep-" + component
	var patch []string
	for _, a := range arguments {
		patch = append(patch, fmt.Sprintf(`{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":%q}`, a))
	}
	t.Cleanup(func() {
		kube.Kubectl(t, "", "-n", system, "rollout", "undo", deployment)
		waitRolledOut(t, component)
	})
	kube.Kubectl(t, "", "-n", system, "patch", deployment, "--type=json", "-p", "["+strings.Join(patch, ",")+"]")
}

func waitRolledOut(t testing.TB, component string) {
	t.Helper()
	kube.Kubectl(t, "", "-n", system, "rollout", "status", "deployment/lockstep-"+component, "--timeout=120s")
}

package integration

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// moduleFolder returns the folder of a Go module, in the version that a module for the tests uses, for the definitions of kinds in it.
func moduleFolder(t testing.TB, user, module string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	command.Dir = filepath.Join(kube.Root(t), user)
	text, err := command.Output()
	var downloaded struct{ Dir string }
	if err != nil || json.Unmarshal(text, &downloaded) != nil {
		t.Fatalf("downloading %s: %v\n%s", module, err, text)
	}
	return downloaded.Dir
}

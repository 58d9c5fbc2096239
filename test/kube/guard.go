package kube

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The clients of isolated tests act as this user, who may write what the names in its attribute ownsKey are part of, and nothing else.
const (
	isolatedUser = "isolated-test"
	ownsKey      = "owns"
)

// guard is the policy that refuses everything else.
//
//go:embed guard.yaml
var guard string

// keyOf returns what the names of a test's namespaces contain, and those of its cluster-scoped objects.
func keyOf(test string) string {
	test, _, _ = strings.Cut(test, "/")
	hash := fnv.New32a()
	hash.Write([]byte(test))
	return fmt.Sprintf("%06x", hash.Sum32()&0xffffff)
}

var kubeconfigs struct {
	sync.Mutex
	paths map[string]string
}

// Kubeconfig returns the path of a kubeconfig with the rights of Config, for a program that a test starts with arguments. A user whom --as
// names among them has the rights that the test has given.
func Kubeconfig(t testing.TB, args ...string) string {
	t.Helper()
	names := owned(t)
	if names == nil || slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--as") }) {
		return os.Getenv("KUBECONFIG")
	}
	kubeconfigs.Lock()
	defer kubeconfigs.Unlock()
	owner := strings.Join(names, " ")
	if path := kubeconfigs.paths[owner]; path != "" {
		return path
	}
	config, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		impersonate(user, names)
	}
	dir, err := os.MkdirTemp("", "kubeconfig-") // Subtests and cleanups use it, too.
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	if kubeconfigs.paths == nil {
		kubeconfigs.paths = map[string]string{}
	}
	kubeconfigs.paths[owner] = path
	return path
}

func impersonate(user *clientcmdapi.AuthInfo, names []string) {
	user.Impersonate, user.ImpersonateGroups = isolatedUser, []string{"system:masters"}
	user.ImpersonateUserExtra = map[string][]string{ownsKey: names}
}

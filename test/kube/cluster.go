// Package kube is what the tests on a real cluster share: the cluster with Lockstep installed, a namespace for each test, and
// kubectl as a user types it. It also decides which tests run at the same time: see Isolated and Disruptive.
package kube

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	endpointv1alpha1 "github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1alpha1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// Root returns the root of the repository, found upwards from the package under test.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "Makefile")); err == nil {
			return dir
		}
	}
	t.Fatal("no directory above the test has a Makefile")
	return ""
}

var useKlog sync.Once

// Config returns the client configuration of the cluster that KUBECONFIG names, with the rights of cluster-admin. That of an isolated
// test is refused what Isolated says.
func Config(t testing.TB) *rest.Config {
	t.Helper()
	useKlog.Do(func() { log.SetLogger(klog.Background()) })
	if os.Getenv("KUBECONFIG") == "" {
		t.Fatal("KUBECONFIG names no cluster: call make test-cluster RUN=" + t.Name())
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatalf("connecting to the cluster of KUBECONFIG=%s: %v", os.Getenv("KUBECONFIG"), err)
	}
	config.QPS = -1
	if names := owned(t); names != nil {
		config.Impersonate = rest.ImpersonationConfig{UserName: isolatedUser, Groups: []string{"system:masters"}, Extra: map[string][]string{ownsKey: names}}
	}
	return config
}

// Client returns a typed client with the rights of Config, for the kinds of Kubernetes and of Lockstep.
func Client(t testing.TB) client.Client {
	t.Helper()
	return ClientAs(t, Config(t))
}

// ClientAs returns a typed client with the rights of config.
func ClientAs(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, v1beta1.AddToScheme, endpointv1alpha1.AddToScheme, syncv1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

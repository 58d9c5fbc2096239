// Package kube is what the tests on a real cluster share: the cluster with Lockstep installed, a namespace for each test, and
// kubectl as a user types it. It also decides which tests run at the same time: see Isolated and Disruptive.
package kube

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

var clusterStart struct {
	once sync.Once
	err  error
}

// Config returns the client configuration of the cluster that KUBECONFIG names. Without KUBECONFIG it starts the dev cluster
// and loads the images.
func Config(t testing.TB) *rest.Config {
	t.Helper()
	requireDeclared(t)
	root := Root(t)
	clusterStart.once.Do(func() {
		log.SetLogger(klog.Background())
		if os.Getenv("KUBECONFIG") == "" {
			t.Log("KUBECONFIG is not set: starting the dev cluster with make cluster-up images")
			clusterStart.err = startCluster(root)
		}
	})
	if clusterStart.err != nil {
		t.Fatal(clusterStart.err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatalf("connecting to the cluster of KUBECONFIG=%s: %v", os.Getenv("KUBECONFIG"), err)
	}
	config.QPS = -1
	return config
}

// startCluster starts the dev cluster and sets KUBECONFIG and PATH for this process and its children.
func startCluster(root string) error {
	if out, err := runCommand(root, "", "make", "cluster-up", "images"); err != nil {
		return fmt.Errorf("starting the dev cluster: %w\n%s", err, out)
	}
	kubeconfig, err := runCommand(root, "", "make", "-s", "cluster-kubeconfig")
	if err != nil {
		return fmt.Errorf("make cluster-kubeconfig: %w\n%s", err, kubeconfig)
	}
	kubectl, err := runCommand(root, "", "go", "run", "-C", "test/cluster", ".", "bin-dir")
	if err != nil {
		return fmt.Errorf("finding the cluster's kubectl: %w\n%s", err, kubectl)
	}
	return errors.Join(
		os.Setenv("KUBECONFIG", strings.TrimSpace(kubeconfig)),
		os.Setenv("PATH", strings.TrimSpace(kubectl)+":"+os.Getenv("PATH")))
}

// Client returns a typed client, with the rights of cluster-admin, for the kinds of Kubernetes and of Lockstep.
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

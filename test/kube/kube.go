// Package kube is what the tests on a real cluster share: the cluster itself, an installed Lockstep, a namespace for each
// test, and kubectl as a user would type it. It starts the dev cluster when KUBECONFIG names none.
package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Root is the repository's top folder, found from the package under test.
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
	t.Fatal("no Makefile in any folder above the test")
	return ""
}

var start struct {
	once sync.Once
	err  error
}

// Config connects to the cluster that KUBECONFIG names. Without one it starts the dev cluster and loads the images.
func Config(t testing.TB) *rest.Config {
	t.Helper()
	root := Root(t)
	start.once.Do(func() {
		log.SetLogger(klog.Background())
		if os.Getenv("KUBECONFIG") == "" {
			t.Log("KUBECONFIG is not set: starting the dev cluster with make cluster-up images")
			start.err = startCluster(root)
		}
	})
	if start.err != nil {
		t.Fatal(start.err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatalf("connecting to the cluster of KUBECONFIG=%s: %v", os.Getenv("KUBECONFIG"), err)
	}
	config.QPS = -1
	return config
}

// startCluster starts the dev cluster, and makes this process and those that it starts use it.
func startCluster(root string) error {
	if out, err := run(root, nil, "make", "cluster-up", "images"); err != nil {
		return fmt.Errorf("starting the dev cluster: %w\n%s", err, out)
	}
	kubeconfig, err := run(root, nil, "make", "-s", "cluster-kubeconfig")
	if err != nil {
		return fmt.Errorf("make cluster-kubeconfig: %w\n%s", err, kubeconfig)
	}
	kubectl, err := run(root, nil, "go", "run", "-C", "test/cluster", ".", "bin-dir")
	if err != nil {
		return fmt.Errorf("finding the cluster's kubectl: %w\n%s", err, kubectl)
	}
	return errors.Join(
		os.Setenv("KUBECONFIG", strings.TrimSpace(kubeconfig)),
		os.Setenv("PATH", strings.TrimSpace(kubectl)+":"+os.Getenv("PATH")))
}

// Client is a typed client, as cluster-admin, for the kinds of Kubernetes and ours.
func Client(t testing.TB) client.Client {
	t.Helper()
	return ClientAs(t, Config(t))
}

// ClientAs is a typed client with the rights of config.
func ClientAs(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme, endpointv1alpha1.AddToScheme, syncv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Namespace makes a namespace for one test, which enforces the restricted Pod Security Standard, and takes it away again.
// The test fails when the namespace does not go.
func Namespace(t testing.TB, name string) string {
	t.Helper()
	c := Client(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: name + "-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(describe(t, ns.Name))
		}
		Kubectl(t, "", "delete", "namespace", ns.Name, "--ignore-not-found", "--timeout=120s")
	})
	return ns.Name
}

// describe collects what one wants to see of a namespace in which a test failed.
func describe(t testing.TB, namespace string) string {
	var b strings.Builder
	for _, args := range [][]string{
		{"get", "dns,pods,statefulsets,services", "-o", "wide"},
		{"get", "syncstatus", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
	} {
		out, _ := run(Root(t), nil, "kubectl", append([]string{"--namespace", namespace}, args...)...)
		b.WriteString(out + "\n")
	}
	out, _ := run(Root(t), nil, "kubectl", "--namespace", "lockstep-system", "logs", "deployment/lockstep-controller", "--tail=40")
	return b.String() + out
}

var install struct {
	once sync.Once
	err  error
}

// Install makes sure that Lockstep runs in the cluster, once for all tests of a process.
func Install(t testing.TB) {
	t.Helper()
	install.once.Do(func() { install.err = runInstall(t) })
	if install.err != nil {
		t.Fatal(install.err)
	}
}

// Reinstall installs Lockstep after a test has taken it away.
func Reinstall(t testing.TB) {
	t.Helper()
	if err := runInstall(t); err != nil {
		t.Fatal(err)
	}
}

// InstallOverlay installs Lockstep from another overlay than usual, which sets the namespace.
func InstallOverlay(t testing.TB, overlay, namespace string) {
	t.Helper()
	if err := runInstall(t, "OVERLAY="+overlay, "NAMESPACE="+namespace); err != nil {
		t.Fatal(err)
	}
}

func runInstall(t testing.TB, env ...string) error {
	t.Helper()
	Config(t)
	if out, err := run(Root(t), nil, "env", append(env, "test/install")...); err != nil {
		return fmt.Errorf("installing Lockstep: %w\n%s", err, out)
	}
	return nil
}

// Kubectl runs kubectl from the repository's top folder with input on its standard input; it fails the test when
// kubectl fails.
func Kubectl(t testing.TB, input string, args ...string) string {
	t.Helper()
	out, err := TryKubectl(t, input, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TryKubectl is Kubectl for a command that may fail. Both outputs are returned together.
func TryKubectl(t testing.TB, input string, args ...string) (string, error) {
	t.Helper()
	Config(t)
	return run(Root(t), strings.NewReader(input), "kubectl", args...)
}

func run(dir string, input *strings.Reader, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if input != nil {
		cmd.Stdin = input
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// Eventually repeats check until it returns nil, and fails the test with its last error when it never does.
func Eventually(t testing.TB, limit time.Duration, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %v", limit, last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

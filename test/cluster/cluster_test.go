package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/cluster"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/process"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/progress"
)

// warmLimit is what a start may take once everything is built.
const warmLimit = 60 * time.Second

// TestCluster starts the cluster, uses it, breaks it, repairs it and stops it.
// Since a machine can have only one, it ends one that runs, and so is run on
// request alone.
func TestCluster(t *testing.T) {
	if os.Getenv("CLUSTER_TEST") == "" {
		t.Skip("set CLUSTER_TEST=1 to start and stop a cluster for real; it ends the one that runs")
	}
	s := newSuite(t)
	s.do("down", s.cluster.Down)
	before := traces(t)
	defer s.do("down", s.cluster.Down)

	s.do("up", s.cluster.Up)
	s.deploy()
	t.Run("a pod reads what RBAC allows", s.testRBAC)
	t.Run("the machine reaches a Service", s.testServiceFromHost)
	t.Run("a pod reaches a Service", s.testServiceFromPod)
	t.Run("port-forward", s.testPortForward)
	t.Run("a second up changes nothing", s.testSecondUp)
	t.Run("up repairs what has died", s.testRepair)
	s.do("down", s.cluster.Down)
	if got := traces(t); got != before {
		t.Errorf("down left something; before:\n%s\nafter:\n%s", before, got)
	}
}

type suite struct {
	*testing.T
	cluster *cluster.Cluster
}

func newSuite(t *testing.T) *suite {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := addSystemPath(); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.New(root, progress.New(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	return &suite{T: t, cluster: c}
}

func (s *suite) do(what string, f func(context.Context) error) {
	s.Helper()
	if err := f(context.Background()); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

func (s *suite) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(s.cluster.Cache.Path("kubectl"), append([]string{"-n", "probe"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Layout.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (s *suite) deploy() {
	c := s.cluster
	s.do("building the probe", func(ctx context.Context) error { return c.Images.Build(ctx, c.Out, c.Images.Probe()) })
	s.do("loading the probe", func(ctx context.Context) error {
		return c.Images.Load(ctx, c.Out, c.Layout.Socket(), c.Images.Probe())
	})
	s.kubectl(s.T, "apply", "-f", "testdata/probe.yaml")
	s.kubectl(s.T, "rollout", "status", "statefulset/probe", "--timeout=90s")
}

func (s *suite) testRBAC(t *testing.T) {
	log := s.kubectl(t, "logs", "probe-0")
	for _, want := range []string{"configmaps: 200", "secrets: 403"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log of a pod has no %q:\n%s", want, log)
		}
	}
}

const serviceURL = "http://10.96.200.1/"

func (s *suite) testServiceFromHost(t *testing.T) { pong(t, serviceURL) }

// Half of the connections lead a pod to itself, so several are made.
func (s *suite) testServiceFromPod(t *testing.T) {
	for range 8 {
		if out := s.kubectl(t, "exec", "probe-0", "--", "/probe", "get", serviceURL); !strings.HasPrefix(out, "pong") {
			t.Fatalf("the Service answered %q", out)
		}
	}
}

func (s *suite) testPortForward(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cmd := exec.CommandContext(ctx, s.cluster.Cache.Path("kubectl"), "-n", "probe", "port-forward", "pod/probe-1", ":8080")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Layout.Kubeconfig())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n') // Forwarding from 127.0.0.1:34567 -> 8080
	if err != nil {
		t.Fatal(err)
	}
	pong(t, "http://"+strings.Fields(line)[2])
}

func (s *suite) testSecondUp(t *testing.T) {
	before, begin := s.pids(t), time.Now()
	s.do("up", s.cluster.Up)
	if after := s.pids(t); after != before {
		t.Errorf("processes were started again: before\n%s\nafter\n%s", before, after)
	}
	if took := time.Since(begin); took > warmLimit {
		t.Errorf("it took %s, more than %s", took, warmLimit)
	}
}

func (s *suite) testRepair(t *testing.T) {
	for _, name := range []string{"kube-apiserver", "kubelet", "containerd"} {
		r, ok, err := process.Load(s.cluster.Layout.Pids(), name)
		if err != nil || !ok {
			t.Fatal(name, ok, err)
		}
		if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	if err := s.cluster.Status(context.Background(), io.Discard); err == nil {
		t.Error("the status of a broken cluster is good")
	}
	s.do("up", s.cluster.Up)
	if err := s.cluster.Status(context.Background(), io.Discard); err != nil {
		t.Error(err)
	}
	pong(t, serviceURL)
	restarts := s.kubectl(t, "get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	if restarts != "0 0" {
		t.Errorf("pods were restarted: %s", restarts)
	}
}

func (s *suite) pids(t *testing.T) string {
	names, err := process.Names(s.cluster.Layout.Pids())
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(s.cluster.Layout.Pids(), name+".pid"))
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(name + " " + string(b))
	}
	return all.String()
}

// pong expects an answer of the probe within a few seconds: rules for a Service
// follow its pods with a delay.
func pong(t *testing.T, url string) {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	var body string
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if body, err = fetch(client, url); err == nil && strings.HasPrefix(body, "pong") {
			return
		}
	}
	t.Fatalf("%s answered %q, %v", url, body, err)
}

func fetch(client http.Client, url string) (string, error) {
	res, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

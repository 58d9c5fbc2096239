package integration

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// pluginTest is a fixture with a kubectl that finds the plugin kubectl-lockstep.
type pluginTest struct {
	*fixture
	// path is the directory of the plugin.
	path string
}

// pluginFolder returns the folder of kubectl-lockstep.
func pluginFolder(t *testing.T) string {
	t.Helper()
	return filepath.Dir(kube.Program(t, "bin/kubectl-lockstep"))
}

// command returns the command that runs the plugin by way of kubectl.
func (f *pluginTest) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "kubectl", append([]string{"lockstep", "-n", f.namespace}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kube.Kubeconfig(f, args...), "PATH="+f.path+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// runPlugin runs the plugin and returns what it prints, and its exit code.
func (f *pluginTest) runPlugin(args ...string) (stdout, stderr string, code int) {
	f.Helper()
	var out, errOut bytes.Buffer
	cmd := f.command(f.Context(), args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		f.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// expectOutput runs the plugin and compares its exit code, and its output with a pattern.
func (f *pluginTest) expectOutput(code int, pattern string, args ...string) string {
	f.Helper()
	stdout, stderr, got := f.runPlugin(args...)
	f.Logf("$ kubectl lockstep %s\n%s%s", strings.Join(args, " "), stdout, stderr)
	if got != code || !regexp.MustCompile(pattern).MatchString(stdout+stderr) {
		f.Errorf("kubectl lockstep %s: exit code %d, want %d and %s", strings.Join(args, " "), got, code, pattern)
	}
	return stdout
}

// The plugin shows a zone in sync, one that is changed behind the controller's back, and how that is put right.
func TestPlugin(t *testing.T) {
	kube.Isolated(t)
	f := &pluginTest{newFixture(t, "plugin.example", 1, 1), pluginFolder(t)}
	www := f.aRecord("www", "www", "192.0.2.1")
	f.create(www)
	// Before the zone is paused: what a controller that was killed has not written by then, the next one cannot know.
	f.waitReady(www)
	// This test does not ask before the record is served. If another one has, by a list of all namespaces, the answer of that time is
	// reported as one that caches may hold.
	f.waitServed("www.plugin.example", "A", "192.0.2.1")
	f.expectOutput(0, `arecord\.www +plugin\.example +InSync +2/2( +resolvers may have the old data cached for \S+)?\n1 of 1 in sync`, "status", "arecord/www", "--wait")
	f.expectOutput(0, `^\d+ of \d+ in sync\n$`, "status", "--wait")
	f.expectOutput(0, `^$`, "diff")
	f.expectOutput(0, `(?s)^NAME +STATE .*
Bind9Cluster/dns +InSync +2/2
├─ Bind9Instance/dns-primary-0 +InSync +1/1
│  └─ Pod/dns-primary-0-0 +InSync +Primary +BIND 9\.\S+, 1 zone
└─ Bind9Instance/dns-secondary-0 +InSync +1/1
   └─ Pod/dns-secondary-0-0 +InSync +Secondary +BIND 9\.\S+, 1 zone
DNSZone/main +InSync +2/2 +plugin\.example, \d RRsets
├─ Pod/dns-primary-0-0 +InSync +Primary +\d+ +0
├─ Pod/dns-secondary-0-0 +InSync +Secondary +\d+ +0
└─ ARecord/www +InSync +2/2.*
   ├─ Pod/dns-primary-0-0 +InSync +Primary +\d+ +0
   └─ Pod/dns-secondary-0-0 +InSync +Secondary +\d+ +0
$`, "tree")

	f.pauseZone()
	f.updateByHand("dns-primary-0-0", addRecords("www.plugin.example. 3600 A 203.0.113.9"))
	f.waitServed("www.plugin.example", "A", "192.0.2.1", "203.0.113.9")
	hunk := `@@ www\.plugin\.example\. A @@
 www\.plugin\.example\. 3600 IN A 192\.0\.2\.1
-www\.plugin\.example\. 3600 IN A 203\.0\.113\.9
`
	differs := `^--- dns-primary-0-0 \(Primary, Divergent, serial \d+\)
\+\+\+ ARecord \S+/www \(generation 1\)
` + hunk + `--- dns-secondary-0-0 \(Secondary, Divergent, serial \d+\)
\+\+\+ ARecord \S+/www \(generation 1\)
` + hunk + `$`
	f.expectOutput(1, differs, "diff", "arecord/www")
	f.expectOutput(1, differs, "diff")
	f.expectOutput(1, strings.ReplaceAll(differs, `ARecord \S+/www`, `DNSZone \S+/main`), "diff", "zone", "main")
	f.expectOutput(1, `arecord\.www +plugin\.example +OutOfSync +0/2 +.*Divergent: dns-primary-0-0, dns-secondary-0-0.*\n`, "status")
	f.expectOutput(1, `^$`, "status", "-q", "--wait", "--timeout=1s", "arecord/www")
	f.expectOutput(0, `DNSZone/main +OutOfSync +0/2 +plugin\.example, 1 of \d RRsets not in sync\n`, "tree", "--out-of-step")
	f.expectOutput(0, "\x1b\\[31mOutOfSync\x1b\\[0m", "tree", "--out-of-step", "--color=always")

	next := f.watchTree(t)
	next("└─ ARecord/www OutOfSync 0/2")
	f.annotateZone(v1beta1.PausedAnnotation, "")
	next("arecord.www InSync 2/2")
	f.expectOutput(0, `^1 of 1 in sync\n$`, "status", "-l", "zone=main", "--color=never")

	t.Run("trouble", func(t *testing.T) {
		f := &pluginTest{&fixture{T: t, namespace: f.namespace, client: f.client}, f.path}
		stray := f.aRecord("stray", "stray", "192.0.2.1")
		stray.Labels = nil
		f.create(stray)
		f.expectOutput(2, `not compared: arecord\.stray: NotSelected: `, "diff")
		f.expectOutput(1, `arecord\.stray +Failed +NotSelected: `, "status", "arecord.stray")
		f.expectOutput(2, `^error: there is no ARecord nowhere in namespace `, "tree", "arecord/nowhere")
		f.expectOutput(2, `has no data of its own`, "diff", "bind9cluster/dns")
		f.expectOutput(2, `^error: .*forbidden: User "nobody" cannot list.*the role view`, "tree", "--as", "nobody")
		f.expectOutput(2, `^error: .*forbidden`, "tree", "-A", "--watch", "--as", "nobody")
		f.expectOutput(2, `^error: .*context "elsewhere" does not exist`, "status", "--context=elsewhere")
		empty := &pluginTest{&fixture{T: t, namespace: kube.Namespace(t, "it")}, f.path}
		empty.expectOutput(2, `Nothing that has a SyncStatus was found in namespace `+empty.namespace, "status")
		empty.expectOutput(0, `Nothing that has a SyncStatus`, "tree")
	})
}

// watchTree starts to watch the tree. What it returns waits until a line begins with some words, whatever is between them.
func (f *pluginTest) watchTree(t *testing.T) func(words string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := f.command(ctx, "tree", "dnszone/main", "--watch")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- strings.Join(strings.Fields(scanner.Text()), " ")
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	t.Cleanup(func() {
		cancel()
		for range lines { // until it has ended
		}
		if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted, the watch ends with %v", err)
		}
	})
	return func(words string) {
		t.Helper()
		for timeout := time.After(kube.Settle.Duration()); ; {
			select {
			case line, ok := <-lines:
				if !ok {
					t.Fatalf("the watch ended before %q", words)
				}
				t.Log(line)
				if strings.Contains(line, words) {
					return
				}
			case <-timeout:
				t.Fatalf("never saw %q", words)
			}
		}
	}
}

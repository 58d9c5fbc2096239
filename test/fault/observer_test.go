package fault

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// python returns a call of one of the programs in checker. Debian's Python is the one that has dnspython.
func python(program string, args ...string) *exec.Cmd {
	cmd := exec.Command("/usr/bin/python3", append([]string{"-B", filepath.Join("checker", program)}, args...)...)
	return cmd
}

// stderrOf returns what a failed program wrote to its standard error, where that was kept.
func stderrOf(err error) string {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(exit.Stderr)
	}
	return ""
}

// history is the part of a run's history that the driver writes. The observer appends to the same file.
type history struct{ file *os.File }

func openHistory(t *testing.T, path string) *history {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return &history{file}
}

// entry is one line of the history.
type entry map[string]any

// write appends an entry in a single write, so that the lines of several writers do not mix.
func (h *history) write(op string, e entry) {
	e["op"] = op
	line, err := json.Marshal(e)
	if err == nil {
		_, err = h.file.Write(append(line, '\n'))
	}
	if err != nil && !errors.Is(err, os.ErrClosed) { // closed: the test has ended already
		panic(fmt.Sprintf("writing the history: %v", err))
	}
}

// seconds is a time as the history has it.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func now() float64 { return seconds(time.Now()) }

// observer is the running observe.py.
type observer struct {
	*testing.T
	cmd     *exec.Cmd
	input   io.WriteCloser
	answers *bufio.Scanner
}

// startObserver starts the observer with the rights of the cluster's administrator.
func startObserver(t *testing.T, path string, config map[string]any) *observer {
	t.Helper()
	dir := t.TempDir()
	config["api"], config["history"] = credentials(t, dir, kube.Config(t)), path
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, dir, "config.json", data)
	o := &observer{T: t, cmd: python("observe.py", file)}
	o.cmd.Stderr = os.Stderr
	if o.input, err = o.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.answers = bufio.NewScanner(output)
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.cmd.Process.Kill() })
	return o
}

// credentials writes the certificates of a client configuration to files, and returns where they are.
func credentials(t *testing.T, dir string, config *rest.Config) map[string]string {
	t.Helper()
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"server": config.Host, "ca": writeFile(t, dir, "ca.crt", config.CAData),
		"certificate": writeFile(t, dir, "client.crt", config.CertData), "key": writeFile(t, dir, "client.key", config.KeyData)}
}

func writeFile(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// rest has the observer look at a world in which nothing changes.
func (o *observer) rest() {
	o.Helper()
	if _, err := io.WriteString(o.input, "rest\n"); err != nil {
		o.Fatal(err)
	}
	if !o.answers.Scan() {
		o.Fatalf("the observer ended: %v", o.answers.Err())
	}
}

// end ends the observer.
func (o *observer) end() {
	o.Helper()
	_ = o.input.Close()
	if err := o.cmd.Wait(); err != nil {
		o.Errorf("the observer: %v", err)
	}
}

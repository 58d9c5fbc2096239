// Package fault puts fleets on a real cluster under random changes and random faults, several at once, and has every status judged
// by a program that shares nothing with the product: not its language, not its DNS library, not its model. docs/truth.md describes
// what is judged and what was found.
//
// The Go code here is the driver: it changes objects and servers, and writes down what it did. The Python programs in checker observe
// (observe.py) and judge (judge.py). What both saw is one history, in files that outlive the run.
package fault

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/test/kube"
)

func TestMain(m *testing.M) { kube.Main(m) }

var (
	seed      = flag.Uint64("seed", 1, "what decides the faults and changes; when they meet the cluster is not decided by it")
	faults    = flag.Int("faults", 60, "how many faults there are in a run")
	directory = flag.String("directory", "", "where the run's files are; a run that ended early goes on there. By default a temporary one")
	limit     = flag.Duration("limit", 0, "after how long to begin no more faults, so that the run goes on another time; 0 is no limit")
	kinds     = flag.String("kinds", "", "the kinds of faults, separated by commas; by default all")
)

// batch is how many faults there are between two times of rest.
const batch = 20

// run is what a directory remembers of a run.
type run struct {
	// Seed and Parts decide the faults of the next part, which has a world and a history of its own.
	Seed  uint64 `json:"seed"`
	Parts int    `json:"parts"`
	// Done is the number of faults so far.
	Done int `json:"done"`
}

// Random faults, several at once, while objects change all the time: no status is ever false, no declared change is lost, nothing
// that others put into a zone is harmed, and everything is in sync soon after the last fault.
func TestFaults(t *testing.T) {
	kube.Disruptive(t, nil)
	dir := *directory
	if dir == "" {
		dir = t.TempDir()
	}
	r := loadRun(t, dir)
	began := time.Now()
	if r.Done < *faults {
		r.Parts++
		w := newWorld(t, dir, r)
		for r.Done < *faults && (*limit == 0 || time.Since(began) < *limit) {
			r.Done += w.disturb(min(batch, *faults-r.Done))
			w.rest()
			r.save(t, dir)
		}
		w.end()
	}
	judge(t, dir)
}

func loadRun(t *testing.T, dir string) *run {
	t.Helper()
	r := &run{Seed: *seed}
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *run) save(t *testing.T, dir string) {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// judge has the histories of a directory judged, and writes the report beside them.
func judge(t *testing.T, dir string) {
	t.Helper()
	out, err := python("judge.py", dir).Output()
	t.Logf("%s\n%s", dir, out)
	if err := os.WriteFile(filepath.Join(dir, "report.txt"), out, 0o600); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Errorf("the judge found violations: %v %s", err, strings.TrimSpace(stderrOf(err)))
	}
}

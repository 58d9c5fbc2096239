package registry

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	bind "github.com/lockstep-dns/lockstep/test/named"
)

var queryLine = regexp.MustCompile(`(?m)^\s*(\d+) QUERY$`)

// countQueries reads the last total from the file that rndc stats appends to.
func countQueries(t testing.TB, s *bind.Server) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.Dir, "named.stats"))
	if err != nil {
		t.Fatal(err)
	}
	all := queryLine.FindAllStringSubmatch(string(raw), -1)
	if len(all) == 0 {
		t.Fatalf("no count of queries in %s", raw)
	}
	n, err := strconv.Atoi(all[len(all)-1][1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

package licenses

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCollect(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"a/LICENSE": "free a\n", "a/NOTICE.txt": "of a", "a/main.go": "package a", "b/COPYING": "free b", "none/licenses.go": "package none",
	} {
		file = filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Collect(map[string]string{"b@v2": filepath.Join(dir, "b"), "a@v1": filepath.Join(dir, "a")})
	want := "This program contains the following modules.\n\n---- a@v1: LICENSE\n\nfree a\n\n---- a@v1: NOTICE.txt\n\nof a\n\n---- b@v2: COPYING\n\nfree b\n"
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
	if _, err := Collect(map[string]string{"none@v1": filepath.Join(dir, "none")}); err == nil || !strings.Contains(err.Error(), "none@v1 has no license") {
		t.Errorf("error %v", err)
	}
}

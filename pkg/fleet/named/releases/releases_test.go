package releases

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestImages: each version has the image that was named for it, else the standard one's with its own tag.
func TestImages(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"bind9:9.20": {"": "bind9:9.20", "9.20": "bind9:9.20", "9.18": "bind9:9.18", "9.22": "bind9:9.22"},
		"r.example:5000/bind9:9.20-v1,9.18=r.example:5000/old:9.18-v1": {"": "r.example:5000/bind9:9.20-v1", "9.20": "r.example:5000/bind9:9.20-v1",
			"9.18": "r.example:5000/old:9.18-v1", "9.22": "r.example:5000/bind9:9.22"},
		"r.example/bind9:9.20-v1@sha256:ab,9.18=r.example/bind9:9.18-v1@sha256:cd": {"": "r.example/bind9:9.20-v1@sha256:ab", "9.20": "r.example/bind9:9.20-v1@sha256:ab",
			"9.18": "r.example/bind9:9.18-v1@sha256:cd", "9.22": "r.example/bind9:9.20-v1@sha256:ab"},
		"bind9:9.18-mine":    {"": "bind9:9.18-mine", "9.18": "bind9:9.18-mine", "9.20": "bind9:9.20"},
		"bind9:latest":       {"": "bind9:latest", "9.18": "bind9:latest", "9.20": "bind9:latest", "9.22": "bind9:9.22"},
		"r.example:5000/own": {"": "r.example:5000/own", "9.18": "r.example:5000/own"},
	} {
		images, err := ParseImages(text)
		if err != nil {
			t.Fatal(err)
		}
		for version, image := range want {
			if got := images.Of(version); got != image {
				t.Errorf("%s: version %q has %s, want %s", text, version, got, image)
			}
			if known := strings.Contains(","+text+",", image+","); images.Known(version) != known {
				t.Errorf("%s: %s is known: %v", text, image, !known)
			}
		}
	}
	for _, text := range []string{"", ",9.18=a", "9.18=a", "a,b", "a,9.18=", "a,9.18-v1=b", "a,latest=b", "a,9.18=b,9.18=c", "a,"} {
		if _, err := ParseImages(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestOfImage(t *testing.T) {
	for image, want := range map[string]Release{
		"docker.io/library/lockstep-bind9:9.18": BIND918, "r.example:9.18/bind": "", "r.example:5000/bind9:9.20-v1@sha256:9.18": BIND920, "bind@sha256:ab": "",
		"bind:9.20.30-1-deb13u1": BIND920, "bind:9.200": "9.200", "bind:v9.20": "",
	} {
		if got := OfImage(image); got != want {
			t.Errorf("%s has %q, want %q", image, got, want)
		}
	}
}

// TestLacks: a statement is looked for where it stands, and only for releases that are known.
func TestLacks(t *testing.T) {
	for _, c := range []struct {
		release         Release
		parent, keyword string
		want            bool
	}{
		{BIND920, "options", "Auto-DNSSEC", true}, {BIND920, "zone", "auto-dnssec", true}, {BIND918, "zone", "auto-dnssec", false}, {BIND920, "key", "auto-dnssec", false},
		{BIND918, "dnssec-policy", "inline-signing", true}, {BIND918, "zone", "inline-signing", false}, {BIND918, "", "key-store", true},
		{"", "options", "auto-dnssec", false}, {"9.22", "options", "auto-dnssec", false},
	} {
		if _, got := c.release.Lacks(c.parent, c.keyword); got != c.want {
			t.Errorf("%q lacks %s in %q: %v", c.release, c.keyword, c.parent, got)
		}
	}
}

// TestStatements: the installed BIND takes the statements that its release has, and refuses the others. NAMED_CHECKCONF names one of another release.
func TestStatements(t *testing.T) {
	program := os.Getenv("NAMED_CHECKCONF")
	if program == "" {
		program = "named-checkconf"
	}
	out, err := exec.CommandContext(t.Context(), program, "-v").Output()
	if err != nil {
		t.Skipf("named-checkconf is not installed: %v", err)
	}
	release := OfVersion(strings.TrimSpace(string(out)))
	if !release.IsSupported() {
		t.Skipf("BIND %s is not in the table", out)
	}
	takes := func(text string) bool {
		file := filepath.Join(t.TempDir(), "named.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.CommandContext(t.Context(), program, file).Run() == nil
	}
	for _, s := range statements {
		text := s.Sample
		if s.In != inTop {
			text = map[string]string{inOptions: "options", inPolicy: `dnssec-policy "p"`}[s.In] + " { " + s.Sample + " };"
		}
		if want := slices.Contains(s.Only, release); takes(text) != want {
			t.Errorf("BIND %s takes %s: %v", release, text, !want)
		}
	}
	for iterations, want := range map[string]bool{"0": true, "5": release.MaxNSEC3Iterations() >= 5, "151": release.MaxNSEC3Iterations() >= 151} {
		if got := takes(`dnssec-policy "p" { nsec3param iterations ` + iterations + ` optout no salt-length 0; };`); got != want {
			t.Errorf("BIND %s takes %s iterations: %v", release, iterations, got)
		}
	}
}

// TestDocument: the reference has the tables. LOCKSTEP_UPDATE=1 writes them.
func TestDocument(t *testing.T) {
	const file, begin, end = "../../../../docs/reference/bind.md", "<!-- begin of the tables -->\n", "<!-- end of the tables -->\n"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(b), begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s lacks the comments around the tables", file)
	}
	want := before + begin + document() + end + after
	if want == string(b) {
		return
	}
	if os.Getenv("LOCKSTEP_UPDATE") == "" {
		t.Fatalf("%s is stale: run LOCKSTEP_UPDATE=1 go test ./pkg/fleet/named/releases", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

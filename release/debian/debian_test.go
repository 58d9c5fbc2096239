package debian

import (
	"slices"
	"strings"
	"testing"
)

func TestLibraries(t *testing.T) {
	out := strings.Join([]string{
		"bind9", "  PreDepends: init-system-helpers", "  Depends: adduser", " |Depends: libsystemd0", "    libelogind0",
		"  Depends: libc6", "  Depends: zlib1g", "  Depends: <debconf-2.0>", "    cdebconf",
		"libgcc-s1", "  Depends: gcc-12-base",
	}, "\n")
	want := []string{"libsystemd0", "libc6", "zlib1g", "gcc-12-base"}
	if got := parseLibraries(out); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseURIs(t *testing.T) {
	got, err := parseURIs("'http://deb.example/b.deb' bind9_1%3a9.18.49-1~deb12u3_amd64.deb 252732 SHA256:80bf\n")
	want := []Package{{Name: "bind9", File: "bind9_1%3a9.18.49-1~deb12u3_amd64.deb", SHA256: "80bf"}}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %v, %v; want %v", got, err, want)
	}
	if v := got[0].Version(); v != "1:9.18.49-1~deb12u3" {
		t.Errorf("version %s", v)
	}
	if _, err := parseURIs("W: something is wrong\n"); err == nil {
		t.Error("a warning was taken for a package")
	}
}

func TestTreeFollowsLinks(t *testing.T) {
	tree := &Tree{files: map[string]packageFile{
		"usr/lib/x/libz.so.1.2":     {pkg: "z", body: []byte("z")},
		"usr/lib/x/libz.so.1":       {link: "libz.so.1.2"},
		"usr/lib64/loader":          {link: "/lib/x/libz.so.1"},
		"usr/lib/x/loop":            {link: "loop"},
		"usr/share/doc/b":           {link: "a"},
		"usr/share/doc/a/copyright": {body: []byte("free")},
	}}
	for name, want := range map[string]string{
		"lib/x/libz.so.1": "z", "/lib64/loader": "z", "usr/lib/x/loop": "", "usr/lib/none": "",
	} {
		f, err := tree.readFile(name)
		if (err != nil) != (want == "") || string(f.body) != want {
			t.Errorf("read(%s) = %q, %v; want %q", name, f.body, err, want)
		}
	}
	if at, err := tree.findLibrary("libz.so.1"); err != nil || at != "usr/lib/x/libz.so.1" {
		t.Errorf("library: %s, %v", at, err)
	}
	licenses := tree.Copyrights([]string{"a", "b"})
	if string(licenses["usr/share/doc/b/copyright"]) != "free" {
		t.Errorf("licenses: %q", licenses)
	}
}

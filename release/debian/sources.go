package debian

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// osRelease says which system this machine runs.
const osRelease = "/etc/os-release"

// machineSuite returns the codename of the Debian release that this machine runs, empty if it runs another system.
var machineSuite = sync.OnceValue(func() string {
	text, err := os.ReadFile(osRelease)
	if err != nil {
		return ""
	}
	return suiteOf(string(text))
})

// suiteOf reads the codename of a Debian release from a file such as /etc/os-release.
func suiteOf(text string) string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[name] = strings.Trim(value, `"`)
	}
	if values["ID"] != "debian" {
		return ""
	}
	return values["VERSION_CODENAME"]
}

// sources is the folder of the sources of a suite that is not this machine's.
func (r Repository) sources() string { return filepath.Join(r.private(), "sources.d") }

// writeSources writes the sources of a suite that is not this machine's: those of the machine's own suite, with the other's name.
func (r Repository) writeSources() error {
	if !r.isForeign() {
		return nil
	}
	from := machineSuite()
	if from == "" {
		return fmt.Errorf("packages of Debian's %s come from the mirrors of a Debian machine, and %s names another system", r.Suite, osRelease)
	}
	files := []string{"/etc/apt/sources.list"}
	for _, pattern := range []string{"*.list", "*.sources"} {
		found, err := filepath.Glob("/etc/apt/sources.list.d/" + pattern)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	if err := os.MkdirAll(r.sources(), 0o755); err != nil {
		return err
	}
	written := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		translate := translateLines
		if filepath.Ext(file) == ".sources" {
			translate = translateStanzas
		}
		to := filepath.Join(r.sources(), filepath.Base(file))
		other := translate(string(text), from, r.Suite)
		if other == "" {
			if err := os.RemoveAll(to); err != nil {
				return err
			}
			continue
		}
		written++
		if err := os.WriteFile(to, []byte(other), 0o644); err != nil {
			return err
		}
	}
	if written == 0 {
		return fmt.Errorf("none of apt's sources is of Debian's %s, so that none is known of %s", from, r.Suite)
	}
	return nil
}

// translateSuite returns the suite of another release that is what this one is of from: the release itself, its updates, or its security
// updates. It is empty for any other suite.
func translateSuite(suite, from, to string) string {
	for _, kind := range []string{"", "-updates", "-security"} {
		if suite == from+kind {
			return to + kind
		}
	}
	return ""
}

// translateLines translates sources of one line each, and leaves out those of other suites.
func translateLines(text, from, to string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "deb" {
			continue
		}
		at := 2 // deb [options] URI suite component…
		if end := slices.IndexFunc(fields, func(f string) bool { return strings.HasSuffix(f, "]") }); strings.HasPrefix(fields[1], "[") && end > 0 {
			at = end + 2
		}
		if at >= len(fields) {
			continue
		}
		if suite := translateSuite(fields[at], from, to); suite != "" {
			fields[at] = suite
			b.WriteString(strings.Join(fields, " ") + "\n")
		}
	}
	return b.String()
}

// translateStanzas does the same for the form that deb822 describes: fields, and an empty line between sources.
func translateStanzas(text, from, to string) string {
	var b strings.Builder
	for stanza := range strings.SplitSeq(text, "\n\n") {
		var kept strings.Builder
		found := false
		for line := range strings.Lines(strings.TrimSpace(stanza) + "\n") {
			if strings.HasPrefix(line, "#") {
				continue
			}
			if name, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(name, "Suites") {
				var suites []string
				for suite := range strings.FieldsSeq(value) {
					if other := translateSuite(suite, from, to); other != "" {
						suites = append(suites, other)
					}
				}
				found = len(suites) > 0
				line = name + ": " + strings.Join(suites, " ") + "\n"
			}
			kept.WriteString(line)
		}
		if found {
			b.WriteString(kept.String() + "\n")
		}
	}
	return b.String()
}

// Package notes takes the notes of a release out of the changelog.
package notes

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	section = regexp.MustCompile(`(?m)^## \[([^\]]+)\].*\n`)
	// What is not for users, which comes last.
	development = regexp.MustCompile(`(?ms)^### Development$.*\z`)
	// A link to a file of the repository, which has no scheme.
	localLink = regexp.MustCompile(`\]\(([^):#]+)((?:#[^)]*)?)\)`)
)

// Extract returns the section of the version, and that of what is unreleased if there is none. Links to files of the repository begin with
// base, because the notes are read elsewhere. What concerns development alone is left out.
func Extract(changelog, version, base string) (string, error) {
	sections := map[string]string{}
	heads := section.FindAllStringSubmatchIndex(changelog, -1)
	for i, head := range heads {
		end := len(changelog)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		sections[changelog[head[2]:head[3]]] = strings.TrimSpace(development.ReplaceAllString(changelog[head[1]:end], ""))
	}
	text := sections[strings.TrimPrefix(version, "v")]
	if text == "" {
		text = sections["Unreleased"]
	}
	if text == "" {
		return "", fmt.Errorf("CHANGELOG.md has neither a section [%s] nor one [Unreleased] that says what has changed", strings.TrimPrefix(version, "v"))
	}
	return "# Lockstep " + version + "\n\n" + localLink.ReplaceAllString(text, "]("+base+"$1$2)") + "\n", nil
}

// Command reasonsgen writes the reference of all reasons, docs/reference/conditions.md, from the table in pkg/declared/status:
//
//	go run ./pkg/declared/internal/reasonsgen -out docs/reference/conditions.md
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

func main() {
	out := flag.String("out", "", "file to write")
	flag.Parse()
	if err := os.WriteFile(*out, page(status.Table), 0o644); err != nil { //nolint:gosec // documentation
		fmt.Fprintln(os.Stderr, "reasonsgen:", err)
		os.Exit(1)
	}
}

const head = `# Conditions and reasons

Generated from the table in ` + "`pkg/declared/status`" + ` by ` + "`make generate`" + `. What each reason means, which conditions have it, and what to do about it. The commands to start with
are in [troubleshooting](../guides/troubleshooting.md); what the conditions of each kind say is in the [API reference](api.md#conditions).

A condition is written ` + "`Type=Status`; `Pod-N` and `Bind9Instance-N`" + ` are numbered from 0. ` + "`Stalled=True`" + ` says that a person has to act; otherwise the condition is not
there. Examples are messages as the code makes them.
`

var condition = regexp.MustCompile(`\S+=\w+`)

// page is the page about a table.
func page(table []status.Section) []byte {
	var out bytes.Buffer
	fmt.Fprint(&out, head)
	for _, section := range table {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n| reason | conditions | means | do |\n|---|---|---|---|\n", section.Title, section.Intro)
		for _, r := range section.Reasons {
			example := ""
			if r.Example != "" {
				example = ". Example: `" + r.Example + "`"
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s%s | %s |\n", r.Name, condition.ReplaceAllString(r.In, "`$0`"), r.Means, example, r.Do)
		}
	}
	return out.Bytes()
}

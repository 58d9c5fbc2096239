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

For users and operators who see a reason: which conditions have it, what it means and what to do. Start with the commands of
[troubleshooting](../guides/troubleshooting.md); the [API reference](api.md#conditions) has what each condition says.

A condition is written ` + "`Type=Status`; `Pod-N` and `Bind9Instance-N`" + ` are numbered from 0. ` + "`Stalled=True`" + ` says that a person has to act; otherwise it
is absent. Examples are messages as the code makes them. ` + "`make generate`" + ` writes this page from the table in ` + "`pkg/declared/status`" + `.
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

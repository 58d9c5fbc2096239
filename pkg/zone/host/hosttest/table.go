package hosttest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateTable = flag.Bool("update-table", false, "write the table of servers and capabilities")

// The cases that every server goes through: the rows of the table of servers and capabilities.
const (
	CaseTypes       = "A, AAAA, CNAME, MX, PTR, SRV, TXT: create, change, delete"
	CaseCAA         = "CAA: create, change, delete"
	CaseTTL         = "a TTL alone changes"
	CaseAlias       = "a CNAME becomes an address, and the other way round"
	CaseWildcards   = "wildcards"
	CaseDelegations = "delegations with glue"
	CaseAtomic      = "one message, or transaction, changes all or nothing"
	CaseSerial      = "the serial moves with the content"
	CaseDrift       = "drift is undone, what others add is kept"
	CaseForeign     = "what nobody declares is listed"
	CaseSynthesized = "what a wildcard answers is not taken for what is there"
	CaseRace        = "a write of others at another name, between look and update"
	CaseRaceAtName  = "a write of others at the same name, between look and update"
	CaseLostReply   = "the reply to an update is lost"
	CaseRefused     = "an RRset that it refuses holds up no other"
	CaseWrongKey    = "a wrong key or password is reported in its words, with what to do"
	CaseMany        = "2,000 RRsets, and one of them changes"
)

var tableRows = []string{
	CaseTypes, CaseCAA, CaseTTL, CaseAlias, CaseWildcards, CaseDelegations, CaseAtomic, CaseSerial, CaseDrift, CaseForeign, CaseSynthesized,
	CaseRace, CaseRaceAtName, CaseLostReply, CaseRefused, CaseWrongKey, CaseMany,
}

var tableColumns = []string{
	"BIND, Exclusive, Transfer", "BIND, Shared, Transfer", "BIND, Exclusive, Query", "BIND, Shared, Query",
	"Knot, Exclusive, Transfer", "Knot, Shared, Transfer", "Knot, Shared, Query", "PowerDNS, Shared, Transfer", "PowerDNS, Shared, Query",
	"CoreDNS with etcd", "NSD, secondary",
}

// Column has the outcome of each case at one server: "yes", "no", or why the server cannot do it.
type Column map[string]string

// Cell is an outcome: whether the case held, and otherwise why it cannot, if there is a reason.
func Cell(held bool, reason string) string {
	switch {
	case held:
		return "yes"
	case reason != "":
		return reason
	}
	return "no"
}

// CheckTable demands that the table in a file has these columns, and leaves those of other suites as they are. With -update-table it
// writes them.
func CheckTable(t *testing.T, file string, found map[string]Column) {
	t.Helper()
	const begin, end = "<!-- begin of the conformance table: make generate-conformance -->\n", "<!-- end of the conformance table -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(text), begin)
	written, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s has no place for the table", file)
	}
	columns := parseTable(written)
	for server, column := range found {
		if !slices.Contains(tableColumns, server) {
			t.Fatalf("the table has no column for %s", server)
		}
		columns[server] = column
	}
	table := formatTable(columns)
	if *updateTable {
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o644); err != nil { //nolint:gosec // a page of the documentation
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(written, table); diff != "" {
		t.Errorf("%s says otherwise (-documented +found); if it should not: make generate-conformance\n%s", file, diff)
	}
}

// formatTable numbers the reasons below the table.
func formatTable(columns map[string]Column) string {
	var b strings.Builder
	b.WriteString("| | " + strings.Join(tableColumns, " | ") + " |\n|---" + strings.Repeat("|---", len(tableColumns)) + "|\n")
	var reasons []string
	for _, row := range tableRows {
		b.WriteString("| " + row)
		for _, server := range tableColumns {
			cell := columns[server][row]
			if cell != "yes" && cell != "no" && cell != "" {
				if !slices.Contains(reasons, cell) {
					reasons = append(reasons, cell)
				}
				cell = markOf(1 + slices.Index(reasons, cell))
			}
			b.WriteString(" | " + cell)
		}
		b.WriteString(" |\n")
	}
	b.WriteString("\n")
	for i, reason := range reasons {
		fmt.Fprintf(&b, "%d. %s\n", i+1, reason)
	}
	return b.String()
}

func markOf(reason int) string { return fmt.Sprintf("– (%d)", reason) }

// parseTable reads what formatTable wrote.
func parseTable(text string) map[string]Column {
	grid, below, _ := strings.Cut(text, "\n\n")
	reasons := map[string]string{}
	for line := range strings.Lines(below) {
		_, reason, _ := strings.Cut(strings.TrimSpace(line), ". ")
		reasons[markOf(len(reasons)+1)] = reason
	}
	columns := map[string]Column{}
	var header []string
	for line := range strings.Lines(grid) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if header == nil {
			header = cells
		}
		for i, server := range header[1:min(len(header), len(cells))] {
			if columns[server] == nil {
				columns[server] = Column{}
			}
			cell := cells[i+1]
			if reason, marked := reasons[cell]; marked {
				cell = reason
			}
			columns[server][cells[0]] = cell
		}
	}
	return columns
}

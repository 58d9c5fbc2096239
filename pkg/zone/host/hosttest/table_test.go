package hosttest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A suite that writes its columns leaves those of the others as they are, with their reasons.
func TestTable(t *testing.T) {
	columns := map[string]Column{}
	for i, server := range tableColumns {
		columns[server] = Column{}
		for j, row := range tableRows {
			columns[server][row] = Cell((i+j)%3 > 0, []string{"", "it has none. At all.", "nobody writes to it"}[i%3])
		}
	}
	text := formatTable(columns)
	read := parseTable(text)
	for server, column := range columns {
		for row, cell := range column {
			if read[server][row] != cell {
				t.Errorf("%s, %s: %q, want %q", server, row, read[server][row], cell)
			}
		}
	}
	if diff := cmp.Diff(text, formatTable(read)); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

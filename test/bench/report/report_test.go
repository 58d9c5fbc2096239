package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const output = `a zone of 1000 records: 1000 objects created
RESULT get ratio=2.05 ours=8.26 ms reference=4.03 ms (the hop, and one round of SOA queries)
    RESULT provider-bind ratio=1.50 ours=0.25 s reference=0.17 s (nsupdate; medians of 5)
RESULT is no result
`

func reportOf(t *testing.T, outputs ...string) *Report {
	t.Helper()
	r := &Report{}
	for _, o := range outputs {
		if _, err := r.addOutput(strings.NewReader(o), 0.2, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestOutputIsRead(t *testing.T) {
	want := []Result{
		{"get", "the hop, and one round of SOA queries", []Run{{2.05, "8.26 ms", "4.03 ms", 0.2}}},
		{"provider-bind", "nsupdate; medians of 5", []Run{{1.5, "0.25 s", "0.17 s", 0.2}}},
	}
	if diff := cmp.Diff(want, reportOf(t, output).Results); diff != "" {
		t.Error(diff)
	}
}

// getRuns returns a report with ratios of get.
func getRuns(t *testing.T, ratios ...string) *Report {
	t.Helper()
	var outputs []string
	for _, ratio := range ratios {
		outputs = append(outputs, "RESULT get ratio="+ratio+" ours=1 ms reference=1 ms (x)\n")
	}
	return reportOf(t, outputs...)
}

func TestSlowerIsBeyondTheSpread(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after []string
		want          string
		fails         bool
	}{
		{"spreads that overlap", []string{"1.9", "2.0", "2.1"}, []string{"2.3", "2.1", "2.4"}, "within the spread", false},
		{"slower", []string{"1.9", "2.0", "2.1"}, []string{"2.2", "2.3", "2.4"}, "slower", true},
		{"faster", []string{"1.9", "2.0", "2.1"}, []string{"1.8", "1.7", "1.6"}, "faster", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, slower := compareReports(getRuns(t, test.before...), getRuns(t, test.after...))
			if !strings.Contains(text, test.want) || (len(slower) > 0) != test.fails {
				t.Errorf("%s\nslower: %v", text, slower)
			}
		})
	}
}

func TestMissingResultsAreNamed(t *testing.T) {
	text, _ := compareReports(getRuns(t, "1"), reportOf(t, output))
	if !strings.Contains(text, "| provider-bind | | 1.50 | new |") {
		t.Error(text)
	}
	if text, _ = compareReports(reportOf(t, output), getRuns(t, "1")); !strings.Contains(text, "| provider-bind | 1.50 | | not run |") {
		t.Error(text)
	}
}

func TestTableHasTheMedianAndTheSpread(t *testing.T) {
	table := getRuns(t, "1.9", "2.1", "2.0").markdown()
	if row := "| get | x | 1 ms | 1 ms | 2.00 | 1.90–2.10 | 0.2 |"; !strings.Contains(table, row) {
		t.Errorf("no %q in\n%s", row, table)
	}
}

// New figures replace old ones in a document's table, and nothing else; what a goal is stays, and whether it is missed follows.
func TestDocumentIsUpdated(t *testing.T) {
	const document = `# Benchmarks

| name | what is measured | reference | ours | reference's | ratio | goal |
|---|---|---|---|---|---|---|
| get | GET of one | the hop | 9 ms | 1 ms | 9.00 | ratio 2 (missed) |
| list | LIST | its own | 2 ms | 1 ms | 2.00 | ratio 3 |

Explained | by | a | text.
`
	r := getRuns(t, "1.9", "1.8", "2.1")
	if _, err := r.addOutput(strings.NewReader("RESULT watch ratio=3.50 ours=7 ms reference=2 ms (its own watchers)\n"), 0, io.Discard); err != nil {
		t.Fatal(err)
	}
	r.Machine.Date = "2026-01-01"
	want := strings.NewReplacer(
		"| 9 ms | 1 ms | 9.00 | ratio 2 (missed) |", "| 1 ms | 1 ms | 1.90 (1.80–2.10) | ratio 2 |",
		"ratio 3 |\n", "ratio 3 |\n| watch | | its own watchers | 7 ms | 2 ms | 3.50 | |\n\n"+originMark+
			"The figures of get, watch are of 2026-01-01, 0 processors, 0 GiB, Linux ; . Each is that of the run with the median ratio; the load before the busiest run was 0.2.\n",
	).Replace(document)
	got := updateDocument(document, r)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, updateDocument(got, r)); diff != "" {
		t.Errorf("the second time: %s", diff)
	}
	missed := updateDocument(got, getRuns(t, "2.5"))
	if !strings.Contains(missed, "| 2.50 | ratio 2 (missed) |") {
		t.Error(missed)
	}
}

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// The page is what the table says.
func TestPageIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../../../../docs/reference/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(page(status.Table)), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("docs/reference/conditions.md is stale: run make generate (-want +got):\n%s", diff)
	}
}

// A row has the conditions of each kind, an example if there is one, and what to do.
func TestRow(t *testing.T) {
	text := string(page([]status.Section{{Title: "Zones", Intro: "About zones.", Reasons: []status.Reason{
		{Name: "A", In: "records, DNSEndpoint Ready=False Stalled=True; DNSZone Degraded=True", Means: "it is bad", Example: "www is bad", Do: "act"},
		{Name: "B", Means: "it is good", Do: "nothing"},
	}}}))
	for _, want := range []string{
		"\n## Zones\n\nAbout zones.\n\n| reason |",
		"| `A` | records, DNSEndpoint `Ready=False` `Stalled=True`; DNSZone `Degraded=True` | it is bad. Example: `www is bad` | act |\n",
		"| `B` |  | it is good | nothing |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
}

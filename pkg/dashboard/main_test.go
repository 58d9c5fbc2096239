package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestDashboardIsCurrent(t *testing.T) {
	want, err := renderDashboard()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../manifests/components/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("manifests/components/monitoring/dashboard.json is stale: run make generate-dashboard")
	}
}

// Each metric of a panel is in the reference.
func TestMetricsAreDocumented(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range panels {
		for _, q := range p.queries {
			for _, name := range regexp.MustCompile(`\b(lockstep|bind)_\w+`).FindAllString(q.expr, -1) {
				if !strings.Contains(string(reference), "`"+strings.TrimSuffix(name, "_bucket")+"`") {
					t.Errorf("%s: docs/reference/metrics.md has no %s", p.title, name)
				}
			}
		}
	}
}

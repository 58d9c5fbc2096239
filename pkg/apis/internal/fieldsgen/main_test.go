package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../../../"

// The page is what the definitions say: each kind, field and column.
func TestPageIsCurrent(t *testing.T) {
	want, err := generate([]string{root + "manifests/crds", root + "manifests/components/cluster-api/crds"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(root + "docs/reference/fields.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("docs/reference/fields.md is stale: run make generate (-want +got):\n%s", diff)
	}
}

// What the page has of one kind: columns, fields of lists and maps, what is required, and defaults.
func TestPage(t *testing.T) {
	page, err := generate([]string{root + "manifests/crds", root + "manifests/components/cluster-api/crds"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"## DNSEndpoint", "| Ready | string | `.status.conditions[?(@.type==\"Ready\")].status` |", "| `status.lastSyncTime` | string | ",
		"| `spec.endpoints[].targets` | list of string | ", "| `spec.name`* | string | ", "| VPC-ID | string | `.status.vpcId` |",
		"| `status.workspaceTemplateStatus.outputs` | map of string | ", "Fields: those of Kubernetes' conditions. |",
		"| `status` | object | Fields: as in `status` of [AAAARecord](#aaaarecord). |",
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("the page has no %s", row)
		}
	}
}

func TestFolderWithoutDefinitions(t *testing.T) {
	if _, err := generate([]string{t.TempDir()}); err == nil {
		t.Error("a folder without definitions makes a page")
	}
}

// Package monitoring tests the rules of manifests/components/monitoring with Prometheus' own promtool, and that each alert has an
// entry in the runbook.
package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	rulesFile   = "../../manifests/components/monitoring/rules.yaml"
	runbookFile = "../../docs/runbooks/alerts.md"
	runbookURL  = "https://github.com/lockstep-dns/lockstep/blob/main/docs/runbooks/alerts.md#"
)

// rule is what the tests read of a rule.
type rule struct {
	Alert       string            `json:"alert"`
	Annotations map[string]string `json:"annotations"`
}

// readRules returns the alert rules, and the spec of the PrometheusRule as promtool reads it.
func readRules(t *testing.T) (alerts []rule, spec []byte) {
	t.Helper()
	content, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Spec struct {
			Groups []struct {
				Rules []rule `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	var whole map[string]any
	if err := yaml.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &whole); err != nil {
		t.Fatal(err)
	}
	for _, group := range object.Spec.Groups {
		alerts = append(alerts, slices.DeleteFunc(group.Rules, func(r rule) bool { return r.Alert == "" })...)
	}
	if spec, err = yaml.Marshal(whole["spec"]); err != nil {
		t.Fatal(err)
	}
	return alerts, spec
}

// TestRules runs the rules over series of made-up values: each alert fires for one set and stays quiet for another.
func TestRules(t *testing.T) {
	alerts, spec := readRules(t)
	cases, err := os.ReadFile("rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts {
		for _, outcome := range []string{"fires", "stays quiet"} {
			if name := "- name: " + a.Alert + ", " + outcome + "\n"; !strings.Contains(string(cases), name) {
				t.Errorf("rules_test.yaml has no case %q", name)
			}
		}
	}
	directory := t.TempDir()
	for name, content := range map[string][]byte{"rules.yaml": spec, "cases.yaml": cases} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "cases.yaml"}} {
		command := exec.CommandContext(t.Context(), "promtool", arguments...)
		command.Dir = directory
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, output)
		}
	}
}

// TestRunbook compares the alerts with the headings of the runbook.
func TestRunbook(t *testing.T) {
	alerts, _ := readRules(t)
	content, err := os.ReadFile(runbookFile)
	if err != nil {
		t.Fatal(err)
	}
	var names, headings []string
	for _, a := range alerts {
		names = append(names, a.Alert)
		if want := runbookURL + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(content), -1) {
		headings = append(headings, m[1])
	}
	if diff := cmp.Diff(names, headings); diff != "" {
		t.Errorf("alerts (-) and entries of the runbook (+) differ:\n%s", diff)
	}
}

package offline

import (
	"cmp"
	"fmt"

	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
	"github.com/lockstep-dns/lockstep/webhook/review/trap"
)

// Level reports whether an object would be refused or stored with a warning.
type Level string

// Levels, as SARIF has them.
const (
	Error   Level = "error"
	Warning Level = "warning"
)

// Finding is one thing that is wrong or doubtful, where it is, and in which object.
type Finding struct {
	// File is as it was named, Line counts from 1.
	File string `json:"file"`
	Line int    `json:"line"`
	// Level reports whether the object would be refused.
	Level Level `json:"level"`
	// Rule is one of the keys of Rules.
	Rule string `json:"rule"`
	// APIVersion, Kind, Namespace and Name are the object's; empty when the file holds none.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// Field is the path of the field, empty when the finding is about the object.
	Field string `json:"field,omitempty"`
	// Message says what is wrong and what to write, beginning with the field, as kubectl shows it.
	Message string `json:"message"`
}

// Rules describes each rule of findings: these, and every trap.
var Rules = withTraps(map[string]string{
	"admission": "What the admission webhook refuses or warns about: DNS rules, and objects against each other",
	"kind":      "A kind or version that the API group does not have",
	"metadata":  "Metadata that Kubernetes refuses",
	"schema":    "What the CustomResourceDefinition refuses: its schema and its CEL rules",
	"twice":     "One object that is declared more than once",
	"yaml":      "A file that is not YAML, or has what is no object",
})

func withTraps(rules map[string]string) map[string]string {
	for _, t := range trap.All {
		rules[t.ID] = t.Summary
	}
	return rules
}

// explain returns what "--explain" says about a rule.
func explain(rule string) string {
	text := rule + ": " + Rules[rule] + ".\n"
	for _, t := range trap.All {
		if t.ID == rule {
			text += "\n" + t.Explanation + "\n"
		}
	}
	return text
}

// faultFindings are places that cannot be read, as findings.
func faultFindings(faults []manifest.Fault) []Finding {
	var findings []Finding
	for _, f := range faults {
		findings = append(findings, Finding{File: f.File, Line: f.Line, Level: Error, Rule: "yaml", Message: f.Message})
	}
	return findings
}

// Text is the finding as a line that editors and CI understand: file:line: level: object: message. It is one line whatever
// the manifest holds: what a manifest says must not pass for another finding, or for a command to a CI system.
func (f Finding) Text() string {
	object := ""
	if f.Kind != "" {
		object = f.Kind + " " + f.Name + ": "
		if f.Namespace != "" {
			object = f.Kind + " " + f.Namespace + "/" + f.Name + ": "
		}
	}
	return manifest.Printable(fmt.Sprintf("%s:%d: %s: %s%s", f.File, f.Line, f.Level, object, f.Message))
}

// compareFindings keeps those of a line in the order in which they were found.
func compareFindings(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}

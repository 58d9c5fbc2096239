package offline

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
)

// formats are the ways to write a report.
var formats = map[string]func(w io.Writer, findings []Finding, checked int) error{
	"text": writeText, "json": writeJSON, "sarif": writeSARIF,
}

func writeText(w io.Writer, findings []Finding, _ int) error {
	for _, f := range findings {
		if _, err := fmt.Fprintln(w, f.Text()); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}

func writeJSON(w io.Writer, findings []Finding, checked int) error {
	return encode(w, struct {
		Objects  int       `json:"objects"`
		Findings []Finding `json:"findings"`
	}{checked, append([]Finding{}, findings...)}) // Never null.
}

// Parts of SARIF 2.1.0 (OASIS), as far as it is written.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     Level           `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		PhysicalLocation struct {
			ArtifactLocation struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				StartLine int `json:"startLine"`
			} `json:"region"`
		} `json:"physicalLocation"`
	}
)

func writeSARIF(w io.Writer, findings []Finding, _ int) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver.Name = "lockstep validate"
	for _, id := range slices.Sorted(maps.Keys(Rules)) {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{id, sarifText{Rules[id]}})
	}
	for _, f := range findings {
		var at sarifLocation
		at.PhysicalLocation.ArtifactLocation.URI = (&url.URL{Path: filepath.ToSlash(f.File)}).String()
		at.PhysicalLocation.Region.StartLine = f.Line
		run.Results = append(run.Results, sarifResult{f.Rule, f.Level, sarifText{f.Message}, []sarifLocation{at}})
	}
	return encode(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func encode(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

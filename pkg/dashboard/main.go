// Command dashboard writes the Grafana dashboard of manifests/components/monitoring to standard output. All of it is made from the
// list of panels here, so that panels differ in nothing but what they show. `make generate-dashboard` calls it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// panel is one graph: a title, a unit of Grafana's, and queries by their legends.
type panel struct {
	title, unit string
	queries     []query
	// quiet panels have no data while all is well; the others always have some. The test with a real Prometheus reads this.
	quiet bool
	// note says of other panels when they have no data.
	note string
}

type query struct{ legend, expr string }

var panels = []panel{
	{title: "Propagation time", unit: "s", queries: []query{
		{"median", `histogram_quantile(0.5, sum by (le) (rate(lockstep_change_propagation_seconds_bucket[$__rate_interval])))`},
		{"99 %", `histogram_quantile(0.99, sum by (le) (rate(lockstep_change_propagation_seconds_bucket[$__rate_interval])))`},
	}},
	{title: "Changes of the last hour that were served everywhere within 10 s", unit: "percentunit", queries: []query{
		{"share", `lockstep:change_propagation:ratio_within_10s_1h`},
	}},
	{title: "Age of the oldest change that is not served everywhere", unit: "s", queries: []query{{"age", `max(lockstep_oldest_unsynced_change_age_seconds)`}}},
	{title: "Time since a pass over a zone ended", unit: "s", queries: []query{
		{"whatever its outcome", `time() - max(lockstep_last_pass_timestamp_seconds > 0)`},
		{"successfully", `time() - max(lockstep_last_successful_pass_timestamp_seconds > 0)`},
	}},
	{title: "Passes over zones", unit: "ops", queries: []query{{"{{outcome}}", `sum by (outcome) (rate(lockstep_zone_passes_total[$__rate_interval]))`}}},
	{title: "Duration of passes", unit: "s", queries: []query{
		{"median", `histogram_quantile(0.5, sum by (le) (rate(lockstep_zone_pass_duration_seconds_bucket[$__rate_interval])))`},
		{"99 %", `histogram_quantile(0.99, sum by (le) (rate(lockstep_zone_pass_duration_seconds_bucket[$__rate_interval])))`},
	}},
	{title: "Zones that cannot be programmed", unit: "short", quiet: true, queries: []query{{"{{reason}}", `sum by (reason) (lockstep_zones_failed)`}}},
	{title: "Failed objects", unit: "short", quiet: true, queries: []query{{"{{kind}} {{reason}}", `sum by (kind, reason) (lockstep_objects_failed)`}}},
	{title: "RRsets", unit: "short", queries: []query{
		{"not served as declared", `sum(lockstep_rrsets_unprogrammed)`},
		{"declared by nobody", `sum(lockstep_rrsets_foreign)`},
		{"declarations refused", `sum(lockstep_declarations_refused)`},
	}},
	{title: "Corrected drift", unit: "ops", queries: []query{{"RRsets", `sum(rate(lockstep_drift_corrected_total[$__rate_interval]))`}}},
	{title: "UPDATE messages", unit: "ops", queries: []query{{"{{rcode}}", `sum by (rcode) (rate(lockstep_dns_updates_total[$__rate_interval]))`}}},
	{title: "Calls to sidecars", unit: "ops", queries: []query{{"{{method}} {{code}}", `sum by (method, code) (rate(lockstep_sidecar_calls_total[$__rate_interval]))`}}},
	{title: "Servers that answer", unit: "short", queries: []query{{"{{namespace}}/{{pod}}", `bind_up`}}},
	{title: "Responses of servers", unit: "ops", queries: []query{{"{{rcode}}", `sum by (rcode) (rate(bind_response_rcodes_total[$__rate_interval]))`}}},
	{title: "Failed zone transfers", unit: "ops", queries: []query{{"{{namespace}}/{{pod}}", `sum by (namespace, pod) (rate(bind_zone_transfer_failure_total[$__rate_interval]))`}}},
	{title: "Zones by what validating resolvers make of them", unit: "short", queries: []query{{"{{security}}", `max by (security) (lockstep_syncstatus_zones)`}}},
	{title: "Time until the first signature expires", unit: "s", note: "Empty while nobody asks about a signed zone.", queries: []query{
		{"all zones", `min(lockstep_syncstatus_first_signature_expiry_timestamp_seconds) - time()`},
	}},
	{title: "Signed zones by what zones above have of them", unit: "short", note: "Empty while no zone above a signed zone is known.", queries: []query{
		{"{{status}} {{reason}}", `sum by (status, reason) (lockstep_zones_delegated)`},
	}},
	{title: "Age of the oldest change of DS records that a zone above has not followed", unit: "s", queries: []query{
		{"zone above: {{parent}}", `max by (parent) (lockstep_oldest_ds_change_age_seconds)`},
	}},
	{title: "Status writes", unit: "ops", queries: []query{{"{{result}}", `sum by (result) (rate(lockstep_status_writes_total[$__rate_interval]))`}}},
	{title: "Statuses that wait", unit: "short", queries: []query{{"objects", `sum(lockstep_status_queue_depth)`}}},
	{title: "Caches that follow the Kubernetes API", unit: "short", queries: []query{{"{{job}} {{type}}", `min by (job, type) (lockstep_cache_synced)`}}},
}

// quietDescription is what a quiet panel says of itself.
const quietDescription = "Empty while all is well."

// Panels stand two in a row of Grafana's 24 columns.
const (
	panelWidth  = 12
	panelHeight = 8
)

// source is the data source that the user selects.
var source = map[string]any{"type": "prometheus", "uid": "${datasource}"}

func (p panel) render(n int) map[string]any {
	targets := make([]any, len(p.queries))
	for i, q := range p.queries {
		targets[i] = map[string]any{"refId": string(rune('A' + i)), "expr": q.expr, "legendFormat": q.legend, "datasource": source}
	}
	description := p.note
	if p.quiet {
		description = quietDescription
	}
	return map[string]any{
		"id": n + 1, "description": description, "type": "timeseries", "title": p.title, "datasource": source, "targets": targets,
		"gridPos":     map[string]any{"x": n % 2 * panelWidth, "y": n / 2 * panelHeight, "w": panelWidth, "h": panelHeight},
		"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit, "min": 0}, "overrides": []any{}},
	}
}

// renderDashboard returns the dashboard as JSON.
func renderDashboard() ([]byte, error) {
	rendered := make([]any, len(panels))
	for i, p := range panels {
		rendered[i] = p.render(i)
	}
	content, err := json.MarshalIndent(map[string]any{
		"uid": "lockstep", "title": "Lockstep", "tags": []string{"dns", "lockstep"}, "schemaVersion": 39, "editable": false,
		"refresh": "30s", "time": map[string]any{"from": "now-3h", "to": "now"}, "panels": rendered,
		"templating": map[string]any{"list": []any{map[string]any{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}},
	}, "", "  ")
	return append(content, '\n'), err
}

func main() {
	content, err := renderDashboard()
	if err == nil {
		_, err = os.Stdout.Write(content)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

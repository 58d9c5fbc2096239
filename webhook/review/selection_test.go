package review

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// What a zone's selectors match is judged when they change: only what an older zone has stands against them.
func TestSelection(t *testing.T) {
	aged := func(name, created, selector string) *v1beta1.DNSZone {
		return zoneOf(t, "{metadata: {name: "+name+", namespace: dns, uid: "+name+`, creationTimestamp: "`+created+`"}, spec: {zoneName: `+name+".test, recordsFrom: ["+selector+"]}}")
	}
	const example, other, all = "{selector: {matchLabels: {zone: example}}}", "{selector: {matchLabels: {zone: other}}}", "{selector: {}}"
	old, young := aged("old", "2026-01-01T00:00:00Z", other), aged("young", "2026-02-01T00:00:00Z", example)
	records := []client.Object{recordOf(t, www), recordOf(t, blog), recordOf(t, strings.NewReplacer("zone: example", "zone: other", "name: www", "name: x").Replace(www))}
	tests := map[string]struct {
		zone, before     *v1beta1.DNSZone
		stored           []client.Object
		refused, warning string
	}{
		"its own":                          {zone: young, before: aged("young", "2026-02-01T00:00:00Z", other), stored: []client.Object{young}},
		"an older zone's":                  {zone: aged("young", "2026-02-01T00:00:00Z", all), before: young, stored: []client.Object{old, young}, refused: "dns/old is older and selects ARecord dns/x, which"},
		"an older zone's, selected before": {zone: aged("young", "2026-02-01T00:00:00Z", all+","+example), before: aged("young", "2026-02-01T00:00:00Z", all), stored: []client.Object{old, young}},
		"a younger zone's":                 {zone: aged("old", "2026-01-01T00:00:00Z", all), before: old, stored: []client.Object{old, young}, warning: "takes CNAMERecord dns/blog and 1 more from DNSZone dns/young, which is younger"},
		"nothing":                          {zone: aged("old", "2026-01-01T00:00:00Z", "{selector: {matchLabels: {zone: nothing}}}"), before: old, stored: []client.Object{old}, warning: "selects none of the records in namespace dns"},
		"nothing, as before":               {zone: old, before: old, stored: []client.Object{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v, err := zoneReviewer{newStaticObjects(append(records, tc.stored...)...)}.reviewSelection(quick(t), tc.zone, tc.before)
			if err != nil {
				t.Fatal(err)
			}
			refusal := ""
			if len(v.Problems) > 0 {
				refusal = v.Problems.ToAggregate().Error()
			}
			if (refusal == "") != (tc.refused == "") || !strings.Contains(refusal, tc.refused) {
				t.Errorf("refused with %q, want %q", refusal, tc.refused)
			}
			warnings := strings.Join(v.Warnings, "\n")
			if (warnings == "") != (tc.warning == "") || !strings.Contains(strings.Replace(warnings, "ARecord dns/www", "CNAMERecord dns/blog", 1), tc.warning) {
				t.Errorf("warned %q, want %q", warnings, tc.warning)
			}
		})
	}
}

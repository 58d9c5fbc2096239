package review

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// A record of another namespace is reviewed as one of the zone that selects its namespace: its data, and beside all that the zone has at its name.
// Messages name no object of the other namespace.
func TestReviewOfRecordsOfOtherNamespaces(t *testing.T) {
	open := zoneOf(t, "{metadata: {name: example-com, namespace: dns, uid: z1}, spec: {zoneName: example.com, soaRecord: {primaryNs: ns1.example.com., adminEmail: a@example.com}, recordsFrom: [{selector: {}, namespaceSelector: {matchLabels: {team: 'yes'}}}]}}")
	own := recordOf(t, www)
	guest := func(namespace, allow, name string) string {
		return fmt.Sprintf(`{kind: CNAMERecord, metadata: {name: guest, namespace: %s, annotations: {bindy.firestoned.io/allow-zone-namespaces: %q}}, spec: {name: %q, target: x.test.}}`, namespace, allow, name)
	}
	for name, tc := range map[string]struct {
		object  string
		allowed bool
		want    string
	}{
		"good":                   {guest("team", "dns", "blog"), true, ""},
		"bad name":               {guest("team", "dns", "a..b"), false, "spec.name"},
		"beside the zone's own":  {guest("team", "dns", "www"), true, "declared by an object of the zone's namespace, which comes first"},
		"at the apex":            {guest("team", "dns", "@"), false, "apex"},
		"no consent":             {guest("team", "", "blog"), true, ""},
		"consent to others":      {guest("team", "elsewhere", "blog"), true, "no DNSZone in namespace team selects this CNAMERecord"},
		"namespace not selected": {guest("other", "dns", "www"), true, "no DNSZone in namespace other selects this CNAMERecord"},
	} {
		objects := newStaticObjects(open, own, namespaceOf("team", "yes"), namespaceOf("other", "no"))
		answer := NewHandler(objects).Handle(quick(t), request(t, tc.object, ""))
		message := strings.Join(answer.Warnings, "\n")
		if !answer.Allowed {
			message = answer.Result.Message
		}
		if answer.Allowed != tc.allowed || (tc.want == "") != (message == "") || !strings.Contains(message, tc.want) || strings.Contains(message, "dns/www") {
			t.Errorf("%s: allowed %t, %q", name, answer.Allowed, message)
		}
	}
	// The zone's owner who takes the name of an older record of another namespace learns that it is one.
	older := recordOf(t, strings.Replace(guest("team", "dns", "shop"), "name: guest,", `name: guest, uid: r9, creationTimestamp: "2026-01-02T00:00:00Z",`, 1))
	answer := NewHandler(newStaticObjects(open, older, namespaceOf("team", "yes"))).Handle(quick(t), request(t, record("ARecord", "shop", "{name: shop, ipv4Addresses: [192.0.2.7]}"), ""))
	if message := strings.Join(answer.Warnings, "\n"); !answer.Allowed || !strings.Contains(message, "declared by an object of another namespace, is not published any more") || strings.Contains(message, "team") {
		t.Errorf("allowed %t, %q", answer.Allowed, message)
	}
	bad := zone("z", `zoneName: other.test, recordsFrom: [{selector: {}, namespaceSelector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}}]`)
	if answer := NewHandler(example(t)).Handle(quick(t), request(t, bad, "")); answer.Allowed || !strings.Contains(answer.Result.Message, "spec.recordsFrom[0].namespaceSelector.matchExpressions[0]") {
		t.Errorf("a bad selector: %+v", answer.Result)
	}
	// A new zone of the record's own namespace takes it, and says so.
	taking := `{kind: DNSZone, metadata: {name: own, namespace: team}, spec: {zoneName: team.test, soaRecord: {primaryNs: ns1.team.test., adminEmail: a@team.test}, nameServers: [{hostname: ns1.team.test., ipv4Address: 192.0.2.1}], recordsFrom: [{selector: {}}]}}`
	answer = NewHandler(newStaticObjects(open, older, namespaceOf("team", "yes"))).Handle(quick(t), request(t, taking, ""))
	if message := strings.Join(answer.Warnings, "\n"); !answer.Allowed || !strings.Contains(message, "takes CNAMERecord team/guest from a zone of another namespace") || strings.Contains(message, "example-com") {
		t.Errorf("a zone of its own: allowed %t, %q", answer.Allowed, message)
	}
}

func namespaceOf(name, team string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
}

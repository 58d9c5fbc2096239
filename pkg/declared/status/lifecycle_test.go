package status

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// An object is stalled for a reason for which a person has to act, and not while it waits for others.
func TestStalled(t *testing.T) {
	now := time.Now()
	zone := &v1beta1.DNSZone{}
	record := func(accepted Verdict) []metav1.Condition {
		return Record(v1beta1.RecordStatus{}, RecordFacts{Zone: zone, Accepted: accepted, Programmed: False(accepted.Reason, ""), ReadyReason: accepted.Reason}, now).Conditions
	}
	provider := func(f ProviderFacts) []metav1.Condition {
		return Provider(v1beta1.DNSProviderStatus{}, f, now).Conditions
	}
	refused := v1beta1.RecordStatus{Conditions: record(False(Conflict, "www.example.com. already has a CNAME"))}
	tests := map[string]struct {
		conditions []metav1.Condition
		reason     string
	}{
		"a record in conflict":            {refused.Conditions, Conflict},
		"it is not selected any more":     {Unselected(refused, 2, NoZoneSelects(&metav1.ObjectMeta{Namespace: "team"}), now).Conditions, ""},
		"it waits to move":                {Held(refused, 2, "it waits", now).Conditions, ""},
		"it is accepted":                  {Record(refused, RecordFacts{Zone: zone, Accepted: True(Accepted, ""), Programmed: True(Programmed, "")}, now).Conditions, ""},
		"a record that is not programmed": {record(True(Accepted, "")), ""},
		"a zone that is not permitted": {
			Zone(v1beta1.DNSZoneStatus{}, ZoneFacts{Programmed: False(NotPermitted, "ask"), Failure: False(NotPermitted, "ask")}, now).Conditions, NotPermitted,
		},
		"a zone whose primary is away": {Zone(v1beta1.DNSZoneStatus{}, ZoneFacts{Programmed: False(PrimaryFailed, "timeout")}, now).Conditions, ""},
		"a provider that refuses the key": {
			provider(ProviderFacts{Servers: []ProviderServerFacts{{Role: "Primary", Reachable: true, Problem: "BADKEY"}}}), AuthenticationFailed,
		},
		"a provider that is silent":            {provider(ProviderFacts{Servers: []ProviderServerFacts{{Role: "Primary", Problem: "timeout"}}}), ""},
		"a provider without its Secret":        {provider(ProviderFacts{KeyProblem: "no Secret keys"}), ""},
		"a provider of which no kind is known": {provider(ProviderFacts{Unsupported: "both"}), Unsupported},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := meta.FindStatusCondition(tc.conditions, Stalled)
			switch {
			case c == nil && tc.reason != "":
				t.Errorf("it is not stalled; conditions: %+v", tc.conditions)
			case c != nil && (c.Status != metav1.ConditionTrue || c.Reason != tc.reason):
				t.Errorf("Stalled is %s %s, want reason %q", c.Status, c.Reason, tc.reason)
			}
		})
	}
}

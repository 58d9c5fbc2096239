package status

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

func TestFailureOf(t *testing.T) {
	condition := func(kind string, s metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: s, Reason: reason, ObservedGeneration: 2}
	}
	record := func(conditions ...metav1.Condition) *v1beta1.ARecord {
		r := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		r.Status.Conditions = conditions
		return r
	}
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	zone.Status.ObservedGeneration, zone.Status.FailureReason = 2, "Refused"
	changed, deleted := zone.DeepCopy(), zone.DeepCopy()
	changed.Generation = 3
	deleted.DeletionTimestamp = new(metav1.Now())
	old := record(condition(Accepted, metav1.ConditionFalse, Invalid))
	old.Generation = 3
	provider := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	provider.Status.Conditions = []metav1.Condition{condition(Ready, metav1.ConditionFalse, TransferRefused)}
	endpoint := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	endpoint.Status.Conditions = []metav1.Condition{condition(Accepted, metav1.ConditionFalse, NoMatchingZone)}
	for name, c := range map[string]struct {
		object metav1.Object
		want   string
	}{
		"a zone":                       {zone, "Refused"},
		"a zone whose spec is new":     {changed, ""},
		"a zone that is being deleted": {deleted, ""},
		"a provider":                   {provider, TransferRefused},
		"an endpoint":                  {endpoint, NoMatchingZone},
		"a new record":                 {record(), ""},
		"a programmed record":          {record(condition(Ready, metav1.ConditionTrue, ReconcileSucceeded), condition(Programmed, metav1.ConditionTrue, Programmed)), ""},
		"not accepted":                 {record(condition(Ready, metav1.ConditionFalse, ReconcileFailed), condition(Accepted, metav1.ConditionFalse, Invalid)), Invalid},
		"not programmed":               {record(condition(Accepted, metav1.ConditionTrue, Accepted), condition(Programmed, metav1.ConditionFalse, ReconcileFailed)), ReconcileFailed},
		"selected by no zone":          {record(condition(Ready, metav1.ConditionFalse, NotSelected)), NotSelected},
		"waits for another zone":       {record(condition(Ready, metav1.ConditionFalse, Pending), condition(Programmed, metav1.ConditionFalse, Pending)), ""},
		"its zone has the problem":     {record(condition(Accepted, metav1.ConditionTrue, Accepted), condition(Programmed, metav1.ConditionFalse, PrimaryFailed)), ""},
		"another generation":           {old, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FailureOf(c.object); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

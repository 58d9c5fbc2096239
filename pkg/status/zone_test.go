package status

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

func TestZoneVerdicts(t *testing.T) {
	fine := Yes(ReconcileSucceeded, "")
	cases := map[string]struct {
		facts                        ZoneFacts
		ready, progressing, degraded metav1.ConditionStatus
		reason                       string
	}{
		"all in step":              {ZoneFacts{Problem: fine, Programmed: 1, Servers: 3, Current: 3}, "True", "False", "False", ReconcileSucceeded},
		"a secondary is stuck":     {ZoneFacts{Problem: fine, Programmed: 1, Servers: 3, Current: 2, Untransferred: "b-0: no"}, "True", "False", "True", ReconcileSucceeded},
		"a secondary follows":      {ZoneFacts{Problem: fine, Programmed: 1, Servers: 3, Current: 2}, "True", "True", "True", ReconcileSucceeded},
		"a record was refused":     {ZoneFacts{Problem: fine, Programmed: 1, Unready: 1, Servers: 3, Current: 3}, "False", "False", "True", PartialReconciliation},
		"paused, as declared":      {ZoneFacts{Problem: fine, Paused: true, Programmed: 1, Servers: 3, Current: 3}, "True", "False", "False", Paused},
		"paused, not as declared":  {ZoneFacts{Problem: fine, Paused: true, Pending: 2, Unready: 1, Servers: 3, Current: 3}, "False", "False", "True", Paused},
		"the primary is not there": {ZoneFacts{Problem: No(PrimaryFailed, "gone"), Unready: 2, Servers: 3}, "False", "False", "True", PrimaryFailed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Zone(v1beta1.DNSZoneStatus{}, c.facts, early).Conditions
			want := map[string]metav1.ConditionStatus{Ready: c.ready, Progressing: c.progressing, Degraded: c.degraded}
			for kind, status := range want {
				if s := meta.FindStatusCondition(got, kind).Status; s != status {
					t.Errorf("%s is %s, want %s", kind, s, status)
				}
			}
			if r := meta.FindStatusCondition(got, Ready).Reason; r != c.reason {
				t.Errorf("the reason is %s, want %s", r, c.reason)
			}
		})
	}
}

func TestZoneIsUnchangedByTheSameFacts(t *testing.T) {
	facts := func() ZoneFacts {
		return ZoneFacts{Generation: 1, Serial: 7, Problem: Yes(ReconcileSucceeded, ""), Servers: 1, Current: 1,
			Instances: []v1beta1.ZoneInstance{{Name: "dns-primary-0", Status: v1beta1.ZoneConfigured}}}
	}
	first := Zone(v1beta1.DNSZoneStatus{}, facts(), early)
	if diff := cmp.Diff(first, Zone(first, facts(), late)); diff != "" {
		t.Errorf("the same facts an hour later changed the status:\n%s", diff)
	}
	failed := facts()
	failed.Instances[0].Status = v1beta1.ZoneFailed
	if at := Zone(first, failed, late).Bind9Instances[0].LastReconciledAt; !at.Time.Equal(late) {
		t.Errorf("an instance failed at %s, the status says %s", late, at)
	}
}

func TestZoneListsABoundedNumberOfRecordsAndCountsAll(t *testing.T) {
	var records []v1beta1.RecordReference
	for i := range MaxZoneRecords + 5 {
		records = append(records, v1beta1.RecordReference{Name: fmt.Sprint(i)})
	}
	got := Zone(v1beta1.DNSZoneStatus{}, ZoneFacts{Problem: Yes(ReconcileSucceeded, ""), Programmed: len(records), Records: records}, early)
	if len(got.Records) != MaxZoneRecords || int(got.RecordsCount) != MaxZoneRecords+5 {
		t.Errorf("%d records listed, %d counted", len(got.Records), got.RecordsCount)
	}
}

func TestZoneKeepsItsRecordsWhileAPrimaryIsAway(t *testing.T) {
	fine := Zone(v1beta1.DNSZoneStatus{}, ZoneFacts{Problem: Yes(ReconcileSucceeded, ""), Programmed: 1, Records: []v1beta1.RecordReference{{Name: "www"}}}, early)
	away := Zone(fine, ZoneFacts{Problem: No(PrimaryFailed, "connection refused"), Unready: 1}, late)
	if away.RecordsCount != 1 || len(away.Records) != 1 {
		t.Errorf("the zone lists %v and counts %d", away.Records, away.RecordsCount)
	}
	if meta.IsStatusConditionTrue(away.Conditions, Ready) {
		t.Error("the zone is Ready without its primary")
	}
}

// TestDNSSECStatusStays while nobody has seen the zone: that a zone was signed is what keeps it signed.
func TestDNSSECStatusStays(t *testing.T) {
	signed := &v1beta1.DNSSECStatus{Signed: true, Policy: "default", DSRecords: []string{"example. 3600 IN DS 1 13 2 00"}}
	prev := v1beta1.DNSZoneStatus{DNSSEC: signed}
	for name, c := range map[string]struct {
		facts ZoneFacts
		want  *v1beta1.DNSSECStatus
	}{
		"not seen":           {ZoneFacts{Problem: No(NoPrimaryInstances, "none")}, signed},
		"a primary is away":  {ZoneFacts{Problem: No(PrimaryFailed, "away"), DNSSECKnown: true}, signed},
		"seen, and unsigned": {ZoneFacts{Problem: Yes(ReconcileSucceeded, ""), DNSSECKnown: true}, nil},
		"seen":               {ZoneFacts{Problem: Yes(ReconcileSucceeded, ""), DNSSECKnown: true, DNSSEC: signed}, signed},
	} {
		if got := Zone(prev, c.facts, time.Now()).DNSSEC; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: status.dnssec is %+v, want %+v", name, got, c.want)
		}
	}
}

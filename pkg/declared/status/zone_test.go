package status

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

func TestZoneVerdicts(t *testing.T) {
	fine := True(ReconcileSucceeded, "")
	cases := map[string]struct {
		facts                        ZoneFacts
		ready, progressing, degraded metav1.ConditionStatus
		reason                       string
	}{
		"all in sync":              {ZoneFacts{Programmed: fine, Ready: 1, Servers: 3, Current: 3}, "True", "False", "False", ReconcileSucceeded},
		"a secondary is stuck":     {ZoneFacts{Programmed: fine, Ready: 1, Servers: 3, Current: 2, Untransferred: "b-0: no"}, "True", "False", "True", ReconcileSucceeded},
		"a secondary follows":      {ZoneFacts{Programmed: fine, Ready: 1, Servers: 3, Current: 2}, "True", "True", "True", ReconcileSucceeded},
		"its name servers wait":    {ZoneFacts{Programmed: fine, Waiting: "no address", Ready: 1, Servers: 3, Current: 3}, "False", "False", "True", AddressPending},
		"a record was refused":     {ZoneFacts{Programmed: fine, Ready: 1, Unready: 1, Servers: 3, Current: 3}, "False", "False", "True", PartialReconciliation},
		"paused, as declared":      {ZoneFacts{Programmed: fine, Paused: true, Ready: 1, Servers: 3, Current: 3}, "True", "False", "False", Paused},
		"paused, not as declared":  {ZoneFacts{Programmed: fine, Paused: true, Pending: 2, Unready: 1, Servers: 3, Current: 3}, "False", "False", "True", Paused},
		"held by its guard":        {ZoneFacts{Programmed: fine, HeldPlan: "f00d", Guarded: False(ReasonHeld, "3 removals"), Ready: 1, Unready: 1, Servers: 3, Current: 3}, "False", "False", "True", ReasonHeld},
		"the primary is not there": {ZoneFacts{Programmed: False(PrimaryFailed, "gone"), Unready: 2, Servers: 3}, "False", "False", "True", PrimaryFailed},
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

// The plan that is held back stays in the status while nobody knows what primaries hold: another controller has to know of it.
func TestZoneHeldPlan(t *testing.T) {
	facts := ZoneFacts{Programmed: True(ReconcileSucceeded, ""), Servers: 1, Current: 1, HeldPlan: "f00d", Guarded: False(ReasonHeld, "3 removals")}
	s := Zone(v1beta1.DNSZoneStatus{}, facts, early)
	if s = Zone(s, ZoneFacts{Programmed: False(PrimaryFailed, "gone")}, late); s.HeldPlan != "f00d" {
		t.Errorf("the plan is %q while a primary is away", s.HeldPlan)
	}
	if s = Zone(s, ZoneFacts{Programmed: facts.Programmed, Servers: 1, Current: 1}, late); s.HeldPlan != "" {
		t.Errorf("the plan is %q when nothing is held back", s.HeldPlan)
	}
}

// TestZoneContested: the condition is there while somebody overwrites RRsets, and stays while nothing is known.
func TestZoneContested(t *testing.T) {
	facts := ZoneFacts{Programmed: True(ReconcileSucceeded, ""), Servers: 1, Current: 1, Contested: []string{"www. A"}}
	s := Zone(v1beta1.DNSZoneStatus{}, facts, early)
	if c := meta.FindStatusCondition(s.Conditions, Contested); c == nil || c.Status != metav1.ConditionTrue || c.Reason != Overwritten || c.Message != "www. A" {
		t.Errorf("%+v", c)
	}
	if s = Zone(s, ZoneFacts{Programmed: False(PrimaryFailed, "gone")}, late); meta.FindStatusCondition(s.Conditions, Contested) == nil {
		t.Error("it ends when a primary is away")
	}
	facts.Contested = nil
	if s = Zone(s, facts, late); meta.FindStatusCondition(s.Conditions, Contested) != nil {
		t.Error("it never ends")
	}
}

// TestZoneTransferReasons: the conditions tell whether the secondaries have followed.
func TestZoneTransferReasons(t *testing.T) {
	facts := ZoneFacts{Programmed: True(ReconcileSucceeded, ""), Ready: 1, Servers: 3, Current: 2, Untransferred: "b-0: no"}
	stuck := ZoneVerdictsOf(facts)
	if stuck.Progressing != False(ZoneTransferFailed, "b-0: no") || stuck.Degraded != True(ZoneTransferFailed, "b-0: no") {
		t.Errorf("%+v", stuck)
	}
	facts.Untransferred, facts.Current = "", 3
	if v := ZoneVerdictsOf(facts); v.Progressing.Holds() || v.Progressing.Reason != ZoneTransferComplete {
		t.Errorf("%+v", v)
	}
}

// TestZoneElsewhere: endpoints for other programs make no zone unhealthy, and are counted apart.
func TestZoneElsewhere(t *testing.T) {
	v := ZoneVerdictsOf(ZoneFacts{Programmed: True(ReconcileSucceeded, ""), Ready: 3, Elsewhere: 2, Servers: 1, Current: 1, Serial: 7})
	if want := "1 of 1 servers hold serial 7, 3 of 3 records are programmed; 2 endpoints of types that are not published here"; !v.Ready.Holds() || v.Degraded.Holds() || v.Ready.Message != want {
		t.Errorf("%+v", v)
	}
}

// TestZoneWithoutServers: a zone that no server has is not ready, whatever else is known of it.
func TestZoneWithoutServers(t *testing.T) {
	v := ZoneVerdictsOf(ZoneFacts{Programmed: True(ReconcileSucceeded, ""), Ready: 3})
	if v.Ready.Holds() || v.Ready.Reason != NoPrimaryInstances || !v.Degraded.Holds() {
		t.Errorf("%+v", v)
	}
}

// TestZoneDeadline: an instance that is without the zone for too long makes the zone say so until it has it, or until the
// zone is declared otherwise.
func TestZoneDeadline(t *testing.T) {
	facts := ZoneFacts{Generation: 1, Programmed: True(ReconcileSucceeded, ""), Ready: 1, Servers: 2, Current: 1}
	var s v1beta1.DNSZoneStatus
	after := func(wait time.Duration, state v1beta1.ZoneInstanceStatus, message string) []metav1.Condition {
		facts.Instances = []v1beta1.ZoneInstance{
			{Namespace: "dns", Name: "a", Status: v1beta1.ZoneConfigured}, {Namespace: "dns", Name: "b", Status: state, Message: message},
		}
		s = Zone(s, facts, early.Add(wait))
		return s.Conditions
	}
	says := func(conditions []metav1.Condition, kind, want string) {
		t.Helper()
		c := meta.FindStatusCondition(conditions, kind)
		if got := fmt.Sprintf("%s %s", c.Status, c.Reason); got != want {
			t.Errorf("%s is %s: %s, want %s", kind, got, c.Message, want)
		}
	}
	after(0, v1beta1.ZoneClaimed, "b-0 does not serve the zone yet")
	says(after(20*time.Minute, v1beta1.ZoneFailed, "b-0: no"), Progressing, "True Progressing")
	late := after(ZoneTimeout, v1beta1.ZoneFailed, "b-0: no")
	says(late, Progressing, "False ProgressDeadlineExceeded")
	says(late, Degraded, "True ProgressDeadlineExceeded")
	says(late, Ready, "True ReconcileSucceeded")
	if got, want := meta.FindStatusCondition(late, Progressing).Message, "instance dns/b has been without the zone for 30m0s: b-0: no"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	told := s
	after(40*time.Minute, v1beta1.ZoneFailed, "b-0: no")
	if diff := cmp.Diff(told, s); diff != "" {
		t.Errorf("ten minutes later the status changes:\n%s", diff)
	}
	facts.Generation = 2
	says(after(41*time.Minute, v1beta1.ZoneFailed, "b-0: no"), Progressing, "True Progressing")
	says(after(71*time.Minute, v1beta1.ZoneFailed, "b-0: no"), Progressing, "False ProgressDeadlineExceeded")
	facts.Current = 2
	has := after(72*time.Minute, v1beta1.ZoneConfigured, "")
	says(has, Progressing, "False ZoneTransferComplete")
	says(has, Degraded, "False ReconcileSucceeded")
}

// What only a person can end is a failure of the zone while it lasts.
func TestZoneFailure(t *testing.T) {
	refused := False(PrimaryFailed, "1 of 1 primaries cannot be programmed; dns-primary-0-0: update: answered REFUSED")
	failed := Zone(v1beta1.DNSZoneStatus{}, ZoneFacts{Programmed: refused, Failure: False("Refused", refused.Message)}, early)
	if failed.FailureReason != "Refused" || failed.FailureMessage != refused.Message {
		t.Errorf("failure %q: %q", failed.FailureReason, failed.FailureMessage)
	}
	if away := Zone(failed, ZoneFacts{Programmed: refused}, late); away.FailureReason != "" || away.FailureMessage != "" {
		t.Errorf("the failure stays: %q: %q", away.FailureReason, away.FailureMessage)
	}
	overdue := ZoneFacts{Programmed: True(ReconcileSucceeded, ""), Instances: []v1beta1.ZoneInstance{{Name: "a", Status: v1beta1.ZoneFailed, Message: "a-0: no"}}}
	was := Zone(v1beta1.DNSZoneStatus{}, overdue, early)
	if is := Zone(was, overdue, early.Add(ZoneTimeout)); was.FailureReason != "" || is.FailureReason != ProgressDeadlineExceeded || is.FailureMessage == "" {
		t.Errorf("failure %q, after the deadline %q: %q", was.FailureReason, is.FailureReason, is.FailureMessage)
	}
}

func TestZoneIsUnchangedByTheSameFacts(t *testing.T) {
	facts := func() ZoneFacts {
		return ZoneFacts{Generation: 1, Serial: 7, SerialKnown: true, Programmed: True(ReconcileSucceeded, ""), Servers: 1, Current: 1,
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

// Any serial may be a zone's, 0 too. The last known one remains while nobody knows it.
func TestZoneKeepsItsLastKnownSerial(t *testing.T) {
	var zone v1beta1.DNSZoneStatus
	for i, step := range []struct {
		serial uint32
		known  bool
		want   *int64
	}{
		{0, false, nil}, {math.MaxUint32, true, new(int64(math.MaxUint32))}, {0, true, new(int64(0))}, {7, false, new(int64(0))}, {1, true, new(int64(1))},
	} {
		zone = Zone(zone, ZoneFacts{Serial: step.serial, SerialKnown: step.known, Programmed: True(ReconcileSucceeded, "")}, early)
		if diff := cmp.Diff(step.want, zone.Serial); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestZoneListsABoundedNumberOfRecordsAndCountsAll(t *testing.T) {
	var records []v1beta1.RecordReference
	for i := range MaxZoneRecords + 5 {
		records = append(records, v1beta1.RecordReference{Name: fmt.Sprint(i)})
	}
	got := Zone(v1beta1.DNSZoneStatus{}, ZoneFacts{Programmed: True(ReconcileSucceeded, ""), Ready: len(records), Records: records}, early)
	if len(got.Records) != MaxZoneRecords || int(got.RecordsCount) != MaxZoneRecords+5 {
		t.Errorf("%d records listed, %d counted", len(got.Records), got.RecordsCount)
	}
}

func TestZoneKeepsItsRecordsWhileAPrimaryIsAway(t *testing.T) {
	fine := Zone(v1beta1.DNSZoneStatus{}, ZoneFacts{Programmed: True(ReconcileSucceeded, ""), Ready: 1, Records: []v1beta1.RecordReference{{Name: "www"}}}, early)
	away := Zone(fine, ZoneFacts{Programmed: False(PrimaryFailed, "connection refused"), Unready: 1}, late)
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
		"not seen":           {ZoneFacts{Programmed: False(NoPrimaryInstances, "none")}, signed},
		"a primary is away":  {ZoneFacts{Programmed: False(PrimaryFailed, "away"), DNSSECKnown: true}, signed},
		"seen, and unsigned": {ZoneFacts{Programmed: True(ReconcileSucceeded, ""), DNSSECKnown: true}, nil},
		"seen":               {ZoneFacts{Programmed: True(ReconcileSucceeded, ""), DNSSECKnown: true, DNSSEC: signed}, signed},
	} {
		if got := Zone(prev, c.facts, time.Now()).DNSSEC; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: status.dnssec is %+v, want %+v", name, got, c.want)
		}
	}
}

// The status of a pass tells since when a zone is somewhere if nothing is known. What was recorded since is later than the pass.
func TestZoneKeepsArrivals(t *testing.T) {
	of := func(host string) *v1beta1.ZoneArrivals {
		return &v1beta1.ZoneArrivals{Hosts: []v1beta1.ZoneArrival{{Host: host, Since: "2026-01-01T00:00:00.000000Z"}}}
	}
	facts := ZoneFacts{Programmed: True("", ""), Arrivals: of("cluster/none")}
	if got := Zone(v1beta1.DNSZoneStatus{}, facts, early).Arrivals; !reflect.DeepEqual(got, facts.Arrivals) {
		t.Errorf("the first status has arrivals %+v", got)
	}
	for _, recorded := range []*v1beta1.ZoneArrivals{of("cluster/shared"), {}} {
		if got := Zone(v1beta1.DNSZoneStatus{Arrivals: recorded}, facts, early).Arrivals; !reflect.DeepEqual(got, recorded) {
			t.Errorf("%+v became %+v", recorded, got)
		}
	}
}

// What is known of a zone stays while its primaries cannot be asked, and goes when nobody serves it.
func TestZoneKeepsWhatIsKnown(t *testing.T) {
	instances := []v1beta1.ZoneInstance{{Namespace: "dns", Name: "b", Status: v1beta1.ZoneConfigured}}
	known := Zone(v1beta1.DNSZoneStatus{}, ZoneFacts{Programmed: True("", ""), Ready: 1, Records: make([]v1beta1.RecordReference, 1), Instances: instances}, early)
	for name, c := range map[string]struct {
		facts     ZoneFacts
		instances int
		records   int32
	}{
		"a primary is silent":       {ZoneFacts{Programmed: False(PrimaryFailed, ""), Instances: instances}, 1, 1},
		"secondaries alone":         {ZoneFacts{Programmed: False(NoPrimaryInstances, ""), Instances: instances}, 1, 1},
		"the zone cannot be built":  {ZoneFacts{Programmed: False(ReconcileFailed, "")}, 1, 1},
		"no servers":                {ZoneFacts{Programmed: False(NoPrimaryInstances, "")}, 0, 0},
		"served nowhere, by choice": {ZoneFacts{Programmed: False(NotPermitted, "")}, 0, 0},
	} {
		got := Zone(known, c.facts, late)
		if got.RecordsCount != c.records || len(got.Records) != int(c.records) || int(got.Bind9InstancesCount) != c.instances || len(got.Bind9Instances) != c.instances {
			t.Errorf("%s: %d records, %d instances", name, got.RecordsCount, got.Bind9InstancesCount)
		}
	}
}

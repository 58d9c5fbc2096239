package registry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

func TestTable(t *testing.T) {
	now := time.Now()
	at := metav1.NewMicroTime(now.Add(-20 * time.Millisecond))
	behind := &v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{Name: "arecord.www", ResourceVersion: "7"},
		ObjectRef:  v1alpha1.ObjectReference{Kind: "ARecord"}, Zone: "example.com", ObservedAt: &at,
		Status: v1alpha1.SyncStatusStatus{Phase: v1alpha1.PhasePropagating, Conditions: []metav1.Condition{
			{Type: "Accepted", Reason: "Accepted"}, {Type: "Propagated", Reason: "Stale", Message: "1 of 2 servers in sync"},
		}},
		Summary: v1alpha1.Summary{Servers: 2, InSync: 1},
		Servers: []v1alpha1.ServerStatus{
			{Serial: new(int64(3)), SerialLag: new(int64(0)), RTT: &metav1.Duration{Duration: 412 * time.Microsecond}},
			{Serial: new(int64(4294967294)), SerialLag: new(int64(5)), RTT: &metav1.Duration{Duration: time.Millisecond}},
		},
	}
	failed := &v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{Name: "arecord.bad"}, ObjectRef: v1alpha1.ObjectReference{Kind: "ARecord"},
		Status: v1alpha1.SyncStatusStatus{Phase: v1alpha1.PhaseFailed, FailureReason: "Invalid", FailureMessage: "spec.ipv4Addresses[0]: …"},
	}
	spread := behind.DeepCopy()
	spread.Name, spread.Zone, spread.ObjectRef.Kind = "dnsendpoint.web", "example.com,example.org", "DNSEndpoint"
	silent := behind.DeepCopy()
	silent.Status.Conditions[1].Reason = "Unreachable"
	silent.Servers[0].State, silent.Servers[1].State = v1alpha1.StateStale, v1alpha1.StateUnreachable
	list := &v1alpha1.SyncStatusList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []v1alpha1.SyncStatus{*behind, *failed, *spread, *silent}}
	out, err := table{}.ConvertToTable(t.Context(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]any
	for _, r := range out.Rows {
		r.Cells[7] = "" // the age moves
		got = append(got, r.Cells)
	}
	want := [][]any{
		{"arecord.www", "example.com", "Propagating", "1/2", "3", "5", "Stale", "", "ARecord", "1ms", "1 of 2 servers in sync"},
		{"arecord.bad", "", "Failed", "0/0", "", "", "Invalid", "", "ARecord", "", "spec.ipv4Addresses[0]: …"},
		{"dnsendpoint.web", "example.com,example.org", "Propagating", "1/2", "", "5", "Stale", "", "DNSEndpoint", "1ms", "1 of 2 servers in sync"},
		{"arecord.www", "example.com", "Propagating", "1/2", "3", "5", "Unreachable,Stale", "", "ARecord", "1ms", "1 of 2 servers in sync"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if out.ResourceVersion != "9" {
		t.Errorf("resourceVersion %q, want the list's", out.ResourceVersion)
	}
	var shown []string
	for _, c := range out.ColumnDefinitions {
		if c.Priority == 0 {
			shown = append(shown, strings.ToUpper(c.Name))
		}
	}
	if want := strings.Fields("NAME ZONE PHASE SERVERS SERIAL LAG REASON OBSERVED"); !slices.Equal(shown, want) {
		t.Errorf("columns %v, want %v", shown, want)
	}
	if none, _ := (table{}).ConvertToTable(t.Context(), list, &metav1.TableOptions{NoHeaders: true}); len(none.ColumnDefinitions) > 0 {
		t.Error("headers although none were asked for")
	}
}

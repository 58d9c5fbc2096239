package syncstatus

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// noted are the conditions of the SyncStatuses of all tests, "Programmed=False", by reason.
var noted = map[string]map[string]bool{}

// note notes what a SyncStatus says, for TestMain.
func note(s *syncv1.SyncStatus) *syncv1.SyncStatus {
	for _, c := range s.Status.Conditions {
		if noted[c.Reason] == nil {
			noted[c.Reason] = map[string]bool{}
		}
		noted[c.Reason][c.Type+"="+string(c.Status)] = true
	}
	return s
}

// What no other test has: primaries that differ in what they answer, a record that no pass has taken yet, and pods none of which is ready.
func TestFurtherReasons(t *testing.T) {
	for want, states := range map[string][]syncv1.ServerState{"False Lame": {syncv1.StateLame}, "False Unreachable": {syncv1.StateStale, syncv1.StateUnreachable}} {
		v := statusFacts{accepted: status.True(status.Accepted, "")}
		for _, state := range states {
			v.rows, v.waiting = append(v.rows, syncv1.ServerStatus{Role: string(observe.Primary), State: state}), append(v.waiting, false)
		}
		if got := outcomeOf(&syncv1.SyncStatus{Status: v.buildStatus()}); got.Program != want || got.Spread != want {
			t.Errorf("%v: %+v, want %s", states, got, want)
		}
	}
	z := testZone()
	r := testRecord(z)
	d := NewDesiredState(z, build(t, z, deleted(r)), []source.Object{r}, nil)
	if got := outcomeOf(Evaluate(d, servers(), []observe.Observation{serves(7), serves(7)}, asked, History{}).RecordStatus(r)); got.Accepted != "Unknown Pending" {
		t.Errorf("%+v", got)
	}
	down := servers()
	for i := range down {
		down[i].PodReady = false
	}
	if c := note(InstanceStatus(&v1beta1.Bind9Instance{}, down, nil, asked)).Status.Conditions[0]; c.Reason != status.NotReady {
		t.Errorf("%+v", c)
	}
}

func deleted(r *v1beta1.ARecord) *v1beta1.ARecord {
	r = r.DeepCopy()
	r.DeletionTimestamp = &metav1.Time{Time: asked}
	return r
}

// TestMain compares what all tests have noted with the table of reasons. What a SyncStatus repeats of an object's conditions is not in it.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && len(noted) > 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" {
		code = compareTable()
	}
	os.Exit(code)
}

func compareTable() (code int) {
	table := map[string]map[string]bool{}
	for _, section := range status.Table {
		for _, r := range section.Reasons {
			for _, condition := range r.Conditions()["SyncStatus"] {
				if table[r.Name] == nil {
					table[r.Name] = map[string]bool{}
				}
				table[r.Name][condition] = true
			}
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(noted)) {
		if table[reason] == nil && isRepeated(noted[reason]) {
			delete(noted, reason)
		}
	}
	if !maps.EqualFunc(table, noted, maps.Equal) {
		for _, reason := range slices.Sorted(maps.Keys(table)) {
			if !maps.Equal(table[reason], noted[reason]) {
				fmt.Printf("%s: the table has %v, SyncStatuses have %v\n", reason, slices.Sorted(maps.Keys(table[reason])), slices.Sorted(maps.Keys(noted[reason])))
			}
			delete(noted, reason)
		}
		fmt.Println("not in the table:", noted)
		return 1
	}
	return 0
}

// isRepeated reports whether all conditions are such that may repeat the object's own.
func isRepeated(conditions map[string]bool) bool {
	for _, kind := range []string{syncv1.ConditionAccepted, syncv1.ConditionProgrammed, syncv1.ConditionPropagated} {
		for _, s := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
			delete(conditions, kind+"="+string(s))
		}
	}
	return len(conditions) == 0
}

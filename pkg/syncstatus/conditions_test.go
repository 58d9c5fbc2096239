package syncstatus

import (
	"testing"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// Unreachable are those that did not answer: not those whose data could not be compared or validated.
func TestSummary(t *testing.T) {
	rows := []syncv1.ServerStatus{
		{Pod: "level", State: syncv1.StateInSync, Rcode: "NOERROR"},
		{Pod: "silent", State: syncv1.StateUnreachable},
		{Pod: "not validated", State: syncv1.StateUnreachable, Rcode: "NOERROR", Security: syncv1.SecurityUnknown},
	}
	if got, want := summarizeServers(rows), (syncv1.Summary{Servers: 3, InSync: 1, Unreachable: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

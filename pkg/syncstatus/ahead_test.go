package syncstatus

import (
	"strings"
	"testing"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// A secondary that others run and that is ahead of the primaries keeps what it has, also while that happens to be right: its row says which
// serial ends it. That of shared primaries is not the zone's to set.
func TestForeignSecondaryAhead(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	desired := build(t, z, r)
	for name, c := range map[string]struct {
		seen   observe.Observation
		shared bool
		state  syncv1.ServerState
		says   string
	}{
		"with other data": {serves(9, "192.0.2.9"), false, syncv1.StateDivergent, "set spec.soaRecord.serial of the DNSZone to 10"},
		"with this data":  {holds(desired, 9), false, syncv1.StateInSync, "set spec.soaRecord.serial of the DNSZone to 10"},
		"not ahead":       {holds(desired, 7), false, syncv1.StateInSync, ""},
		"of others":       {holds(desired, 9), true, syncv1.StateInSync, ""},
	} {
		on := servers()
		for i := range on {
			if i == 1 || c.shared {
				on[i].Provider, on[i].Shared = "isp", c.shared
			}
		}
		row := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), on, []observe.Observation{holds(desired, 7), c.seen}, asked, History{}).
			RecordStatus(r).Servers[1]
		if row.State != c.state || !strings.Contains(row.Message, c.says) || (row.Message == "") != (c.says == "") {
			t.Errorf("%s: %s, %q", name, row.State, row.Message)
		}
	}
}

package secondary

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// A secondary that does not follow is left alone for a while. Then it is said what to do about it: one that is behind has a log, one that is
// ahead needs a higher serial, which the zone sets unless the primaries are shared.
func TestFollow(t *testing.T) {
	for name, c := range map[string]struct {
		have   uint32
		shared bool
		want   string
	}{
		"behind":           {5, false, "stays at serial 5 instead of 7"},
		"ahead":            {9, false, "serial 9 is ahead of the primaries' 7: no transfer will repair it until theirs is higher; set spec.soaRecord.serial of the DNSZone to 10"},
		"ahead, of shared": {9, true, "stays at serial 9 instead of 7"},
	} {
		var now time.Time
		h := Host{Foreign: host.Foreign{Access: &host.Access{
			Zone: &host.Zone{Now: func() time.Time { return now }}, Server: observe.Server{Provider: "isp", Shared: c.shared},
		}}}
		known := &host.Follower{}
		seen := observe.Observation{Serial: c.have, Authoritative: true}
		now = now.Add(time.Hour)
		if err := h.Follow(t.Context(), seen, 7, known); err != nil {
			t.Errorf("%s, at first: %v", name, err)
		}
		now = now.Add(Grace)
		if err := h.Follow(t.Context(), seen, 7, known); !errors.Is(err, host.ErrTransfer) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

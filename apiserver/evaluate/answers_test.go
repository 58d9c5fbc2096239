package evaluate

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// What servers of instances and clusters answered is known until they are asked again, which takes minutes with very many zones.
func TestFleetAnswersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, server := NewAnswers(), observe.Peer{Addr: netip.MustParseAddrPort("192.0.2.1:53")}
		place := Place{Server: server, Zone: "example.test."}
		a.KeepSerial(place, observe.Observation{At: time.Now(), Serial: 7})
		a.KeepPod(server, PodAnswer{At: time.Now(), Version: "9.20"})
		for _, step := range []struct {
			after time.Duration
			known bool
		}{{4 * time.Minute, true}, {2 * time.Minute, false}} {
			time.Sleep(step.after)
			a.KeepSerial(Place{Server: server, Zone: "other.test."}, observe.Observation{At: time.Now()}) // drops what is old
			if o, pod := a.Serial(place), a.Pod(server); (o.Serial == 7) != step.known || (pod.Version != "") != step.known {
				t.Errorf("%s later: %+v, %+v, want them known: %v", step.after, o, pod, step.known)
			}
		}
	})
}

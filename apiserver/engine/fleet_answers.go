package engine

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/observe"
)

// fleetKept is how long an answer is kept for those who ask next.
const fleetKept = time.Minute

// fleetAnswers are what servers answered about themselves and their zones.
type fleetAnswers struct {
	mu    sync.Mutex
	pods  map[netip.AddrPort]podAnswer
	zones map[zoneAt]observe.Observation
}

type zoneAt struct {
	server netip.AddrPort
	zone   string
}

type podAnswer struct {
	at               time.Time
	version, sidecar string
}

func (a *fleetAnswers) pod(at netip.AddrPort) podAnswer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods[at]
}

func (a *fleetAnswers) zone(at zoneAt) observe.Observation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.zones[at]
}

func (a *fleetAnswers) keepZone(at zoneAt, o observe.Observation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.zones == nil {
		a.zones = map[zoneAt]observe.Observation{}
	}
	a.zones[at] = o
}

func (a *fleetAnswers) keepPod(at netip.AddrPort, p podAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pods == nil {
		a.pods = map[netip.AddrPort]podAnswer{}
	}
	a.pods[at] = p
}

// sweep drops what nobody has asked for lately.
func (a *fleetAnswers) sweep() {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := time.Now().Add(-fleetKept)
	maps.DeleteFunc(a.pods, func(_ netip.AddrPort, p podAnswer) bool { return p.at.Before(old) })
	maps.DeleteFunc(a.zones, func(_ zoneAt, o observe.Observation) bool { return o.At.Before(old) })
}

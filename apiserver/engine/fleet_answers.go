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
	askingPods  flights[netip.AddrPort]
	askingZones flights[zoneAt]

	mu    sync.Mutex
	pods  map[netip.AddrPort]podAnswer
	zones map[zoneAt]observe.Observation
	swept time.Time
}

type zoneAt struct {
	server netip.AddrPort
	zone   string
}

type podAnswer struct {
	at               time.Time
	version, sidecar string
	// restarts of the pod when it told its version, at versionAt.
	restarts  int32
	versionAt time.Time
}

// versionKept is how long a server's version is taken as known while its containers run on.
const versionKept = 30 * time.Second

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

// keepZone takes over an answer, whoever asked for it.
func (a *fleetAnswers) keepZone(at zoneAt, o observe.Observation) {
	if o.Mirror = nil; o.Authoritative {
		o.Err = nil // Of a transfer: the serial is known.
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.zones == nil {
		a.zones = map[zoneAt]observe.Observation{}
	}
	if !o.At.Before(a.zones[at].At) {
		a.zones[at] = o
	}
	a.sweep()
}

func (a *fleetAnswers) keepPod(at netip.AddrPort, p podAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pods == nil {
		a.pods = map[netip.AddrPort]podAnswer{}
	}
	a.pods[at] = p
	a.sweep()
}

// sweep drops, now and then, what nobody has asked for lately. a.mu is held.
func (a *fleetAnswers) sweep() {
	if time.Since(a.swept) < fleetKept {
		return
	}
	a.swept = time.Now()
	old := a.swept.Add(-fleetKept)
	maps.DeleteFunc(a.pods, func(_ netip.AddrPort, p podAnswer) bool { return p.at.Before(old) })
	maps.DeleteFunc(a.zones, func(_ zoneAt, o observe.Observation) bool { return o.At.Before(old) })
}

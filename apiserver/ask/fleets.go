package ask

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
)

// versionTimeout is how long a server's version is taken as known while its containers run on.
const versionTimeout = 30 * time.Second

// AskFleets asks all servers of some instances and clusters, and the primaries of their zones, each once, unless they were
// asked at since or later. Somebody else asks about the places in polled: of these only those are asked that have never
// answered. It returns the number of questions that the fleets are worth.
func (a *Asker) AskFleets(ctx context.Context, since time.Time, polled map[evaluate.Place]bool, fleets ...metav1.Object) (questions int) {
	pods, places := map[observe.Peer]observe.Server{}, map[evaluate.Place]types.NamespacedName{}
	for _, o := range fleets {
		addFleet(a.index.Fleet(o), pods, places)
	}
	var wg sync.WaitGroup
	for peer, s := range pods {
		a.meter.nameServer(s)
		isAsked := func() bool { return !a.answers.Pod(peer).At.Before(since) }
		if !isAsked() {
			wg.Go(func() {
				ctx, end := a.deadlines.await(ctx, peer)
				defer end()
				a.podQuestions.await(ctx, peer, isAsked, func(ctx context.Context) { a.askPod(ctx, s) })
			})
		}
	}
	for place, secret := range places {
		isAsked := func() bool {
			last := a.answers.Serial(place).At
			return !last.IsZero() && (polled[place] || !last.Before(since))
		}
		if !isAsked() {
			wg.Go(func() {
				ctx, end := a.deadlines.await(ctx, place.Server)
				defer end()
				a.zoneQuestions.await(ctx, place, isAsked, func(ctx context.Context) { a.askSerial(ctx, place, secret) })
				if isTooSlow(ctx) && !isAsked() { // An older answer, or none, would not show that.
					a.answers.KeepSerial(place, evaluate.NoAnswer(place.Server.Addr, place.Zone, since))
				}
			})
		}
	}
	wg.Wait()
	return len(pods) + len(places)
}

// addFleet adds the servers of a fleet, and where its zones are, with the Secrets of the keys to ask with.
func addFleet(f *desired.Fleet, pods map[observe.Peer]observe.Server, places map[evaluate.Place]types.NamespacedName) {
	for _, s := range f.Servers {
		if !s.Addr.IsValid() {
			continue
		}
		pods[s.Peer()] = s
		for _, zone := range f.ZonesOf(s) {
			places[evaluate.PlaceOf(s, zone+".")] = f.TransferKey(s)
			for _, primary := range f.PrimariesOf(zone) {
				places[evaluate.PlaceOf(primary, zone+".")] = f.TransferKey(primary)
			}
		}
	}
}

// placesOf lists the servers that zones are on.
func placesOf(zones map[*desired.Zone]bool) map[evaluate.Place]bool {
	places := map[evaluate.Place]bool{}
	for z := range zones {
		for _, s := range z.Servers {
			places[evaluate.PlaceOf(s, z.Declared.ZoneName())] = true
		}
	}
	return places
}

func (a *Asker) askSerial(ctx context.Context, place evaluate.Place, secret types.NamespacedName) {
	ctx, end := a.deadlines.await(ctx, place.Server)
	defer end()
	key, ok := a.transferKey(ctx, secret)
	if !ok {
		return
	}
	o := a.observer.Serial(a.chargeTo(ctx, place.Server), place.Server, place.Zone, key)
	a.dropRefusedKey(secret, key, o)
	a.answers.KeepSerial(place, withoutProof(o, place, key, secret))
}

// askPod asks the sidecar of a server whether it and named answer, and for named's version. A server whose sidecar does not say
// is asked itself, unless its version is known or it is silent.
func (a *Asker) askPod(ctx context.Context, s observe.Server) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Deadline)
	defer cancel()
	p := evaluate.PodAnswer{At: time.Now(), Restarts: s.Restarts}
	if a.sidecars != nil {
		p.Version, p.Sidecar = a.askSidecar(ctx, s)
	}
	p.VersionAt = p.At
	if last := a.answers.Pod(s.Peer()); p.Version == "" && last.Version != "" && last.Restarts == s.Restarts && time.Since(last.VersionAt) < versionTimeout {
		p.Version, p.VersionAt = last.Version, last.VersionAt
	} else if p.Version == "" && !a.observer.IsSilent(s.Peer()) {
		p.Version, _ = wire.Version(a.chargeTo(ctx, s.Peer()), s.Addr, wire.WithTimeout(a.options.Deadline))
	}
	a.answers.KeepPod(s.Peer(), p)
}

func (a *Asker) askSidecar(ctx context.Context, s observe.Server) (version, state string) {
	readiness, err := a.sidecars.Readiness(ctx, bindcar.Address{
		Addr: netip.AddrPortFrom(s.Addr.Addr(), layout.SidecarPort), Namespace: s.Namespace, Instance: s.Instance,
	})
	var answer *bindcar.Error
	switch {
	case err == nil:
		return readiness.Version, status.ReasonReady
	case errors.As(err, &answer):
		return "", answer.Reason
	}
	return "", status.BindcarUnreachable
}

package evaluate

import (
	"context"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

const (
	// answerTimeout is how long an answer is kept that nobody holds.
	answerTimeout = time.Minute
	// fleetTimeout is how long it is kept what a server of an instance or a cluster answered: with very many zones watches ask rarely.
	fleetTimeout = 5 * time.Minute
	// askedTimeout is how long it is kept that a server answers something else than it holds: only a question for that name
	// would show it anew.
	askedTimeout = time.Hour
)

// Place is a zone, by its canonical name, on a server. What a DNSProvider was answered is for its namespace alone.
type Place struct {
	Server observe.Peer
	Zone   string
}

// PlaceOf is where a zone is on a server.
func PlaceOf(s observe.Server, zone string) Place { return Place{Server: s.Peer(), Zone: zone} }

// PodAnswer is what a pod answered about itself.
type PodAnswer struct {
	At               time.Time
	Version, Sidecar string
	// Restarts of the pod when it answered with its version, at VersionAt.
	Restarts  int32
	VersionAt time.Time
}

// Holder keeps an answer from being forgotten, and is notified when it changes.
type Holder interface {
	// AnswerChanged must not wait.
	AnswerChanged(Place)
}

// Answers are the last answers of servers, whoever asked. An older answer never replaces a newer one. They are safe for
// concurrent use.
type Answers struct {
	pods  *cache.Expiring // of PodAnswers, by observe.Peer
	paths *cache.Expiring // of observe.Observations, by zoneOnPath; of syncstatus.PathAnswers for further paths
	// further are the further paths that a zone was asked about on, by desired.ZoneKey.
	further *cache.Expiring
	judged  judgedAnswers

	mu    sync.Mutex
	zones map[Place]*zoneAnswer
	swept time.Time
}

type zoneAnswer struct {
	// full is the last answer to a question for the zone's content, serial a later one to a question for its serial alone;
	// nil when there is none. Neither is ever changed.
	full, serial *observe.Observation
	holders      []Holder
}

// NewAnswers returns a table without answers.
func NewAnswers() *Answers {
	return &Answers{zones: map[Place]*zoneAnswer{}, pods: cache.NewExpiring(), paths: cache.NewExpiring(), further: cache.NewExpiring(), judged: judgedAnswers{
		places: map[Place]map[rrset.Key]*validate.Answer{}, keys: map[Place]*KeysAnswer{},
	}}
}

// entryAt finds or creates the entry of a place. a.mu is held.
func (a *Answers) entryAt(place Place) *zoneAnswer {
	z := a.zones[place]
	if z == nil {
		z = &zoneAnswer{}
		a.zones[place] = z
	}
	return z
}

// Keep takes over an answer to a question for a zone's content.
func (a *Answers) Keep(place Place, o observe.Observation) {
	notify(place, a.replaceFull(place, o))
}

// notify says to some holders that an answer has changed.
func notify(place Place, holders []Holder) {
	for _, h := range holders {
		h.AnswerChanged(place)
	}
}

// replaceFull returns the holders to whom the answer is news.
func (a *Answers) replaceFull(place Place, o observe.Observation) (holders []Holder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	z := a.entryAt(place)
	was := z.full
	if was != nil && o.Precedes(was) {
		return nil
	}
	if was != nil {
		o.Answers = was.Answers
	}
	z.full = &o
	if z.serial != nil && !o.At.Before(z.serial.At) {
		z.serial = nil
	}
	if was == nil || !IsSameAnswer(was, &o) {
		holders = slices.Clone(z.holders)
	}
	a.sweepOldAnswers()
	return holders
}

// maxAsked bounds the names and types of a place of which it is kept that the server answers something else than it holds.
const maxAsked = 256

// KeepAsked takes over what a server answers to whoever asks for names and types. Only what differs from the zone's content
// is kept, and beside the answers of a zone below it all that was asked there.
func (a *Answers) KeepAsked(place Place, asked map[rrset.Key]observe.Answer) {
	notify(place, a.addAsked(place, asked))
}

// addAsked returns the holders to whom the answers are news.
func (a *Answers) addAsked(place Place, asked map[rrset.Key]observe.Answer) (holders []Holder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	z := a.zones[place]
	if z == nil || z.full == nil || len(asked) == 0 {
		return nil
	}
	full := *z.full
	full.Answers = mergeAnswers(full.Answers, asked)
	if !maps.EqualFunc(full.Answers, z.full.Answers, observe.Answer.Says) {
		holders = slices.Clone(z.holders)
	}
	z.full = &full
	return holders
}

func mergeAnswers(known, asked map[rrset.Key]observe.Answer) map[rrset.Key]observe.Answer {
	all := maps.Clone(known)
	if all == nil {
		all = map[rrset.Key]observe.Answer{}
	}
	for k, now := range asked {
		if was, ok := all[k]; !ok || !now.At.Before(was.At) {
			all[k] = now
		}
	}
	maps.DeleteFunc(all, func(k rrset.Key, a observe.Answer) bool {
		return !a.Differs() && !syncstatus.IsBelowOtherZone(all, k.Name)
	})
	for len(all) > maxAsked {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(all)), func(a, b rrset.Key) int { return all[a].At.Compare(all[b].At) })
		delete(all, oldest)
	}
	return all
}

// IsSameAnswer reports whether two answers lead to the same verdicts.
func IsSameAnswer(a, b *observe.Observation) bool {
	return IsSameState(a, b) && a.Serial == b.Serial && a.Mirror == b.Mirror && maps.EqualFunc(a.Answers, b.Answers, observe.Answer.Says)
}

// ChangedAnswers yields the names and types for which two answers do not prove the same of what a server answers to whoever
// asks; some may be repeated.
func ChangedAnswers(a, b *observe.Observation) iter.Seq[rrset.Key] {
	return func(yield func(rrset.Key) bool) {
		for _, pair := range [][2]*observe.Observation{{a, b}, {b, a}} {
			for k, is := range pair[0].Answers {
				if other, known := pair[1].Answers[k]; (!known || !is.Says(other)) && !yield(k) {
					return
				}
			}
		}
	}
}

// IsSameState reports whether two answers differ in no more than the content and serial of the zone.
func IsSameState(a, b *observe.Observation) bool {
	return a.Rcode == b.Rcode && a.AA == b.AA && a.Authoritative == b.Authoritative && a.Unverified == b.Unverified && a.Message() == b.Message() &&
		(a.Mirror == nil) == (b.Mirror == nil)
}

// KeepSerial takes over an answer to a question for a zone's serial.
func (a *Answers) KeepSerial(place Place, o observe.Observation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	z := a.entryAt(place)
	if (z.full == nil || z.full.At.Before(o.At)) && (z.serial == nil || !o.At.Before(z.serial.At)) {
		z.serial = &o
	}
	a.sweepOldAnswers()
}

// KeepPod takes over what a pod answered.
func (a *Answers) KeepPod(server observe.Peer, p PodAnswer) { a.pods.Set(server, p, fleetTimeout) }

// zoneOnPath is a zone that was asked for on a path.
type zoneOnPath struct {
	syncstatus.Path
	zone string
}

// KeepOnPath takes over what was answered on a path to a question for a zone.
func (a *Answers) KeepOnPath(p syncstatus.Path, zone string, o observe.Observation) {
	a.paths.Set(zoneOnPath{p, zone}, o, answerTimeout)
}

// OnPath is the last answer on a path to a question for a zone; not ok if there is none.
func (a *Answers) OnPath(p syncstatus.Path, zone string) (o observe.Observation, ok bool) {
	known, _ := a.paths.Get(zoneOnPath{p, zone})
	o, ok = known.(observe.Observation)
	return o, ok
}

// KeepFurther takes over what was answered on a further path to a question for a zone.
func (a *Answers) KeepFurther(p syncstatus.Path, zone string, answer syncstatus.PathAnswer) {
	a.paths.Set(zoneOnPath{p, zone}, answer, answerTimeout)
}

// OnFurther is the last answer on a further path to a question for a zone; not ok if there is none.
func (a *Answers) OnFurther(p syncstatus.Path, zone string) (answer syncstatus.PathAnswer, ok bool) {
	known, _ := a.paths.Get(zoneOnPath{p, zone})
	answer, ok = known.(syncstatus.PathAnswer)
	return answer, ok
}

// KeepFurtherPaths remembers on which further paths a zone is asked about.
func (a *Answers) KeepFurtherPaths(zone desired.ZoneKey, paths []syncstatus.Path) {
	a.further.Set(zone, paths, answerTimeout)
}

// FurtherPaths are those on which a zone was asked about lately.
func (a *Answers) FurtherPaths(zone desired.ZoneKey) []syncstatus.Path {
	known, _ := a.further.Get(zone)
	paths, _ := known.([]syncstatus.Path)
	return paths
}

// Full is the last answer to a question for a zone's content; nil when there is none. It must not be changed.
func (a *Answers) Full(place Place) *observe.Observation {
	a.mu.Lock()
	defer a.mu.Unlock()
	if z := a.zones[place]; z != nil {
		return z.full
	}
	return nil
}

// Serial is the last answer that can show a zone's serial, without content; the zero Observation when there is none.
func (a *Answers) Serial(place Place) observe.Observation {
	a.mu.Lock()
	defer a.mu.Unlock()
	z := a.zones[place]
	var o observe.Observation
	switch {
	case z == nil:
		return o
	case z.serial != nil:
		o = *z.serial
	case z.full != nil:
		o = *z.full
	}
	if o.Mirror = nil; o.Authoritative && !o.Unverified {
		o.Err = nil // Of a transfer: the serial is known.
	}
	return o
}

// Pod is what a pod last answered about itself.
func (a *Answers) Pod(server observe.Peer) PodAnswer {
	p, _ := a.pods.Get(server)
	known, _ := p.(PodAnswer)
	return known
}

// ofZone are the answers of a zone's servers, in their order. A server that has not answered yet counts as silent.
func (a *Answers) ofZone(z *desired.Zone) []observe.Observation {
	out := make([]observe.Observation, len(z.Servers))
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, s := range z.Servers {
		if !s.Addr.IsValid() {
			continue
		}
		if known := a.zones[PlaceOf(s, z.Declared.ZoneName())]; known != nil && known.full != nil {
			out[i] = *known.full
		} else {
			out[i] = NoAnswer(s.Addr, z.Declared.ZoneName(), time.Now())
		}
	}
	return out
}

// NoAnswer is the answer of a server that has been asked at a time and has not answered within the deadline.
func NoAnswer(server netip.AddrPort, zone string, asked time.Time) observe.Observation {
	err := &wire.Error{Op: "query", Server: server.String(), Zone: zone, Err: context.DeadlineExceeded}
	return observe.Observation{Server: server, At: asked, Rcode: observe.NoReply, Err: err}
}

// Hold keeps the answer of a place until Release.
func (a *Answers) Hold(place Place, h Holder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	z := a.entryAt(place)
	z.holders = append(z.holders, h)
}

// Release ends one Hold.
func (a *Answers) Release(place Place, h Holder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if z := a.zones[place]; z != nil {
		if i := slices.Index(z.holders, h); i >= 0 {
			z.holders = slices.Delete(z.holders, i, i+1)
		}
	}
}

// sweepOldAnswers drops, now and then, what nobody has asked for lately. a.mu is held.
func (a *Answers) sweepOldAnswers() {
	if time.Since(a.swept) < answerTimeout {
		return
	}
	a.swept = time.Now()
	isOld := func(o *observe.Observation, timeout time.Duration) bool {
		return o == nil || a.swept.Sub(o.At) > timeout && (len(o.Answers) == 0 || a.swept.Sub(o.At) > askedTimeout)
	}
	maps.DeleteFunc(a.zones, func(_ Place, z *zoneAnswer) bool {
		return len(z.holders) == 0 && isOld(z.full, answerTimeout) && isOld(z.serial, fleetTimeout)
	})
}

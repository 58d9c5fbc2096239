package ask

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// Asker asks servers, and keeps their answers where the evaluator finds them. It is safe for concurrent use.
type Asker struct {
	options   Options
	index     *desired.Index
	answers   *evaluate.Answers
	observer  *observe.Observer
	keys      *tsigkey.Cache
	schedule  transferSchedule
	meter     *meter
	deadlines *answerDeadlines
	// sidecars is nil where no sidecar is asked.
	sidecars *bindcar.Client

	podQuestions  inflight[observe.Peer]
	zoneQuestions inflight[evaluate.Place]
	nameQuestions inflight[nameQuestion]
	pathQuestions inflight[pathQuestion]

	// evaluator says which zones are signed, and judges answers.
	evaluator        *evaluate.Evaluator
	keyQuestions     inflight[evaluate.Place]
	securedQuestions inflight[nameQuestion]

	questionTasks inflight[questionTask]
	// questionsAsked are the last askedQuestions, by questionTask.
	questionsAsked  *cache.Expiring
	objectQuestions inflight[objectQuestion]
	sweeps          sweepSchedule
	// names are the last answers to these, as observe.Answers.
	names *cache.Expiring
}

// providerConnections is how many connections with the servers of a DNSProvider there are at a time: as many as the questions to two of
// them that an observe.Observer has under way.
const providerConnections = 64

// New returns an Asker for the zones of an index. keys reads transfer keys.
func New(index *desired.Index, answers *evaluate.Answers, evaluator *evaluate.Evaluator, keys tsigkey.ReadFunc, options Options) *Asker {
	meter, deadlines := newMeter(time.Now), newAnswerDeadlines(options.Deadline)
	a := &Asker{
		options: options, index: index, answers: answers, evaluator: evaluator, keys: tsigkey.NewCache(keys, keyMaxAge, named.KeyGrace), meter: meter,
		names: cache.NewExpiring(), questionsAsked: cache.NewExpiring(), sweeps: sweepSchedule{places: cache.NewExpiring()}, schedule: transferSchedule{interval: options.VerifyInterval, places: cache.NewExpiring()},
		deadlines: deadlines,
		observer:  observe.New(observe.Options{Timeout: options.Deadline, QuestionRate: options.QuestionRate, Limits: options.Limits, Meter: answerMeter{meter, deadlines}, Replaced: evaluator.ContentReplaced}),
	}
	if options.TLS != nil {
		a.sidecars = bindcar.NewClient(bindcar.ClientOptions{TLS: options.TLS, Timeout: options.Deadline, Gate: options.Gate})
	}
	return a
}

// chargeTo makes the context of a question to a server, which may not be at every address. Connections with a DNSProvider's servers are
// counted: nobody else waits for a turn there.
func (a *Asker) chargeTo(ctx context.Context, server observe.Peer) context.Context {
	account := a.options.Gate.Instances(server.Namespace)
	if server.Provider != "" {
		account = a.options.Gate.Account(server.Namespace, "DNSProvider "+server.Provider, providerConnections)
	}
	return outbound.WithAccount(ctx, account)
}

// Prefetch asks the servers of an object all that its verdict needs, at once. Nobody waits for the answers here; who asks next
// shares them.
func (a *Asker) Prefetch(ctx context.Context, s *desired.Subject, since time.Time) {
	ctx = context.WithoutCancel(ctx)
	go a.askZones(ctx, desired.ZonesOf(s), since)
	for z, keys := range resolvable(s) {
		for _, server := range z.Servers {
			if server.ReadBy != v1beta1.ReadByQuery {
				go a.askEach(ctx, z, server, keys, since)
			}
		}
	}
	for z, server := range readByQuery(s) {
		go a.askObject(ctx, z, server, s.Key, since)
	}
}

// AskSubjects asks all servers that the verdicts about some objects follow from, each zone of a server once, for answers from since or
// later; with resolve also for what the objects declare, as resolvers ask.
func (a *Asker) AskSubjects(ctx context.Context, subjects []*desired.Subject, since time.Time, resolve bool) {
	zones := desired.ZonesOf(subjects...)
	var fleets []metav1.Object
	for _, s := range subjects {
		if s != nil && informers.DescribesServers(s.Key.Kind) {
			fleets = append(fleets, s.Object)
		}
	}
	var wg sync.WaitGroup
	if len(fleets) > 0 && !since.IsZero() {
		wg.Go(func() { a.AskFleets(ctx, since, placesOf(zones), fleets...) })
	}
	wg.Go(func() { a.AskPaths(ctx, zones, since) })
	wg.Go(func() { a.askParents(ctx, zones, since) })
	a.askZones(ctx, zones, since)
	a.askKeys(ctx, zones)
	wg.Wait()
	a.askParents(ctx, zones, since) // Of those zones, too, that have only now been seen to be signed.
	a.askPathsAgain(ctx, zones)
	if resolve {
		wg.Go(func() { a.askSecured(ctx, subjects, since) })
		a.askResolvable(ctx, subjects, since)
		a.awaitQuestions(ctx, wholeZones(subjects), since, complete)
		wg.Wait()
	} else if !since.IsZero() {
		a.awaitQuestions(ctx, zones, since, urgent)
	}
}

// wholeZones are the zones among some objects, which all that is declared in them matters to.
func wholeZones(subjects []*desired.Subject) map[*desired.Zone]bool {
	zones := map[*desired.Zone]bool{}
	for _, s := range subjects {
		if s != nil && s.Key.Kind == subject.ZoneKind.Kind {
			zones[s.Zones[0]] = true
		}
	}
	return zones
}

// AskWatched asks a server for a zone that somebody watches, and the servers of the zones above it.
func (a *Asker) AskWatched(ctx context.Context, z *desired.Zone, s observe.Server, since time.Time) {
	zones := map[*desired.Zone]bool{z: true}
	a.askParents(ctx, zones, since.Add(-signedChainAge))
	if a.AskServer(ctx, z, s, since); s.ReadBy == v1beta1.ReadByQuery {
		ctx, cancel := context.WithTimeout(ctx, a.options.Deadline)
		defer cancel()
		a.awaitAnswers(ctx, z, s, since, urgent)
	}
	a.askKeys(ctx, zones)
}

// askZones asks all servers of some zones at once, and waits for answers from since or later as long as their deadlines allow. With a zero
// since only those are asked that have never answered.
func (a *Asker) askZones(ctx context.Context, zones map[*desired.Zone]bool, since time.Time) {
	var wg sync.WaitGroup
	for z := range zones {
		for _, s := range z.Servers {
			if s.Addr.IsValid() && (!since.IsZero() || a.answers.Full(evaluate.PlaceOf(s, z.Declared.ZoneName())) == nil) {
				wg.Go(func() { a.AskServer(ctx, z, s, since) })
			}
		}
	}
	wg.Wait()
}

// AskServer asks one server for one zone. Answers from before the zone was declared as it is now are never used; but that a server
// is silent has nothing to do with what is declared. So whoever reads while many objects change waits for it once.
func (a *Asker) AskServer(ctx context.Context, z *desired.Zone, s observe.Server, since time.Time) {
	place := evaluate.PlaceOf(s, z.Declared.ZoneName())
	if a.IsSilentSince(place, since) {
		return
	}
	if since.Before(z.Since) {
		since = z.Since
	}
	ctx, end := a.deadlines.await(ctx, s.Peer())
	defer end()
	o, ok := a.observe(ctx, z, s, place, since)
	switch {
	case ok && (ctx.Err() == nil || o.Rcode != observe.NoReply):
		a.answers.Keep(place, o)
		if s.ReadBy == v1beta1.ReadByQuery {
			a.sweep(ctx, z, s, place)
		} else {
			a.askNames(ctx, z, s, nil, since)
		}
		a.repeatBogus(ctx, z, s)
	case isTooSlow(ctx):
		a.answers.Keep(place, evaluate.NoAnswer(s.Addr, place.Zone, since))
	}
}

// IsSilentSince reports whether a server was asked for a zone at since or later, a moment ago, and has not answered.
func (a *Asker) IsSilentSince(place evaluate.Place, since time.Time) bool {
	last := a.answers.Full(place)
	return last != nil && IsSilent(last) && !last.At.Before(since) && time.Since(last.At) < 2*a.options.Deadline
}

// observe asks a server, and is not ok if it was not asked. The questions are for a server that is read by query.
func (a *Asker) observe(ctx context.Context, z *desired.Zone, s observe.Server, place evaluate.Place, since time.Time, questions ...observe.Question) (o observe.Observation, ok bool) {
	secret := z.TransferKey(s)
	key, ok := a.transferKey(ctx, secret)
	if !ok {
		return o, false
	}
	if s.ReadBy != v1beta1.ReadByQuery && a.schedule.isDue(place) {
		a.observer.Invalidate(place.Server, observedZone(z))
	}
	if key == nil && s.Provider != "" && !s.Unsigned { // Whoever names a server in a provider gets nothing from it without the server's key.
		err := &wire.Error{Op: "query", Server: place.Server.Addr.String(), Zone: place.Zone, Err: errNoKey}
		return observe.Observation{Server: place.Server.Addr, At: time.Now(), Rcode: observe.NoReply, Err: err}, true
	}
	a.meter.nameServer(s)
	o = a.observeZone(ctx, z, s, key, since, questions)
	a.dropRefusedKey(secret, key, o)
	if s.Unsigned {
		return o, true
	}
	return withoutProof(o, place, key, secret), true
}

// observedZone is a zone as an Observer knows it.
func observedZone(z *desired.Zone) observe.Zone {
	return observe.Zone{Namespace: z.Key.Namespace, Name: z.Declared.ZoneName()}
}

var errNoKey = errors.New("the server's transfer key cannot be read, and answers without a signature prove nothing")

// withoutProof takes an answer to a question without a key for what it is: anybody may have sent it. Where the key could not be read,
// that is why a transfer was refused.
func withoutProof(o observe.Observation, place evaluate.Place, key *wire.Key, secret types.NamespacedName) observe.Observation {
	if key != nil || !o.Authoritative {
		return o
	}
	if o.Unverified, o.Mirror = true, nil; o.Err == nil || secret.Name != "" {
		o.Err = &wire.Error{Op: "query", Server: place.Server.Addr.String(), Zone: place.Zone, Err: errNoKey}
	}
	return o
}

// IsSilent reports whether an observation shows a server that does not answer.
func IsSilent(o *observe.Observation) bool {
	return o.Rcode == observe.NoReply && !wire.IsLocal(o.Err) && !errors.Is(o.Err, errNoKey)
}

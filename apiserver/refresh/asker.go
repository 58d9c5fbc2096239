package refresh

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
)

// asker asks servers, and keeps their answers where the evaluator finds them.
type asker struct {
	options  Options
	index    *desired.Index
	answers  *evaluate.Answers
	observer *observe.Observer
	keys     *tsigkey.Cache
	schedule transferSchedule
	meter    *meter
	patience *patience
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

// chargeTo makes the context of a question to a server, which may not be at every address. Connections with a DNSProvider's servers are
// counted: nobody else waits for a turn there.
func (a *asker) chargeTo(ctx context.Context, server observe.Peer) context.Context {
	account := a.options.Gate.Instances(server.Namespace)
	if server.Provider != "" {
		account = a.options.Gate.Account(server.Namespace, "DNSProvider "+server.Provider, providerConnections)
	}
	return outbound.WithAccount(ctx, account)
}

// askZones asks all servers of some zones at once, and waits for answers from since or later as long as patience allows. With a zero
// since only those are asked that have never answered.
func (a *asker) askZones(ctx context.Context, zones map[*desired.Zone]bool, since time.Time) {
	var wg sync.WaitGroup
	for z := range zones {
		for _, s := range z.Servers {
			if s.Addr.IsValid() && (!since.IsZero() || a.answers.Full(evaluate.PlaceOf(s, z.Declared.ZoneName())) == nil) {
				wg.Go(func() { a.askServer(ctx, z, s, since) })
			}
		}
	}
	wg.Wait()
}

// askServer asks one server for one zone. Answers from before the zone was declared as it is now are never used; but that a server
// is silent has nothing to do with what is declared. So whoever reads while many objects change waits for it once.
func (a *asker) askServer(ctx context.Context, z *desired.Zone, s observe.Server, since time.Time) {
	place := evaluate.PlaceOf(s, z.Declared.ZoneName())
	if a.isSilentSince(place, since) {
		return
	}
	if since.Before(z.Since) {
		since = z.Since
	}
	ctx, end := a.patience.await(ctx, s.Peer())
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

// isSilentSince reports whether a server was asked for a zone at since or later, a moment ago, and has not answered.
func (a *asker) isSilentSince(place evaluate.Place, since time.Time) bool {
	last := a.answers.Full(place)
	return last != nil && isSilent(last) && !last.At.Before(since) && time.Since(last.At) < 2*a.options.Deadline
}

// observe asks a server, and is not ok if it was not asked. The questions are for a server that is read by query.
func (a *asker) observe(ctx context.Context, z *desired.Zone, s observe.Server, place evaluate.Place, since time.Time, questions ...observe.Question) (o observe.Observation, ok bool) {
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

// transferKey reads the key, in a Secret, that questions to a server are signed with; nil if none can be read. It is not ok if ctx ended
// first: others would share what is asked without a key.
func (a *asker) transferKey(ctx context.Context, secret types.NamespacedName) (key *wire.Key, ok bool) {
	if secret.Name == "" {
		return nil, true
	}
	key, _ = a.keys.Get(ctx, secret)
	return key, key != nil || ctx.Err() == nil
}

// dropRefusedKey has a key read anew that a server did not accept.
func (a *asker) dropRefusedKey(secret types.NamespacedName, key *wire.Key, o observe.Observation) {
	var we *wire.Error
	if key != nil && errors.As(o.Err, &we) && we.TSIGError != 0 {
		a.keys.Invalidate(secret, key)
	}
}

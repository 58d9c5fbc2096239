// Package evaluate computes verdicts: it compares the desired state of package desired with the last answers of servers, by
// the rules of pkg/syncstatus, and adds what is remembered of earlier answers. It asks nobody and publishes nothing; it does
// not know who wants a verdict.
package evaluate

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

// Evaluator computes SyncStatus objects. It is safe for concurrent use.
type Evaluator struct {
	index   *desired.Index
	answers *Answers
	// vantages are the names of those who ask from elsewhere.
	vantages  []string
	lag       lagHistory
	ttls      ttlHistory
	validator *validate.Validator
}

// New evaluates a desired state by the answers of servers, to the API server and to some vantages, and validates them.
func New(index *desired.Index, answers *Answers, validator *validate.Validator, vantages ...string) *Evaluator {
	return &Evaluator{index: index, answers: answers, validator: validator, vantages: vantages, lag: lagHistory{since: cache.NewExpiring()}}
}

// ContentReplaced notes that a server has other content of a zone than it last had: resolvers may keep the old for a
// while.
func (e *Evaluator) ContentReplaced(server observe.Peer, was, is *observe.Mirror) {
	e.ttls.recordChange(server, was, is, time.Now())
}

// Judge compares a zone with the last answers of its servers. Those of servers that are read by query must be from since or later
// for each RRset, unless the zone has not changed; with a zero since older ones will do, for a while. withChain shows the chain of what is
// signed.
func (e *Evaluator) Judge(z *desired.Zone, since time.Time, withChain bool) *syncstatus.Evaluation {
	zone, now := z.Declared.ZoneName(), time.Now()
	answers, view := e.answers.ofZone(z), e.View(z, now)
	return syncstatus.Evaluate(z.Declared, z.Servers, answers, now, syncstatus.History{
		Since: since, Validation: view, WithChain: withChain,
		BehindSince: func(server observe.Peer, behind bool, at time.Time) time.Time {
			return e.lag.behindSince(zoneOnServer{z.Key, server}, behind, at)
		},
		OnPath:         func(p syncstatus.Path) (observe.Observation, bool) { return e.answers.OnPath(p, zone) },
		OnFurther:      func(p syncstatus.Path) (syncstatus.PathAnswer, bool) { return e.answers.OnFurther(p, zone) },
		Vantages:       e.vantages,
		IsFurtherAsked: func() bool { return len(e.answers.FurtherPaths(z.Key)) > 0 },
		CachedUntil:    e.ttls.ofZone(zone, z.Servers),
	})
}

// Status evaluates an object; judgement has the Evaluation of each of its zones. Nil means that the object does not belong to its zone
// any more.
func (e *Evaluator) Status(s *desired.Subject, judgement func(zone int) *syncstatus.Evaluation) *syncv1.SyncStatus {
	if informers.DescribesServers(s.Key.Kind) {
		return e.fleetStatus(s.Object)
	}
	switch o := s.Object.(type) {
	case *v1alpha1.DNSEndpoint:
		in := make([]*syncstatus.Evaluation, len(s.ZoneKeys))
		for i := range in {
			in[i] = judgement(i)
		}
		return syncstatus.EndpointStatus(o, in, s.Unplaced, time.Now())
	case v1beta1.Record:
		return syncstatus.UnselectedStatus(o, time.Now())
	}
	ev := judgement(0)
	if s.Key.Kind == subject.ZoneKind.Kind {
		var parent *syncstatus.Evaluation
		if len(s.Zones) > 1 {
			if above := judgement(1); e.isParent(s.Zones[1], s.Zones[0], above, ev) {
				parent = above
			}
		}
		return ev.ZoneStatus(parent)
	}
	if r, ok := ev.Object(s.Key).(v1beta1.Record); ok {
		return ev.RecordStatus(r)
	}
	return nil
}

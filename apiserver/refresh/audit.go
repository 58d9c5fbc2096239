package refresh

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/lockstep-dns/lockstep/apiserver/ask"
	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

// The content of a zone does not show a signature that is present, in time and wrong, nor that a server answers resolvers otherwise. So the
// servers of watched zones that are signed are audited: asked as resolvers ask, for the zone itself each time, and for its objects in turn.

const (
	// auditInterval is how often a zone is audited if there are few.
	auditInterval = 2 * time.Second
	// auditObjects is how many objects of a zone are audited with it each time.
	auditObjects = 8
	// auditRate bounds the questions of audits in a second, of all namespaces.
	auditRate = 200
)

func newAuditLimiter() *rate.Limiter { return rate.NewLimiter(auditRate, auditRate) }

// audit is the state of auditing a zone.
type audit struct {
	running bool
	// at is when the last one ended.
	at time.Time
	// waiting are the members whose turn it is before the others'.
	waiting []desired.Key
}

// auditZones audits zones of which it is time, those first that have waited longest.
func (t *tracker) auditZones(now time.Time) {
	var due []*trackedZone
	for _, w := range t.zones {
		if w.zone != nil && w.security != nil && w.security.Signed && !w.audit.running && now.Sub(w.audit.at) >= auditInterval {
			due = append(due, w)
		}
	}
	slices.SortFunc(due, func(a, b *trackedZone) int { return a.audit.at.Compare(b.audit.at) })
	for _, w := range due {
		members, keys := w.nextAudit()
		if !t.refresher.audits.AllowN(now, min(auditRate, len(w.zone.Servers)*(len(keys)+1))) {
			return
		}
		w.audit.waiting = w.audit.waiting[members:]
		t.auditZone(w, keys)
	}
}

// nextAudit is what the servers of a zone are asked next, for itself and for so many of the members that wait.
func (w *trackedZone) nextAudit() (members int, keys []rrset.Key) {
	if len(w.audit.waiting) == 0 {
		for key := range w.members {
			if key.Kind != subject.ZoneKind.Kind {
				w.audit.waiting = append(w.audit.waiting, key)
			}
		}
	}
	keys = validate.ZoneQuestions(w.zone.Declared.ZoneName())
	members = min(auditObjects, len(w.audit.waiting))
	for _, key := range w.audit.waiting[:members] {
		keys = append(keys, w.zone.Declared.ResolvableKeys(key, ask.MaxNames)...)
	}
	return members, keys
}

// auditZone asks every server of a zone, and judges the answers.
func (t *tracker) auditZone(w *trackedZone, keys []rrset.Key) {
	w.audit.running = true
	z := w.zone
	t.inBackground(func() func() {
		ctx, cancel := context.WithTimeout(t.ctx, t.refresher.options.Deadline)
		defer cancel()
		var wg sync.WaitGroup
		began := time.Now()
		for i := range z.Servers {
			wg.Go(func() { t.refresher.asker.JudgeAnswers(ctx, z, i, keys, began) })
		}
		wg.Wait()
		return func() {
			now := time.Now()
			w.audit.running, w.audit.at = false, now
			if t.zones[z.Key] == w && w.zone == z {
				t.checkSecurity(w, now)
				t.evaluateLater(w)
			}
		}
	})
}

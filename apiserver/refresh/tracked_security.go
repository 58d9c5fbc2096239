package refresh

import "time"

const (
	// securityCheck is how often a watched zone that is signed is looked at for signatures that have expired.
	securityCheck = 2 * time.Second
	// securityPerObject is added to that, for each object of the zone, while signatures expire.
	securityPerObject = 200 * time.Microsecond
)

// checkSecurity has all members of a zone evaluated again if its security has changed, and now and then while signatures expire.
func (t *tracker) checkSecurity(w *trackedZone, now time.Time) {
	w.securityAt = now.Add(securityCheck)
	is := t.refresher.evaluator.Security(w.zone, now)
	moved := is.Moving && now.After(w.movedAt.Add(securityCheck+time.Duration(len(w.members))*securityPerObject))
	if w.security == nil || !w.security.Equal(is) || moved {
		w.all = w.all || w.security != nil || is.Signed
		w.movedAt = now
	} else {
		for k := range is.ChangedAnswers(*w.security) {
			for o := range w.zone.Declared.ObjectsAt(k.Name) {
				w.suspect(o)
			}
		}
	}
	w.security = &is
}

// checkSignatures looks at the zones of which it is time: those that are signed, and those whose parent may say that they are.
func (t *tracker) checkSignatures(now time.Time) {
	for _, w := range t.zones {
		if w.zone != nil && w.security != nil && now.After(w.securityAt) && (w.security.Signed || t.refresher.index.Parent(w.zone) != nil) {
			t.checkSecurity(w, now)
			t.evaluateLater(w)
		}
	}
}

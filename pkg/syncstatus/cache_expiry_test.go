package syncstatus

import (
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func TestCachesExpire(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	half := asked.Add(500 * time.Millisecond)
	for name, tc := range map[string]struct {
		answers []observe.Observation
		caches  func(observe.Peer, rrset.Key) time.Time
		want    time.Time // zero when it is not told
	}{
		"in sync, and nothing is known": {answers: []observe.Observation{serves(7, "192.0.2.1"), serves(7, "192.0.2.1")}},
		"after the old data":            {answers: []observe.Observation{serves(7, "192.0.2.1"), serves(6, "192.0.2.9")}, want: asked.Add(time.Hour)},
		"after the negative TTL":        {answers: []observe.Observation{serves(7, "192.0.2.1"), serves(6)}, want: asked.Add(time.Minute)},
		"not by who did not answer":     {answers: []observe.Observation{serves(7, "192.0.2.1"), silent()}},
		"in sync, and was not before": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(7, "192.0.2.1")},
			caches: func(server observe.Peer, k rrset.Key) time.Time {
				if k != wwwA || server != servers()[1].Peer() {
					return time.Time{}
				}
				return half
			},
			want: asked.Add(time.Second), // never too early
		},
		"the longest": {
			answers: []observe.Observation{serves(7, "192.0.2.1"), serves(6)},
			caches:  func(observe.Peer, rrset.Key) time.Time { return asked.Add(time.Hour) },
			want:    asked.Add(time.Hour),
		},
	} {
		j := Evaluate(NewDesiredState(z, build(t, z, r), []source.Object{r}, nil), servers(), tc.answers, asked, History{CachedUntil: tc.caches})
		if got := j.RecordStatus(r).CachesExpireAt; (got == nil) != tc.want.IsZero() || got != nil && !got.Time.Equal(tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

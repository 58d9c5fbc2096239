package render

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

func TestVerdicts(t *testing.T) {
	www := object("ARecord", "www", "example.com", row("primary-0", v1alpha1.StateInSync), row("secondary-0", v1alpha1.StateStale))
	www.Status.Phase = v1alpha1.PhasePropagating
	www.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted}, {
		Type: v1alpha1.ConditionPropagated, Reason: "Stale", Message: "1 of 2 servers in sync; Stale: secondary-0"}}
	mail := object("MXRecord", "mail", "example.com", row("primary-0", v1alpha1.StateInSync))
	mail.CachesExpireAt = new(metav1.NewTime(now.Add(time.Minute)))
	over := object("ARecord", "over", "example.com", row("primary-0", v1alpha1.StateInSync))
	over.CachesExpireAt = new(metav1.NewTime(now))
	stray := failed(object("ARecord", "stray", ""), "NotSelected", "no DNSZone\nselects it")
	items := []v1alpha1.SyncStatus{www, mail, over, stray}
	for name, tc := range map[string]struct {
		items  []v1alpha1.SyncStatus
		spaces bool
		want   string
	}{
		"none": {},
		"one namespace": {items, false, `
NAME            ZONE          PHASE         SERVERS   MESSAGE
arecord.www     example.com   Propagating   1/2       1 of 2 servers in sync; Stale: secondary-0
mxrecord.mail   example.com   InSync        1/1       resolvers may have the old data cached for 1m0s
arecord.over    example.com   InSync        1/1
arecord.stray                 Failed                  NotSelected: no DNSZone selects it
`},
		"all namespaces": {items[:1], true, `
NAMESPACE   NAME          ZONE          PHASE         SERVERS   MESSAGE
dns         arecord.www   example.com   Propagating   1/2       1 of 2 servers in sync; Stale: secondary-0
`},
	} {
		got := Verdicts(tc.items, tc.spaces, now, Palette{})
		if got != "" {
			got = "\n" + got
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for want, of := range map[string][]v1alpha1.SyncStatus{
		"2 of 4 not in sync": items, "2 of 2 in sync": items[1:3], "\x1b[31m1 of 1 not in sync\x1b[0m": items[:1],
	} {
		if got := Summary(of, Palette{On: want[0] == '\x1b'}); got != want {
			t.Errorf("summary %q, want %q", got, want)
		}
	}
	for want, got := range map[string]string{
		"15:04:05 dns/arecord.www \x1b[33mPropagating\x1b[0m 1/2 1 of 2 servers in sync; Stale: secondary-0\n": Change(&www, now, Palette{On: true}),
		"15:04:05 dns/arecord.over InSync 1/1\n": Change(&over, now, Palette{}),
		"15:04:05 dns/arecord.over gone\n":       Gone(&over, now, Palette{}),
	} {
		if got != want {
			t.Errorf("line %q, want %q", got, want)
		}
	}
}

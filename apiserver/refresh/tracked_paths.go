package refresh

import (
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// pollPaths asks the paths to all followed zones, as far as it is time.
func (t *tracker) pollPaths() {
	if t.pollingPaths {
		return
	}
	t.pollingPaths = true
	zones := map[*desired.Zone]bool{}
	for _, w := range t.zones {
		zones[w.zone] = true
	}
	t.inBackground(func() func() {
		t.refresher.asker.AskPaths(t.ctx, zones, time.Now())
		t.refresher.asker.RepeatFurther(t.ctx, zones)
		return func() {
			t.pollingPaths = false
			for z := range zones {
				t.takePaths(z.Key)
			}
		}
	})
}

// askPathsTo asks the paths to a zone of which something has changed, and once more if more changes meanwhile.
func (t *tracker) askPathsTo(w *trackedZone) {
	if w.pathsAgain = w.askingPaths; w.askingPaths || len(syncstatus.PathsTo(w.zone.Servers)) == 0 {
		return
	}
	w.askingPaths = true
	z := w.zone
	t.inBackground(func() func() {
		t.refresher.asker.AskPaths(t.ctx, map[*desired.Zone]bool{z: true}, time.Now())
		return func() {
			w.askingPaths = false
			if w.pathsAgain {
				t.askPathsTo(w)
			}
			t.takePaths(z.Key)
		}
	})
}

// furtherState is what matters of an answer on a further path.
type furtherState struct {
	state syncv1.ServerState
	soa   rrset.SOA
}

// takePaths looks at the present answers on the paths to a zone.
func (t *tracker) takePaths(key desired.ZoneKey) {
	w := t.zones[key]
	if w == nil {
		return
	}
	var now []syncv1.ServerState
	for _, p := range syncstatus.PathsTo(w.zone.Servers) {
		if o, asked := t.refresher.answers.OnPath(p, w.zone.Declared.ZoneName()); asked {
			now = append(now, syncstatus.PathState(o))
		}
	}
	var further []furtherState
	for _, p := range t.refresher.answers.FurtherPaths(w.zone.Key) {
		o, _ := t.refresher.answers.OnFurther(p, w.zone.Declared.ZoneName())
		further = append(further, furtherState{syncstatus.PathState(o.Observation), o.SOA})
	}
	if !slices.Equal(now, w.onPaths) {
		w.onPaths, w.all = now, true
	}
	if !slices.Equal(further, w.onFurther) {
		w.onFurther = further
		w.suspect(desired.Key{Kind: subject.ZoneKind.Kind, Namespace: key.Namespace, Name: key.Name})
	}
	t.evaluateLater(w)
}

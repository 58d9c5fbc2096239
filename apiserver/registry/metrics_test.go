package registry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

func TestMetricsCountWhatIsDone(t *testing.T) {
	w := newWorld(t, func(o *testOptions) { o.MaxAge, o.Deadline = time.Hour, 300*time.Millisecond })
	var others strings.Builder // named hands out small zones whole
	for i := range 50 {
		fmt.Fprintf(&others, "\nh%d A 192.0.2.%d", i, i)
	}
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7" + others.String()})
	w.Declare("www")
	w.Eventually("it is in sync", func() bool { return w.get("arecord.www").Status.InSync })

	before := w.metrics()
	want := func(what string, atLeast map[string]float64) {
		t.Helper()
		now := w.metrics()
		for name, least := range atLeast {
			if now[name]-before[name] < least {
				t.Errorf("%s: %s went from %v to %v, want at least %v more", what, name, before[name], now[name], least)
			}
		}
		before = now
	}
	for name, want := range map[string]float64{"servers": 2, "mirrors": 2, "mirror_rrsets": 106, "transfers_total done full": 2, "watches": 0} {
		if before[name] != want {
			t.Errorf("%s is %v, want %v", name, before[name], want)
		}
	}
	w.get("arecord.www")
	want("a question by name", map[string]float64{"observations_total server": 2, "probe_duration_seconds dns primary-0": 1, "probe_duration_seconds dns secondary-0": 1})
	w.Eventually("a list makes do with what was answered before", func() bool {
		w.list(query{namespace: ns})
		return w.metrics()["observations_total kept"] >= 2
	})
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	w.get("arecord.www")
	want("an update", map[string]float64{"transfers_total done incremental": 1})
	secondary.Pause()
	w.get("arecord.www")
	w.Eventually("the question has ended without an answer", func() bool {
		return w.metrics()["probes_unanswered_total dns secondary-0"] > before["probes_unanswered_total dns secondary-0"]
	})
	secondary.Resume()
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	events.next()
	w.Eventually("the event is counted", func() bool { return w.metrics()["watch_events_total ADDED"] > 0 })
	want("a watch", map[string]float64{"watches": 1, "watched_namespaces": 1})
}

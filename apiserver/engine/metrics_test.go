package engine

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/lockstep-dns/lockstep/pkg/observe"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// values reads counters and gauges of a registry, and the counts of histograms, by name and labels.
func values(t *testing.T, registry metrics.KubeRegistry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "lockstep_syncstatus_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			switch {
			case m.GetHistogram() != nil:
				all[name] = float64(m.GetHistogram().GetSampleCount())
			case m.GetCounter() != nil:
				all[name] = m.GetCounter().GetValue()
			default:
				all[name] = m.GetGauge().GetValue()
			}
		}
	}
	return all
}

func TestMetricsCountWhatIsDone(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxAge, o.Deadline = time.Hour, 300*time.Millisecond })
	registry := metrics.NewKubeRegistry()
	if err := w.engine.RegisterMetrics(registry.Register, registry.CustomRegister); err != nil {
		t.Fatal(err)
	}
	var others strings.Builder // named hands out small zones whole
	for i := range 50 {
		fmt.Fprintf(&others, "\nh%d A 192.0.2.%d", i, i)
	}
	primary, secondary := lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7" + others.String()})
	z := zone("example.test", "primary", "secondary")
	r := w.record(z, "www", "192.0.2.7")
	w.apply(z)
	w.apply(r)
	w.eventually("it is in step", func() bool { return w.get("arecord.www").Status.InSync })

	before := values(t, registry)
	want := func(what string, min map[string]float64) {
		t.Helper()
		now := values(t, registry)
		for name, least := range min {
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
	w.eventually("a list makes do with what was answered before", func() bool {
		w.list(Query{Namespace: ns})
		return values(t, registry)["observations_total kept"] >= 2
	})
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	w.get("arecord.www")
	want("an update", map[string]float64{"transfers_total done incremental": 1})
	secondary.Pause()
	w.get("arecord.www")
	w.eventually("the question has ended without an answer", func() bool {
		return values(t, registry)["probes_unanswered_total dns secondary-0"] > before["probes_unanswered_total dns secondary-0"]
	})
	secondary.Resume()
	events := w.watch(Query{Namespace: ns}, WatchOptions{})
	events.next()
	w.eventually("the event is counted", func() bool { return values(t, registry)["watch_events_total ADDED"] > 0 })
	want("a watch", map[string]float64{"watches": 1, "watched_namespaces": 1})
}

// However many servers there are, and however often pods get new addresses, the series are few.
func TestSeriesByServerAreBounded(t *testing.T) {
	now := time.Now()
	m := newMeter(func() time.Time { return now })
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(m.probes, m.unanswered)
	ask := func(pod string, host int) {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(host >> 8), byte(host)}), 53) //nolint:gosec // as intended
		m.meet(observe.Server{Namespace: ns, Pod: pod, Addr: addr})
		m.Asked(addr, true, time.Millisecond)
	}
	for i := range 3 * serversMetered {
		ask(fmt.Sprintf("pod-%d", i), i)
	}
	got := values(t, registry)
	if len(got) != serversMetered+1 || got["probe_duration_seconds  "] != 2*serversMetered {
		t.Errorf("%d series, %v of the others; want %d and one for the others", len(got), got["probe_duration_seconds  "], serversMetered)
	}
	ask("pod-7", 1000) // moves
	ask("pod-new", 7)  // and another one takes its address
	if got := values(t, registry); got["probe_duration_seconds dns pod-new"] != 1 || len(got) != serversMetered+1 {
		t.Errorf("%d series after a pod has moved, %v", len(got), got["probe_duration_seconds dns pod-new"])
	}
	now = now.Add(meteredFor + time.Second)
	ask("late", 2000)
	if got := values(t, registry); len(got) != 2 || got["probe_duration_seconds dns late"] != 1 {
		t.Errorf("after everything was quiet for long: %v", got)
	}
}

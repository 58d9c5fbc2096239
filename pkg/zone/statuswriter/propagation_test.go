package statuswriter

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

func measured(t *testing.T, h prometheus.Histogram) (count uint64, sum float64) {
	t.Helper()
	m := &dto.Metric{}
	if err := h.Write(m); err != nil {
		t.Fatal(err)
	}
	return m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
}

// A change counts from when it was noticed until the last server has its serial, whatever follows it.
func TestPropagation(t *testing.T) {
	began := time.Now()
	base, _ := settled(t, 1)
	pass := func(after time.Duration, serial uint32, secondary uint32, change func(*SyncCompleted)) SyncCompleted {
		e := base
		e.At, e.Serial = began.Add(after), serial
		e.Servers = []ServerOutcome{{HasZone: true, Serial: serial, Current: true}, {HasZone: secondary != 0, Serial: secondary, Current: serial == secondary}}
		if change != nil {
			change(&e)
		}
		return e
	}
	takes := func(after time.Duration) func(*SyncCompleted) {
		return func(e *SyncCompleted) {
			e.Since, e.Changes = began.Add(after), plan.Changes{Create: make([]rrset.RRset, 1)}
		}
	}
	lacks := func(name, reason string, change func(*SyncCompleted)) func(*SyncCompleted) {
		return func(e *SyncCompleted) {
			if change != nil {
				change(e)
			}
			e.Unprogrammed = map[rrset.Key]status.Verdict{{Name: name}: status.False(reason, "")}
		}
	}
	stuck := lacks("host-0.example.com.", status.ReconcileFailed, takes(0))
	down := func(change func(*SyncCompleted)) func(*SyncCompleted) {
		return func(e *SyncCompleted) {
			if change != nil {
				change(e)
			}
			e.Programmed, e.All = status.False(status.PrimaryFailed, ""), true
		}
	}
	rebuilt := func(e *SyncCompleted) { e.Rebuilt, e.All = true, true }
	cases := map[string]struct {
		passes []SyncCompleted
		count  uint64
		sum    float64
		oldest bool
	}{
		"served at once":             {passes: []SyncCompleted{pass(2*time.Second, 2, 2, takes(time.Second))}, count: 1, sum: 1},
		"secondary follows":          {passes: []SyncCompleted{pass(1*time.Second, 2, 1, takes(0)), pass(3*time.Second, 2, 2, nil)}, count: 1, sum: 3},
		"secondary does not follow":  {passes: []SyncCompleted{pass(1*time.Second, 2, 1, takes(0)), pass(9*time.Second, 2, 1, nil)}, oldest: true},
		"secondary does not answer":  {passes: []SyncCompleted{pass(1*time.Second, 2, 0, takes(0))}, oldest: true},
		"always one change behind":   {passes: []SyncCompleted{pass(1*time.Second, 2, 1, takes(0)), pass(2*time.Second, 3, 2, takes(time.Second))}, count: 1, sum: 2, oldest: true},
		"refused, then programmed":   {passes: []SyncCompleted{pass(1*time.Second, 2, 2, stuck), pass(5*time.Second, 3, 3, nil)}, count: 1, sum: 5},
		"nothing to be changed":      {passes: []SyncCompleted{pass(1*time.Second, 2, 2, func(e *SyncCompleted) { e.Since = began })}},
		"first pass after a start":   {passes: []SyncCompleted{pass(1*time.Second, 2, 2, func(e *SyncCompleted) { takes(0)(e); rebuilt(e) })}},
		"a start while one lags":     {passes: []SyncCompleted{pass(1*time.Second, 2, 1, rebuilt), pass(9*time.Second, 2, 1, nil)}, oldest: true},
		"it has followed since":      {passes: []SyncCompleted{pass(1*time.Second, 2, 1, rebuilt), pass(9*time.Second, 2, 2, nil)}},
		"a primary dies meanwhile":   {passes: []SyncCompleted{pass(1*time.Second, 2, 2, down(takes(0)))}, oldest: true},
		"it comes back":              {passes: []SyncCompleted{pass(1*time.Second, 2, 2, down(takes(0))), pass(7*time.Second, 3, 3, takes(6*time.Second))}, count: 2, sum: 8},
		"kubernetes does not answer": {passes: []SyncCompleted{pass(1*time.Second, 0, 0, func(e *SyncCompleted) { down(takes(0))(e); e.Desired = nil })}, oldest: true},
		"no servers":                 {passes: []SyncCompleted{pass(1*time.Second, 2, 1, func(e *SyncCompleted) { takes(0)(e); e.Programmed = status.False(status.NoPrimaryInstances, "") })}},
		"others follow a refused one": {passes: []SyncCompleted{pass(1*time.Second, 2, 2, stuck),
			pass(3*time.Second, 3, 3, lacks("host-0.example.com.", status.ReconcileFailed, takes(2*time.Second)))}, count: 1, sum: 1, oldest: true},
		"shadowed by a delegation":   {passes: []SyncCompleted{pass(1*time.Second, 2, 2, lacks("host-0.example.com.", status.Shadowed, takes(0)))}, count: 1, sum: 1},
		"serials of others":          {passes: []SyncCompleted{pass(1*time.Second, 2, 9, func(e *SyncCompleted) { takes(0)(e); e.Servers[1].Shared = true })}, oldest: true},
		"paused while on its way":    {passes: []SyncCompleted{pass(1*time.Second, 2, 1, takes(0)), pass(2*time.Second, 2, 1, func(e *SyncCompleted) { e.Paused = true })}},
		"only a person can help":     {passes: []SyncCompleted{pass(1*time.Second, 2, 1, func(e *SyncCompleted) { takes(0)(e); e.Failure = status.False("Refused", "") })}},
		"provider cannot be reached": {passes: []SyncCompleted{pass(1*time.Second, 2, 2, func(e *SyncCompleted) { takes(0)(e); e.Backends = []BackendOutcome{{Err: host.ErrTransfer}} })}, oldest: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := NewMetrics(nil)
			for _, e := range c.passes {
				m.OnSyncCompleted(e)
			}
			if count, sum := measured(t, m.propagation.took); count != c.count || sum != c.sum {
				t.Errorf("%d measurements of %v s, want %d of %v s", count, sum, c.count, c.sum)
			}
			if age := m.oldestAge(began.Add(time.Hour)); (age > 0) != c.oldest {
				t.Errorf("the oldest change is %v s old; want one: %v", age, c.oldest)
			}
			m.Forget(client.ObjectKeyFromObject(base.Zone))
			if age := m.oldestAge(began.Add(time.Hour)); age != 0 {
				t.Errorf("a zone that is gone has a change of %v s", age)
			}
		})
	}
}

func TestBatchesAreBounded(t *testing.T) {
	e, _ := settled(t, 1)
	e.Servers, e.Changes = []ServerOutcome{{}}, plan.Changes{Create: make([]rrset.RRset, 1)}
	m := NewMetrics(nil)
	for i := range 10 * maxBatches {
		e.Since, e.At, e.Serial = time.Unix(int64(i), 0), time.Unix(int64(i), 0), uint32(i)
		m.OnSyncCompleted(e)
	}
	if n := len(m.propagation.zones[client.ObjectKeyFromObject(e.Zone)]); n != maxBatches {
		t.Errorf("%d batches are kept, want %d", n, maxBatches)
	}
	e.Since, e.Servers = time.Time{}, []ServerOutcome{{Current: true}}
	m.OnSyncCompleted(e)
	if count, _ := measured(t, m.propagation.took); count != maxBatches {
		t.Errorf("%d measurements, want %d", count, maxBatches)
	}
}

// A waiting change counts before a pass takes it. An attempt is no success.
func TestAgesOfWorkAndSuccess(t *testing.T) {
	e, _ := settled(t, 1)
	m := NewMetrics(nil)
	m.Waiting = func() time.Time { return e.At }
	if age := m.oldestAge(e.At.Add(time.Minute)); age != 60 {
		t.Errorf("the oldest change is %v s old, want 60", age)
	}
	m.OnSyncCompleted(e)
	success := e.At
	e.At, e.Programmed = e.At.Add(time.Minute), status.False(status.PrimaryFailed, "")
	m.OnSyncCompleted(e)
	read := func(g prometheus.Gauge) float64 {
		out := &dto.Metric{}
		if err := g.Write(out); err != nil {
			t.Fatal(err)
		}
		return out.GetGauge().GetValue()
	}
	if read(m.lastSuccess) != unixSeconds(success) || read(m.lastPass) != unixSeconds(e.At) {
		t.Errorf("success at %v, attempt at %v; want %v and %v", read(m.lastSuccess), read(m.lastPass), unixSeconds(success), unixSeconds(e.At))
	}
	if n := read(m.failedZones.WithLabelValues(status.PrimaryFailed)); n != 1 {
		t.Errorf("%v failed zones, want 1", n)
	}
	m.Forget(client.ObjectKeyFromObject(e.Zone))
	if n := read(m.failedZones.WithLabelValues(status.PrimaryFailed)); n != 0 {
		t.Errorf("%v failed zones are left, want 0", n)
	}
}

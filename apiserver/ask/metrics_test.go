package ask

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/test/fakekube"
)

// Whoever names a server of others in a DNSProvider has series of his own, and takes none of theirs.
func TestSeriesBelongToWhoNamesTheServer(t *testing.T) {
	m := newMeter(time.Now)
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(m.probes)
	addr := netip.MustParseAddrPort("10.0.0.1:53")
	pod, same := observe.Server{Namespace: "dns", Pod: "primary-0", Addr: addr}, observe.Server{Namespace: "other", Provider: "same", Pod: "same/10.0.0.1:53", Addr: addr}
	for _, s := range []observe.Server{pod, same, pod} {
		m.nameServer(s)
		m.Asked(s.Peer(), true, time.Millisecond)
	}
	if got := fakekube.Metrics(t, registry); got["probe_duration_seconds dns primary-0"] != 2 || got["probe_duration_seconds other same/10.0.0.1:53"] != 1 {
		t.Errorf("%v", got)
	}
}

// A namespace that makes servers without end takes no series from others.
func TestNamespacesShareSeries(t *testing.T) {
	now := time.Now()
	m := newMeter(func() time.Time { return now })
	name := func(namespace string, host int) {
		now = now.Add(time.Millisecond)
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(host >> 8), byte(host)}), 53)
		m.nameServer(observe.Server{Namespace: namespace, Pod: fmt.Sprint(host), Addr: addr})
	}
	for range 3 {
		for i := range 2 * maxMeteredServers {
			name("flood", i)
		}
		for i := range 10 {
			name("quiet", i)
		}
	}
	if m.of["quiet"] != 10 || m.of["flood"] != maxMeteredServers-10 || len(m.servers) != maxMeteredServers {
		t.Errorf("%v of %d", m.of, len(m.servers))
	}
	now = now.Add(2 * meteredTimeout)
	name("late", 1)
	for i := range maxMeteredServers {
		name("late", i)
	}
	if m.of["late"] != maxMeteredServers || len(m.of) != 1 {
		t.Errorf("after everything was quiet for long: %v", m.of)
	}
}

// However many servers there are, and however often pods get new addresses, the series are few.
func TestSeriesByServerAreBounded(t *testing.T) {
	now := time.Now()
	m := newMeter(func() time.Time { return now })
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(m.probes, m.unanswered, m.questions, m.sweeps)
	ask := func(pod string, host int) {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(host >> 8), byte(host)}), 53)
		s := observe.Server{Namespace: fakekube.Namespace, Pod: pod, Addr: addr}
		m.nameServer(s)
		m.Asked(s.Peer(), true, time.Millisecond)
	}
	for i := range 3 * maxMeteredServers {
		ask(fmt.Sprintf("pod-%d", i), i)
	}
	got := fakekube.Metrics(t, registry)
	if len(got) != maxMeteredServers+1 || got["probe_duration_seconds  "] != 2*maxMeteredServers {
		t.Errorf("%d series, %v of the others; want %d and one for the others", len(got), got["probe_duration_seconds  "], maxMeteredServers)
	}
	ask("pod-7", 1000) // moves
	ask("pod-new", 7)  // and another one takes its address
	if got := fakekube.Metrics(t, registry); got["probe_duration_seconds dns pod-new"] != 1 || len(got) != maxMeteredServers+1 {
		t.Errorf("%d series after a pod has moved, %v", len(got), got["probe_duration_seconds dns pod-new"])
	}
	now = now.Add(meteredTimeout + time.Second)
	ask("late", 2000)
	if got := fakekube.Metrics(t, registry); len(got) != 2 || got["probe_duration_seconds dns late"] != 1 {
		t.Errorf("after everything was quiet for long: %v", got)
	}
	late := observe.Peer{Addr: netip.MustParseAddrPort("10.0.7.208:53"), Namespace: fakekube.Namespace}
	m.Questioned(late, nil)
	m.Questioned(late, errors.New("no answer"))
	m.noteSweep(late, 2*time.Second)
	got = fakekube.Metrics(t, registry)
	if got["questions_total dns late answered"] != 1 || got["questions_total dns late failed"] != 1 || got["last_sweep_duration_seconds dns late"] != 2 {
		t.Errorf("read by query: %v", got)
	}
	m.dropSeries(late)
	if got := fakekube.Metrics(t, registry); len(got) != 1 {
		t.Errorf("a server that is gone has %v", got)
	}
}

package registry

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// What happens to servers that were in sync with their primary at serial 10, until it is at serial 11.
func TestTroublesOfRealServers(t *testing.T) {
	const deadline = time.Second
	file := bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"}
	only := []bind.Zone{file}
	dropped := func(string, []byte) ([]byte, error) { return nil, bind.ErrHangUp }
	late := func(by time.Duration) bind.Filter {
		return func(_ string, reply []byte) ([]byte, error) {
			time.Sleep(by)
			return reply, nil
		}
	}
	// secondary is one in sync, whose primary is reached through a proxy, and which is reached through another.
	secondary := func(t *testing.T, primary *bind.Server) (s *bind.Server, to, from *bind.Proxy) {
		to = bind.StartProxy(t, primary.Addr)
		through := *primary
		through.Addr = to.Addr
		s = bind.Start(t, bind.Options{Role: bind.Secondary, Primary: &through, Zones: only})
		return s, to, bind.StartProxy(t, s.Addr)
	}
	refresh := func(t *testing.T, s *bind.Server) {
		if out, err := s.Rndc("refresh", "example.test"); err != nil {
			t.Fatal(err, out)
		}
	}
	for name, c := range map[string]struct {
		// then is what happens once the primary has changed.
		then func(t *testing.T, s *bind.Server, to, from *bind.Proxy)
		want syncv1.ServerState
		// slow is how long the server takes for its answer at least.
		slow time.Duration
	}{
		"in sync": {func(t *testing.T, s *bind.Server, _, _ *bind.Proxy) { refresh(t, s) }, syncv1.StateInSync, 0},
		"its transfers are blocked": {func(t *testing.T, s *bind.Server, to, _ *bind.Proxy) {
			to.Filter(dropped)
			refresh(t, s)
		}, syncv1.StateStale, 0},
		"dead": {func(_ *testing.T, s *bind.Server, _, _ *bind.Proxy) { s.Kill() }, syncv1.StateUnreachable, 0},
		"slow": {func(t *testing.T, s *bind.Server, _, from *bind.Proxy) {
			refresh(t, s)
			from.Filter(late(50 * time.Millisecond))
		}, syncv1.StateInSync, 50 * time.Millisecond},
		"too slow": {func(t *testing.T, s *bind.Server, _, from *bind.Proxy) {
			refresh(t, s)
			from.Filter(late(3 * deadline))
		}, syncv1.StateUnreachable, 0},
		"truncating": {func(t *testing.T, s *bind.Server, _, from *bind.Proxy) {
			refresh(t, s)
			from.Filter(truncate)
		}, syncv1.StateInSync, 0},
		"its transfers to us hang up": {func(t *testing.T, s *bind.Server, _, from *bind.Proxy) {
			refresh(t, s)
			from.Filter(func(network string, reply []byte) ([]byte, error) {
				if network == "tcp" {
					return nil, bind.ErrHangUp
				}
				return reply, nil
			})
		}, syncv1.StateUnreachable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *testOptions) { o.Deadline = deadline })
			primary := bind.Start(t, bind.Options{Zones: only, Transfer: w.Key})
			s, to, from := secondary(t, primary)
			w.Server("primary", v1beta1.RolePrimary, primary.Addr)
			w.Server("secondary", v1beta1.RoleSecondary, from.Addr)
			z := fakekube.Zone("example.test", "primary", "secondary")
			r := w.Record(z, "www", "192.0.2.8")
			w.Apply(z)
			w.Apply(r)
			fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
			c.then(t, s, to, from)
			row := func() *syncv1.ServerStatus {
				rows := w.get("arecord.www").Servers
				if len(rows) != 2 || rows[0].State != syncv1.StateInSync {
					return nil
				}
				return &rows[1]
			}
			var last *syncv1.ServerStatus
			w.Eventually("the server is "+string(c.want), func() bool {
				last = row()
				return last != nil && last.State == c.want
			})
			if (last.Message == "") != (c.want == syncv1.StateInSync) {
				t.Errorf("%s with message %q", last.State, last.Message)
			}
			if c.slow > 0 && (last.RTT == nil || last.RTT.Duration < c.slow) {
				t.Errorf("round trip %v, want at least %s", last.RTT, c.slow)
			}
		})
	}
}

// truncate makes every reply over UDP one that did not fit.
func truncate(network string, reply []byte) ([]byte, error) {
	if network != "udp" {
		return reply, nil
	}
	m := new(dns.Msg)
	if err := m.Unpack(reply); err != nil {
		return nil, err
	}
	m.Truncated, m.Answer, m.Ns = true, nil, nil
	return m.Pack()
}

const rewritten = "$ORIGIN example.test.\n$TTL 300\n@ SOA ns1 hostmaster 10 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\nwww A 192.0.2.7\n"

// rewrite puts the content of a zone right on the same serial, as somebody does who edits its file.
func rewrite(t *testing.T, s *bind.Server) {
	t.Helper()
	if out, err := s.Rndc("freeze", "example.test"); err != nil {
		t.Fatal(err, out)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "example.test.zone"), []byte(rewritten), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Rndc("thaw", "example.test"); err != nil {
		t.Fatal(err, out)
	}
}

// atOdds starts a primary, and a server that has other data on the same serial.
func atOdds(t *testing.T, w *world) (primary, other *bind.Server) {
	t.Helper()
	file := bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"}
	primary = bind.Start(t, bind.Options{Zones: []bind.Zone{file}, Transfer: w.Key})
	file.Records = "www A 192.0.2.9"
	other = bind.Start(t, bind.Options{Zones: []bind.Zone{file}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	w.Server("secondary", v1beta1.RoleSecondary, other.Addr)
	w.Declare("www")
	return primary, other
}

const (
	allInStep = "InSync primary-0=InSync secondary-0=InSync"
	otherData = "OutOfSync primary-0=InSync secondary-0=Divergent"
)

// A server whose content was put right on the same serial is not called Divergent by what it had before. The interval for
// looking at zones in sync is never here.
func TestDivergentIsWhatAServerHasNow(t *testing.T) {
	w := newWorld(t)
	_, other := atOdds(t, w)
	w.Eventually("the other data is seen", func() bool { return states(w.get("arecord.www")) == otherData })
	rewrite(t, other)
	w.Eventually("its new data is seen", func() bool { return states(w.get("arecord.www")) == allInStep })
	if got := states(w.get("dnszone.example.test")); got != allInStep {
		t.Errorf("the zone: %s", got)
	}
}

// Increments on top of content that is no longer there add up to what the server never had. That is never told.
func TestDivergentIsTransferredAfresh(t *testing.T) {
	w := newWorld(t)
	primary, other := atOdds(t, w)
	w.Eventually("the other data is seen", func() bool { return states(w.get("arecord.www")) == otherData })
	rewrite(t, other)
	for _, s := range []*bind.Server{primary, other} {
		fakekube.Update(t, s, "example.test.", "more.example.test.", "192.0.2.1")
	}
	time.Sleep(2 * time.Second) // It is looked at no more often.
	w.Eventually("both servers have answered", func() bool {
		got := states(w.get("arecord.www"))
		if got == otherData {
			t.Fatal("called Divergent by what it had before")
		}
		return got == allInStep
	})
}

func TestWatchTransfersDivergentAfresh(t *testing.T) {
	for name, interval := range map[string]time.Duration{"asked often": 50 * time.Millisecond, "asked seldom": time.Second} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *testOptions) { o.WatchInterval = interval })
			_, other := atOdds(t, w)
			events := w.watch(query{namespace: ns}, store.WatchOptions{})
			events.until("arecord.www", otherData)
			rewrite(t, other)
			events.until("arecord.www", allInStep)
		})
	}
}

// A server that is behind says since when, and a secondary when it gives up.
func TestSinceWhenAndUntilWhen(t *testing.T) {
	w := newWorld(t)
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z := fakekube.Zone("example.test", "primary", "secondary")
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.8"))
	w.Eventually("both are asked", func() bool { return len(w.get("arecord.www").Servers) == 2 })
	began := time.Now()
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	first, second := w.get("arecord.www"), w.get("arecord.www")
	since := first.Servers[1].BehindSince
	if since == nil || since.Time.Before(began.Truncate(time.Microsecond)) || !since.Equal(second.Servers[1].BehindSince) || !second.ObservedAt.After(since.Time) {
		t.Errorf("behind since %v, then %v; the primary changed at %v", since, second.Servers[1].BehindSince, began)
	}
	if first.Servers[0].BehindSince != nil || first.Servers[0].ExpiresAt != nil {
		t.Errorf("the primary is behind since %v and expires at %v", first.Servers[0].BehindSince, first.Servers[0].ExpiresAt)
	}
	if at := first.Servers[1].ExpiresAt; at == nil || time.Until(at.Time) > 86400*time.Second || time.Until(at.Time) < 86000*time.Second {
		t.Errorf("the secondary expires at %v, want nearly a day from now", at)
	}
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	w.Eventually("it has caught up", func() bool { return states(w.get("arecord.www")) == allInStep })
	if s := w.get("arecord.www"); s.Servers[1].BehindSince != nil {
		t.Errorf("in sync and behind since %v", s.Servers[1].BehindSince)
	}
}

// A secondary that has lost its primary serves until it said it would, and no longer.
func TestSecondaryExpires(t *testing.T) {
	w := newWorld(t)
	primary, _ := w.Lagging(bind.Zone{Name: "example.test.", File: "$ORIGIN example.test.\n$TTL 300\n@ SOA ns1 hostmaster 10 5 1 7 60\n@ NS ns1\nns1 A 192.0.2.1\nwww A 192.0.2.7\n"})
	w.Declare("www")
	w.Eventually("it is in sync", func() bool { return states(w.get("arecord.www")) == allInStep })
	primary.Stop()
	var told []time.Time
	w.Eventually("the secondary has expired", func() bool {
		row := w.get("arecord.www").Servers[1]
		if row.ExpiresAt != nil && row.State == syncv1.StateInSync {
			told = append(told, row.ExpiresAt.Time)
		}
		return row.State == syncv1.StateNotLoaded
	})
	if len(told) == 0 {
		t.Fatal("it never said when it expires")
	}
	// Whole seconds, rounded down on both sides.
	if early := time.Until(slices.MinFunc(told, time.Time.Compare)); early > 2*time.Second {
		t.Errorf("it expired %s before it said it would", early)
	}
}

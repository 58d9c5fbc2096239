package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

var secondaryClause = regexp.MustCompile(`type secondary; file ("[^"]*"); primaries {[^}]*};`)

// turnPrimary makes a secondary a primary of what it has, as somebody may do by hand on the server.
func turnPrimary(t *testing.T, s *bind.Server) {
	t.Helper()
	path := filepath.Join(s.Dir, "named.conf")
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	now := secondaryClause.ReplaceAllString(string(was), fmt.Sprintf(`type primary; file $1; update-policy { grant %q zonesub ANY; };`, s.Update.Name))
	if now == string(was) {
		t.Fatalf("no zone of a secondary in\n%s", was)
	}
	if err := os.WriteFile(path, []byte(now), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
}

// A secondary that was made a primary and changed directly is Divergent, at the serial of the others as well as ahead of it:
// no transfer will ever repair it.
func TestSecondaryTurnedPrimary(t *testing.T) {
	w := newWorld(t)
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7\nmail A 192.0.2.7"})
	w.Declare("www", "mail")
	for _, name := range []string{"arecord.www", "arecord.mail", "dnszone.example.test"} {
		w.Eventually(name+" is in sync", func() bool { return states(w.get(name)) == allInStep })
	}
	turnPrimary(t, secondary)
	fakekube.Update(t, secondary, "example.test.", "www.example.test.", "203.0.113.9")

	divergent := func(when string, lag int64, says string) {
		t.Helper()
		for _, name := range []string{"arecord.www", "dnszone.example.test"} {
			w.Eventually(name+" is Divergent "+when, func() bool { return states(w.get(name)) == otherData })
			s := w.get(name)
			row := s.Servers[1]
			if row.SerialLag == nil || *row.SerialLag != lag || !strings.Contains(row.Message, says) || len(row.Observed) != 1 || row.Observed[0].Rdata[0] != "203.0.113.9" {
				t.Errorf("%s, %s: %+v", when, name, row)
			}
			if c := s.Status.Conditions[2]; c.Reason != "Divergent" || s.Status.Phase != syncv1.PhaseOutOfSync {
				t.Errorf("%s, %s is %s by %+v", when, name, s.Status.Phase, c)
			}
		}
		if got := states(w.get("arecord.mail")); got != allInStep {
			t.Errorf("%s, another record is %s", when, got)
		}
	}
	divergent("ahead of the primary", -1, "no transfer will repair it")
	fakekube.Update(t, primary, "example.test.", "elsewhere.example.test.", "192.0.2.1")
	fakekube.Update(t, secondary, "example.test.", "elsewhere.example.test.", "192.0.2.1")
	fakekube.Update(t, primary, "example.test.", "other.example.test.", "192.0.2.1")
	divergent("at the primary's serial", 0, "serial 12 is the newest, but the data is not what is declared")
}

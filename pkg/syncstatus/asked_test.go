package syncstatus

import (
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/test/named"
)

// What a server answered before its zone changed shows neither that declared data is missing now nor that it is other data.
func TestAnswersOfAnOlderSerial(t *testing.T) {
	for name, c := range map[string]struct {
		records string
		before  syncv1.ServerState
	}{
		"other data": {"www 3600 A 192.0.2.66\n", syncv1.StateDivergent},
		"no data":    {"", syncv1.StateMissing},
	} {
		t.Run(name, func(t *testing.T) {
			s := named.Start(t, named.Options{Zones: []named.Zone{{Name: "example.com.", Records: c.records}}})
			z := testZone()
			r := testRecord(z)
			d := NewDesiredState(z, build(t, z, r), []source.Object{r}, nil)
			primary := servers()[:1]
			primary[0].Addr, primary[0].ReadBy = s.Addr, v1beta1.ReadByQuery
			observer := observe.New(observe.Options{})
			row := func(questions ...observe.Question) syncv1.ServerStatus {
				seen := observer.ObserveNames(t.Context(), observe.Peer{Addr: s.Addr}, observe.Zone{Name: "example.com."}, &s.Transfer, time.Now(), questions...)
				return rowOf(d, primary, seen, r)
			}
			www := d.QuestionFor(wwwA)
			if got := row(www); got.State != c.before {
				t.Fatalf("asked: %s %s", got.State, got.Message)
			}
			replaceAddress(t, s, wwwA, "192.0.2.1")
			if got := row(); got.State != syncv1.StateUnreachable || !strings.Contains(got.Message, "1 of 1 RRsets have not been asked lately") {
				t.Errorf("not asked since the zone has changed: %s %s", got.State, got.Message)
			}
			if got := row(www); got.State != syncv1.StateInSync {
				t.Errorf("asked again: %s %s", got.State, got.Message)
			}
		})
	}
}

// Whoever has no serial is judged by the time of the answer alone: other data there is other data.
func TestAnswersWithoutASerial(t *testing.T) {
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: "example.com.", Records: "www 3600 A 192.0.2.66\n"}}})
	z := testZone(func(z *v1beta1.DNSZone) {
		z.Status.Providers = []v1beta1.ZoneProvider{{Name: "etcd", Status: v1beta1.ZoneConfigured}}
	})
	r := testRecord(z)
	d := NewDesiredState(z, build(t, z, r), []source.Object{r}, nil)
	replica := []observe.Server{{
		Namespace: z.Namespace, Provider: "etcd", Pod: "etcd/", Role: observe.Primary, Addr: s.Addr, Unsigned: true, Shared: true, ReadBy: v1beta1.ReadByQuery,
	}}
	seen := observe.New(observe.Options{}).ObserveNames(t.Context(), observe.Peer{Addr: s.Addr}, observe.Zone{Name: "example.com."}, nil, time.Now(), d.QuestionFor(wwwA))
	if row := rowOf(d, replica, seen, r); row.Serial != nil || row.State != syncv1.StateDivergent {
		t.Errorf("row %+v", row)
	}
}

// rowOf returns the row of the only server of a record.
func rowOf(d *DesiredState, server []observe.Server, seen observe.Observation, r *v1beta1.ARecord) syncv1.ServerStatus {
	var all []observe.Observation
	return Evaluate(d, server, append(all, seen), time.Now(), History{}).RecordStatus(r).Servers[0]
}

func replaceAddress(t *testing.T, s *named.Server, k rrset.Key, address string) {
	t.Helper()
	rr, err := dns.NewRR(k.Name + " 3600 A " + address)
	if err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg).SetUpdate("example.com.")
	m.RemoveRRset([]dns.RR{rr})
	m.Insert([]dns.RR{rr})
	s.SendUpdate(t, m)
}

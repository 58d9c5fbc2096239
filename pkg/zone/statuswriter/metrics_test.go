package statuswriter

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func TestMetricsSumUpOverZones(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	e, _ := settled(t, 2)
	e.Foreign, e.Drift, e.Changes = 3, 2, plan.Changes{Create: make([]rrset.RRset, 4), Delete: make([]rrset.RRset, 1)}
	m.OnSyncCompleted(e)
	other := e
	other.Zone = e.Zone.DeepCopy()
	other.Zone.Name, other.Changes, other.Drift, other.Foreign = "other", plan.Changes{}, 0, 1
	other.Unprogrammed = map[rrset.Key]status.Verdict{{Name: "host-0.example.com."}: {}}
	m.OnSyncCompleted(other)
	other.Paused, other.Foreign = true, 0
	m.OnSyncCompleted(other)
	m.countWrite("ARecord", nil)
	m.countWrite("ARecord", errors.New("down"))
	want := `
# HELP lockstep_drift_corrected_total RRsets put right after somebody else had changed them on a server.
# TYPE lockstep_drift_corrected_total counter
lockstep_drift_corrected_total 2
# HELP lockstep_rrset_changes_total RRsets changed on primaries, by change: create, update or delete.
# TYPE lockstep_rrset_changes_total counter
lockstep_rrset_changes_total{change="create"} 4
lockstep_rrset_changes_total{change="delete"} 1
lockstep_rrset_changes_total{change="update"} 0
# HELP lockstep_rrsets_foreign RRsets in zones that no object declares.
# TYPE lockstep_rrsets_foreign gauge
lockstep_rrsets_foreign 3
# HELP lockstep_rrsets_unprogrammed RRsets that not all primaries of their zone serve as declared.
# TYPE lockstep_rrsets_unprogrammed gauge
lockstep_rrsets_unprogrammed 1
# HELP lockstep_status_writes_total Statuses written, by kind and result: written, conflict (tried again) or failed (tried again).
# TYPE lockstep_status_writes_total counter
lockstep_status_writes_total{kind="ARecord",result="failed"} 1
lockstep_status_writes_total{kind="ARecord",result="written"} 1
# HELP lockstep_zone_passes_total Passes over zones, by outcome: unchanged, changed, partial, failed or paused.
# TYPE lockstep_zone_passes_total counter
lockstep_zone_passes_total{outcome="changed"} 1
lockstep_zone_passes_total{outcome="partial"} 1
lockstep_zone_passes_total{outcome="paused"} 1
# HELP lockstep_zones_paused Zones that are only watched.
# TYPE lockstep_zones_paused gauge
lockstep_zones_paused 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "lockstep_drift_corrected_total", "lockstep_rrset_changes_total",
		"lockstep_rrsets_foreign", "lockstep_rrsets_unprogrammed", "lockstep_status_writes_total", "lockstep_zone_passes_total", "lockstep_zones_paused"); err != nil {
		t.Error(err)
	}
	m.Forget(client.ObjectKeyFromObject(other.Zone))
	if n := testutil.ToFloat64(m.zonesPaused) + testutil.ToFloat64(m.unprogrammed); n != 0 {
		t.Errorf("a zone that is gone is still counted: %v", n)
	}
}

// How many zones have which Delegated condition, and how long zones above have been behind, those declared here and those elsewhere apart.
func TestMetricsOfDelegations(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	first, _ := settled(t, 1)
	now := time.Now()
	pass := func(name, elsewhere string, v status.Verdict, behind time.Duration) SyncCompleted {
		e := first
		e.Zone = first.Zone.DeepCopy()
		e.Zone.Name, e.Delegated, e.DNSSEC = name, v, &v1beta1.DNSSECStatus{Delegation: &v1beta1.SecureDelegation{ParentElsewhere: elsewhere}}
		if behind > 0 {
			e.DelegationBehind = now.Add(-behind)
		}
		m.OnSyncCompleted(e)
		return e
	}
	want := func(declared, elsewhere float64, zones string) {
		t.Helper()
		if a, b := m.oldestDSChange(false, now), m.oldestDSChange(true, now); a != declared || b != elsewhere {
			t.Errorf("zones above are behind for %v and elsewhere for %v seconds, want %v and %v", a, b, declared, elsewhere)
		}
		help := "# HELP lockstep_zones_delegated Signed zones with a zone above that is known, by status and reason of their Delegated condition.\n# TYPE lockstep_zones_delegated gauge\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(help+zones), "lockstep_zones_delegated"); err != nil {
			t.Error(err)
		}
	}
	published, pending, late := status.True(status.DSPublished, ""), status.False(status.DSPending, ""), status.False(status.RegistryBehind, "")
	pass("a", "", published, 0)
	pass("b", "", pending, time.Minute)
	pass("c", "com", late, time.Hour)
	e := pass("d", "com", late, 24*time.Hour)
	want(60, 86400, `lockstep_zones_delegated{reason="DSPending",status="False"} 1
lockstep_zones_delegated{reason="DSPublished",status="True"} 1
lockstep_zones_delegated{reason="RegistryBehind",status="False"} 2
`)
	m.Forget(client.ObjectKeyFromObject(e.Zone))
	pass("b", "", published, 0)
	e = pass("c", "com", published, 0)
	e.DNSSEC = nil // It is signed no more.
	m.OnSyncCompleted(e)
	want(0, 0, `lockstep_zones_delegated{reason="DSPending",status="False"} 0
lockstep_zones_delegated{reason="DSPublished",status="True"} 2
lockstep_zones_delegated{reason="RegistryBehind",status="False"} 0
`)
}

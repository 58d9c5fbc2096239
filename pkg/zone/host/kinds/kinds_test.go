package kinds_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/dnsprovider"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/hosttest"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/kinds"
)

// A kind is a line beside the others, and passes their suite.
func TestAnotherKind(t *testing.T) {
	ours := zoneFiles{dir: t.TempDir(), owner: "team/files", mu: &sync.Mutex{}}
	backends := &dnsprovider.Backends{Kinds: append(slices.Clone(kinds.Backends), ours)}
	provider := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Name: "files", UID: "1", Annotations: map[string]string{"kind": "file"}}}
	b, err := backends.Of(t.Context(), provider)
	if err != nil || !backends.Takes(provider) || backends.Takes(&v1beta1.DNSProvider{}) {
		t.Fatal(b, err)
	}
	others, taken := zoneFiles{ours.dir, "other/files", ours.mu}, atomic.Int64{}
	edit := func(t *testing.T, zone string, change func(all []record) []record) {
		if err := others.edit(zone, func(all []record) ([]record, error) { return change(all), nil }); err != nil {
			t.Fatal(err)
		}
	}
	found := hosttest.Run(t, hosttest.Bench{
		Backend: b, Other: others, Zones: func() string { return fmt.Sprintf("z%d.test.", taken.Add(1)) },
		Ask: func(t *testing.T, zone string, key rrset.Key) (set rrset.RRset) {
			edit(t, zone, func(all []record) []record { set, _ = ours.observe(all).Content.Get(key); return all })
			return set
		},
		PutForeign: func(t *testing.T, zone string, set rrset.RRset) {
			edit(t, zone, func(all []record) []record { return append(all, others.recordsOf(set)...) })
		},
		Damage: func(t *testing.T, zone string, set rrset.RRset) {
			edit(t, zone, func(all []record) []record {
				n := slices.IndexFunc(all, func(r record) bool { return r.Key == set.Key })
				return slices.Delete(all, n, n+1)
			})
		},
	})
	for row, cell := range found {
		if cell == "no" {
			t.Errorf("%s: no", row)
		}
	}
}

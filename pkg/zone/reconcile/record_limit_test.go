package reconcile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// More values than the servers take are reported of the object that comes last, whatever admission saw, and published in the pass after which
// the servers take them.
func TestTooManyValuesWaitForServersThatTakeThem(t *testing.T) {
	r := newBareRig(t)
	r.primary = append(r.primary, bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone}}, Extra: "max-records-per-type 150;"}))
	r.join(v1beta1.RolePrimary, 0, r.primary[0])
	r.zone.Status.Bind9Instances = []v1beta1.ZoneInstance{{Namespace: "dns", Name: "primary-0", Status: v1beta1.ZoneConfigured}}
	r.zones.Set(r.zone)
	add := func(object string, generation int64, from, n int) *v1beta1.ARecord {
		a := r.a(object, generation, "")
		a.Spec.Name, a.Spec.IPv4Addresses = "www", nil
		for i := range n {
			a.Spec.IPv4Addresses = append(a.Spec.IPv4Addresses, fmt.Sprintf("192.0.2.%d", from+i))
		}
		r.zones.Set(a)
		return a
	}
	r.scope.instances[0].Status.MaxRecordsPerType = 100
	first, second := add("first", 1, 0, 80), add("second", 1, 80, 70)
	r.zones.Set(r.a("ftp", 1, "192.0.2.7"))
	verdict := func(p passResult, a *v1beta1.ARecord) source.Declaration {
		d, _ := p.event.Desired.Declarations.Get(source.ID{ObjectKey: source.KeyOf(a)})
		return d
	}
	const says = "www.example.test. A would have 150 values, 80 of them by other declarations, and Bind9Instance dns/primary-0 takes at most 100 of one name and type; raise spec.config.maxRecordsPerType there"
	p := r.mustSync()
	if d := verdict(p, second); d.Accepted || d.Reason != "Unsupported" || d.Message != says || !verdict(p, first).Accepted {
		t.Errorf("of two objects: %+v", d)
	}
	r.holds("ftp", "192.0.2.7")
	if n := len(served(t, r.primary[0], "www")); n != 80 {
		t.Errorf("the server has %d of the values of the first", n)
	}
	r.scope.instances[0].Status.MaxRecordsPerType = 150
	if d := verdict(r.mustSync(), second); !d.Accepted {
		t.Errorf("of servers that take them: %s", d.Message)
	}
	if n := len(served(t, r.primary[0], "www")); n != 150 {
		t.Errorf("the server has %d values", n)
	}
	second = add("second", 2, 80, 71)
	if d := verdict(r.mustSync(), second); d.Accepted || !strings.Contains(d.Message, "would have 151 values, 80 of them by other declarations") {
		t.Errorf("of one more: %+v", d)
	}
}

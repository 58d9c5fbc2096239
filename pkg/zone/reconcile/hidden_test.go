package reconcile

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// What a server holds and does not answer with is not programmed: below another of its zones, a delegation or a DNAME that
// nobody declares. What belongs to a declared delegation is fine.
func TestPassReportsWhatServersHoldAndDoNotAnswerWith(t *testing.T) {
	const child = "child." + rigZone
	r := newRig(t, 1, bind.Zone{}, bind.Zone{Name: child}, bind.Zone{Name: "sub." + rigZone})
	for _, name := range []string{"plain", "a.child", "child", "a.cut", "cut", "ns.cut", "a.alias", "alias", "ns.sub"} {
		r.zones.Set(r.a(name, 1, "192.0.2.10"))
	}
	delegation := &v1beta1.NSRecord{ObjectMeta: r.a("sub", 1, "192.0.2.1").ObjectMeta}
	delegation.Spec.Name, delegation.Spec.Nameserver = "sub", "ns.sub."+rigZone
	r.zones.Set(delegation)
	hidden := func(p passResult) (names []string) {
		for key, verdict := range p.event.Unprogrammed {
			if verdict.Reason == status.Shadowed {
				names = append(names, strings.TrimSuffix(key.Name, "."+rigZone)+" "+dns.TypeToString[key.Type])
			}
		}
		return slices.Sorted(slices.Values(names))
	}
	if p := r.pass(); len(p.event.Unprogrammed) > 0 {
		t.Fatalf("nobody declares a zone below: %v", slices.Collect(maps.Values(p.event.Unprogrammed)))
	}
	for _, name := range []string{child, "sub." + rigZone, "elsewhere." + rigZone} {
		below := r.zone.DeepCopy()
		below.Name, below.UID, below.Spec.ZoneName = name, types.UID(name), strings.TrimSuffix(name, ".")
		below.Spec.RecordsFrom = nil
		r.zones.Set(below)
	}
	r.insert(0, "cut."+rigZone+" 60 NS ns.cut."+rigZone, "alias."+rigZone+" 60 DNAME example.net.")
	for range 2 { // The second one finds the zone at rest.
		p := r.pass()
		if diff := cmp.Diff([]string{"a.alias A", "a.child A", "a.cut A", "child A", "cut A", "ns.cut A"}, hidden(p)); diff != "" {
			t.Errorf("hidden (-want +got):\n%s", diff)
		}
		verdict := p.event.Unprogrammed[rrset.Key{Name: "a." + child, Type: dns.TypeA}]
		if !strings.Contains(verdict.Message, "from zone "+child) {
			t.Errorf("the verdict is %q", verdict.Message)
		}
	}
	// An object that is deleted does not wait for another one that is hidden as well.
	twin := r.a("cut", 1, "192.0.2.11")
	twin.Name, twin.UID = "twin", "twin"
	r.zones.Set(twin)
	r.pass()
	twin = twin.DeepCopy()
	twin.DeletionTimestamp = new(metav1.Now())
	r.zones.Set(twin)
	if p := r.pass(); len(p.event.Released) != 1 || p.event.Unprogrammed[rrset.Key{Name: "cut." + rigZone, Type: dns.TypeA}].Reason != status.Shadowed {
		t.Errorf("released %v beside what is hidden: %v", p.event.Released, p.event.Unprogrammed)
	}
	if out, err := r.primary[0].Rndc("delzone", child); err != nil {
		t.Fatal(out, err)
	}
	if diff := cmp.Diff([]string{"a.alias A", "a.cut A", "cut A", "ns.cut A"}, hidden(r.pass())); diff != "" {
		t.Errorf("hidden after the zone below is gone (-want +got):\n%s", diff)
	}
}

// Servers are asked about zones below that they may have. Whoever has zones of the names of somebody's records elsewhere makes no questions.
func TestZonesElsewhereAreNoQuestions(t *testing.T) {
	p := passOverFake(&fakePrimary{sets: map[rrset.Key]rrset.RRset{}})
	instance := p.instances[0].DeepCopy()
	instance.Spec.ClusterRef = "own"
	p.zone.Spec.ClusterRef = "own"
	p.fleet = membership.NewFleet(membership.FleetObjects{Instances: []*v1beta1.Bind9Instance{instance}}, "home")
	for n := range 3 {
		record := numbered(n, 1)
		p.zones.Set(record)
		below := p.zone.DeepCopy()
		below.Name, below.UID, below.Spec.RecordsFrom = record.Name, record.UID, nil
		below.Spec.ZoneName = record.Spec.Name + ".example.test"
		switch n {
		case 1:
			below.Namespace = "strange"
		case 2:
			below.Spec.ClusterRef = "none"
		}
		p.zones.Set(below)
	}
	if _, err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"r000000.example.test."}, p.zonesCovering()); diff != "" {
		t.Errorf("servers are asked about (-want +got):\n%s", diff)
	}
}

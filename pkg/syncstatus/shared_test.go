package syncstatus

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Servers that others write to as well are measured by their own primary's serial, and not by the zone's SOA and NS records.
func TestServersThatOthersWriteToAsWell(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	desired := build(t, z, r)
	d := NewDesiredState(z, desired, []source.Object{r}, nil)
	all := servers()
	for n, role := range []observe.Role{observe.Primary, observe.Secondary} {
		all = append(all, observe.Server{Namespace: z.Namespace, Provider: "corp", Pod: "corp/" + string(role), Role: role, Shared: true,
			Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(n + 1)}), 53)})
	}
	theirNS := rrset.RRset{Key: rrset.Key{Name: "example.com.", Type: dns.TypeNS}, TTL: 60, Rdata: []string{"ns.corp.example."}}
	theirs := func(serial uint32, more ...rrset.RRset) observe.Observation {
		o := holds(desired, serial, append(more, theirNS)...)
		soa := o.SOA
		soa.MName = "ns.corp.example."
		o.SOA, o.Mirror.SOA = soa, soa
		return o
	}
	other := rrset.RRset{Key: rrset.Key{Name: "dhcp.example.com.", Type: dns.TypeA}, TTL: 60, Rdata: []string{"192.0.2.77"}}
	seen := []observe.Observation{}
	for range servers() {
		seen = append(seen, holds(desired, 1000))
	}
	seen = append(seen, theirs(7, other), theirs(6))
	status := Evaluate(d, all, seen, asked, History{}).ZoneStatus(nil)
	at := len(seen) - 2
	for i, row := range status.Servers[:at+1] {
		if row.State != syncv1.StateInSync || *row.SerialLag != 0 {
			t.Errorf("server %d: %s, lag %d, %s", i, row.State, *row.SerialLag, row.Message)
		}
	}
	if got := *status.Servers[at].Records; got.OutOfSync != 0 || got.Undeclared != 1 || got.InSync != int32(desired.Len()-1) {
		t.Errorf("counted %+v of %d", got, desired.Len())
	}
	if lag := *status.Servers[at+1].SerialLag; lag != 1 {
		t.Errorf("their secondary's lag is %d", lag)
	}
	var names []string
	for _, n := range status.NameServers {
		names = append(names, n.Name)
	}
	if diff := cmp.Diff(apexNS(desired).Rdata, names); diff != "" {
		t.Errorf("name servers (-want +got):\n%s", diff)
	}
	// A record there is out of sync as anywhere else.
	gone := rrset.RRset{Key: rrset.Key{Name: "www.example.com.", Type: dns.TypeA}}
	seen[at] = theirs(8, gone)
	if row := Evaluate(d, all, seen, asked, History{}).RecordStatus(r).Servers[at]; row.State != syncv1.StateMissing {
		t.Errorf("a missing record: %s %s", row.State, row.Message)
	}
}

// A comparison that follows what objects declare at the name of the zone object's own name server is what one from scratch would be.
func TestApexOfOthersComesAndGoes(t *testing.T) {
	z := testZone(func(z *v1beta1.DNSZone) {
		z.Spec.SOARecord.PrimaryNS = "ns1.example.com."
		z.Spec.NameServerIPs = map[string]string{"ns1.example.com.": "192.0.2.1"}
	})
	record := testRecord(z, func(r *v1beta1.ARecord) {
		r.Spec.Name, r.Spec.IPv4Addresses, r.Spec.TTL = "ns1", []string{"192.0.2.1"}, nil
	})
	elsewhere := testRecord(z, func(r *v1beta1.ARecord) { r.Spec.Name = "elsewhere" })
	var last *serverComparison
	for i, r := range []*v1beta1.ARecord{elsewhere, record, elsewhere} {
		desired := build(t, z, r)
		d := NewDesiredState(z, desired, []source.Object{r}, nil)
		m := holds(desired, 7).Mirror
		want := compareFully(d, m, nil, true, "")
		if wantApex := 2 - i%2; want.apex != wantApex {
			t.Errorf("step %d: %d RRsets are the zone object's, want %d", i, want.apex, wantApex)
		}
		if last != nil {
			if got := last.updated(d, m); got.rrsetCounts != want.rrsetCounts || got.off.Len() != want.off.Len() {
				t.Errorf("step %d: %+v; from scratch %+v", i, got.rrsetCounts, want.rrsetCounts)
			}
		}
		last = want
	}
}

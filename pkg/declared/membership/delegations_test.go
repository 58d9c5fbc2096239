package membership

import (
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// A hidden primary is no name server of its zone: who delegates to it wants nobody to answer for the zone here.
func TestDelegatesToHiddenPrimary(t *testing.T) {
	ns := &v1beta1.NSRecord{Spec: v1beta1.NSRecordSpec{Nameserver: "ns1.platform.example."}}
	zone := &v1beta1.DNSZone{Spec: v1beta1.DNSZoneSpec{ZoneName: "team.example", SOARecord: v1beta1.SOARecord{PrimaryNS: "ns1.platform.example."}}}
	for hidden, want := range map[bool]bool{false: true, true: false} {
		zone.Spec.SOARecord.HiddenPrimary = hidden
		if got := DelegatesHere(ns, zone); got != want {
			t.Errorf("hidden %t: %t", hidden, got)
		}
	}
}

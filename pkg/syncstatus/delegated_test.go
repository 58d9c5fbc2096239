package syncstatus

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func TestDelegated(t *testing.T) {
	const child = "sub.example.com."
	at := func(name string, rrtype uint16, rdata ...string) rrset.RRset {
		return rrset.New(rrset.Key{Name: name, Type: rrtype}, 300, rdata...)
	}
	cut := delegation(child, "ns1."+child)
	glue := at("ns1."+child, dns.TypeA, "192.0.2.1")
	for name, tc := range map[string]struct {
		parent       []rrset.RRset
		reason, says string
	}{
		"as the zone has it": {[]rrset.RRset{cut, glue}, "Delegated", "example.com delegates to ns1.sub.example.com., as the zone has it"},
		"not delegated":      {nil, "NotDelegated", "example.com has no NS records for sub.example.com."},
		"other name servers": {[]rrset.RRset{delegation(child, "ns.example.net.")}, "NameServersDiffer", "example.com delegates to ns.example.net., the zone has ns1.sub.example.com."},
		"other glue":         {[]rrset.RRset{cut, at("ns1."+child, dns.TypeA, "192.0.2.2")}, "GlueDiffers", "for ns1.sub.example.com. A, example.com has 192.0.2.2, the zone has 192.0.2.1"},
		"no glue":            {[]rrset.RRset{cut}, "GlueDiffers", "for ns1.sub.example.com. A, example.com has none, the zone has 192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			above := testZone()
			below := testZone(func(z *v1beta1.DNSZone) {
				z.Name, z.UID, z.Spec.ZoneName = "sub", "sub", "sub.example.com"
				z.Spec.SOARecord.PrimaryNS = "ns1." + child
				z.Spec.NameServers = []v1beta1.NameServer{{Hostname: "ns1." + child, IPv4Address: "192.0.2.1"}}
			})
			judge := func(z *v1beta1.DNSZone, extra []rrset.RRset) *Evaluation {
				desired, err := source.Build(z, nil, source.Options{})
				if err != nil {
					t.Fatal(err)
				}
				o := holds(desired, 7, extra...)
				return Evaluate(NewDesiredState(z, desired, nil, nil), servers(), []observe.Observation{o, o}, asked, History{})
			}
			parent := judge(above, tc.parent)
			s := note(judge(below, nil).ZoneStatus(parent))
			c := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionDelegated)
			if c == nil || c.Reason != tc.reason || !strings.Contains(c.Message, tc.says) || (c.Status == "True") != (tc.reason == "Delegated") {
				t.Errorf("%+v, want %s: %s", c, tc.reason, tc.says)
			}
			if s.Status.Phase != syncv1.PhaseInSync {
				t.Errorf("the phase is %s", s.Status.Phase)
			}
			unknown := Evaluate(parent.DesiredState, servers(), []observe.Observation{silent(), silent()}, asked, History{})
			if c := meta.FindStatusCondition(note(judge(below, nil).ZoneStatus(unknown)).Status.Conditions, syncv1.ConditionDelegated); c.Status != "Unknown" {
				t.Errorf("without the parent: %+v", c)
			}
		})
	}
}

// TestDelegatedByDS: where the name servers agree, or no zone above is known, the condition is the DNSZone's own, about its DS records.
func TestDelegatedByDS(t *testing.T) {
	own := metav1.Condition{Type: status.Delegated, Status: metav1.ConditionFalse, Reason: status.DSPending, Message: "not yet"}
	zone := testZone(func(z *v1beta1.DNSZone) { z.Name, z.UID, z.Spec.ZoneName = "sub", "sub", "sub.example.com" })
	above := testZone()
	judge := func(z *v1beta1.DNSZone, extra ...rrset.RRset) *Evaluation {
		desired, err := source.Build(z, nil, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := holds(desired, 7, extra...)
		return Evaluate(NewDesiredState(z, desired, nil, nil), servers(), []observe.Observation{o, o}, asked, History{})
	}
	reason := func(parent *Evaluation) string {
		c := meta.FindStatusCondition(note(judge(zone).ZoneStatus(parent)).Status.Conditions, syncv1.ConditionDelegated)
		if c == nil {
			return ""
		}
		return string(c.Status) + " " + c.Reason
	}
	ns, _ := judge(zone).desired.Get(rrset.Key{Name: "sub.example.com.", Type: dns.TypeNS})
	cut := delegation("sub.example.com.", ns.Rdata...)
	if got := reason(nil); got != "" {
		t.Errorf("nothing is known of a zone above: %s", got)
	}
	if got := reason(judge(above, cut)); got != "True Delegated" {
		t.Errorf("a zone without the condition: %s", got)
	}
	for _, v := range []status.Verdict{status.True(status.DSPublished, ""), status.True(status.DSDeclared, ""), status.False(status.DSDeclared, ""),
		status.False(status.DSWithdrawing, ""), status.False(status.DSAbsent, ""), status.False(status.RegistryBehind, ""), status.Unknown(status.ParentSilent, ""), status.False(status.DSUnmatched, ""),
		status.False(status.CDSRejected, "")} {
		zone.Status.Conditions = []metav1.Condition{{Type: status.Delegated, Status: v.Status, Reason: v.Reason}}
		if got, want := reason(judge(above, cut)), string(v.Status)+" "+v.Reason; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	zone.Status.Conditions = []metav1.Condition{own}
	for name, tc := range map[string]struct {
		parent *Evaluation
		want   string
	}{
		"delegated": {judge(above, cut), "False DSPending"}, "a parent elsewhere": {nil, "False DSPending"}, "not delegated": {judge(above), "False NotDelegated"},
	} {
		if got := reason(tc.parent); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

package render

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

func TestDiff(t *testing.T) {
	in, stale, missing, divergent := v1alpha1.StateInSync, v1alpha1.StateStale, v1alpha1.StateMissing, v1alpha1.StateDivergent
	declared := func(s v1alpha1.SyncStatus, sets ...v1alpha1.RRset) v1alpha1.SyncStatus {
		s.RRsets = sets
		return s
	}
	www := set("www.example.com.", "A", 300, "192.0.2.1", "192.0.2.2")
	var many []v1alpha1.RRset
	for i := range 20 {
		many = append(many, set(fmt.Sprintf("h%02d.example.com.", i), "A", 0))
	}
	for name, tc := range map[string]struct {
		of   v1alpha1.SyncStatus
		want Comparison
	}{
		"in sync": {of: declared(object("ARecord", "www", "example.com", row("primary-0", in), row("secondary-0", in)), www)},
		"other data, other TTL, and none": {
			of: declared(object("ARecord", "www", "example.com",
				row("primary-0", divergent, serial(9, 0), observes(set("www.example.com.", "A", 300, "192.0.2.1", "192.0.2.9"))),
				row("secondary-0", stale, serial(7, 2), observes(set("www.example.com.", "A", 60, "192.0.2.1", "192.0.2.2"))),
				row("secondary-1", missing, serial(12, -3), observes(set("www.example.com.", "A", 0)))), www),
			want: Comparison{Differs: true, Text: `--- primary-0 (Primary, Divergent, serial 9)
+++ ARecord dns/www (generation 3)
@@ www.example.com. A @@
 www.example.com. 300 IN A 192.0.2.1
-www.example.com. 300 IN A 192.0.2.9
+www.example.com. 300 IN A 192.0.2.2
--- secondary-0 (Secondary, Stale, serial 7, 2 behind)
+++ ARecord dns/www (generation 3)
@@ www.example.com. A @@
-www.example.com. 60 IN A 192.0.2.1
-www.example.com. 60 IN A 192.0.2.2
+www.example.com. 300 IN A 192.0.2.1
+www.example.com. 300 IN A 192.0.2.2
--- secondary-1 (Secondary, Missing, serial 12, 3 ahead)
+++ ARecord dns/www (generation 3)
@@ www.example.com. A @@
+www.example.com. 300 IN A 192.0.2.1
+www.example.com. 300 IN A 192.0.2.2
`}},
		"more than is shown": {
			of: declared(object("ARecord", "www", "example.com", row("primary-0", divergent, serial(9, 0),
				observes(v1alpha1.RRset{Name: "www.example.com.", Type: "A", TTL: new(int64(300)), Rdata: []string{"192.0.2.1", "192.0.2.9"}, Omitted: 70}))), www),
			want: Comparison{Differs: true, Text: `--- primary-0 (Primary, Divergent, serial 9)
+++ ARecord dns/www (generation 3)
@@ www.example.com. A @@
 www.example.com. 300 IN A 192.0.2.1
-www.example.com. 300 IN A 192.0.2.9
# and 70 values more
`}},
		"data that has to go": {
			of: declared(object("DNSEndpoint", "shop", "example.com,example.org", row("primary-0", stale, serial(9, 0),
				func(r *v1alpha1.ServerStatus) { r.Zone = "example.org" },
				observes(set("old.example.org.", "TXT", 60, `"x"`)))), set("old.example.org.", "TXT", 0)),
			want: Comparison{Differs: true, Text: `--- primary-0 (Primary, Stale, zone example.org, serial 9)
+++ DNSEndpoint dns/shop (generation 3)
@@ old.example.org. TXT @@
-old.example.org. 60 IN TXT "x"
`}},
		"a start of authority, by any serial": {
			of: declared(object("DNSZone", "z", "example.com", row("primary-0", divergent,
				observes(set("example.com.", "SOA", 60, "ns1.example.com. h.example.com. 7 1 2 3 9")))),
				set("example.com.", "SOA", 60, "ns1.example.com. h.example.com. 8 1 2 3 4")),
			want: Comparison{Differs: true, Text: `--- primary-0 (Primary, Divergent)
+++ DNSZone dns/z (generation 3)
@@ example.com. SOA @@
-example.com. 60 IN SOA ns1.example.com. h.example.com. 7 1 2 3 9
+example.com. 60 IN SOA ns1.example.com. h.example.com. 7 1 2 3 4
`}},
		"a zone that has to go": {
			of: object("DNSZone", "z", "example.com", row("primary-0", stale, says("still serves the zone"))),
			want: Comparison{Differs: true, Text: `--- primary-0 (Primary, Stale)
+++ DNSZone dns/z (generation 3)
# still serves the zone
`}},
		"what is declared is not known": {
			of: object("DNSZone", "z", "example.com", row("primary-0", stale, observes(set("a.example.com.", "A", 60, "192.0.2.1")))),
			want: Comparison{Differs: true, Text: `--- primary-0 (Primary, Stale)
+++ DNSZone dns/z (generation 3)
@@ a.example.com. A @@
# what is declared here is not known
 a.example.com. 60 IN A 192.0.2.1
`}},
		"servers without an answer": {
			of: declared(object("ARecord", "www", "example.com", row("primary-0", in), row("primary-1", v1alpha1.StateRefused, says("REFUSED")),
				row("secondary-0", v1alpha1.StateUnreachable, says("i/o\ntimeout"))), www),
			want: Comparison{Skipped: []string{"primary-1 is Refused: REFUSED", "secondary-0 is Unreachable: i/o timeout"}}},
		"what cannot be served": {
			of:   failed(object("ARecord", "stray", ""), "NotSelected", "no DNSZone selects it"),
			want: Comparison{Skipped: []string{"NotSelected: no DNSZone selects it"}}},
		"no servers": {
			of: func() v1alpha1.SyncStatus {
				s := object("ARecord", "www", "example.com")
				s.Status.Phase, s.Status.InSync = v1alpha1.PhaseUnknown, false
				return s
			}(),
			want: Comparison{Skipped: []string{"there is no server to compare with"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Diff(&tc.of, Palette{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for want, r := range map[string]v1alpha1.ServerStatus{
		"":                                 row("primary-0", missing, observes(many[:19]...)),
		"and 1 RRset more":                 row("primary-0", missing, observes(many...), func(r *v1alpha1.ServerStatus) { r.Records = &v1alpha1.RecordCounts{OutOfSync: 21} }),
		"no more than 20 RRsets are shown": row("primary-0", missing, observes(many...)),
	} {
		if got := hiddenRRsets(&r); got != want {
			t.Errorf("of those that are not shown it says %q, want %q", got, want)
		}
	}
}

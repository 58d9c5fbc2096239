package source

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func sortedLines(sets []rrset.RRset) []string {
	slices.SortFunc(sets, func(a, b rrset.RRset) int { return a.Key.Compare(b.Key) })
	var out []string
	for _, s := range sets {
		out = append(out, s.String())
	}
	return out
}

// verdicts tells for each declaration, by object name, "" or what it was refused for.
func verdicts(z *Zone) map[string]string {
	v := map[string]string{}
	for _, d := range z.Declarations.All() {
		v[d.Ref.Name] = ""
		if !d.Accepted {
			v[d.Ref.Name] = d.Reason + ": " + d.Message
		}
	}
	return v
}

func TestBuildDecides(t *testing.T) {
	addresses := func(from, n int) []string {
		var s []string
		for i := range n {
			s = append(s, fmt.Sprintf("192.0.2.%d", from+i))
		}
		return s
	}
	for name, test := range map[string]struct {
		records []v1beta1.Record
		// want tells for each object a part of its message; "" is accepted.
		want map[string]string
		sets []string
	}{
		"values unite": {
			records: []v1beta1.Record{aRecord(object("a", 2), "www", "192.0.2.1"), aRecord(object("b", 1), "WWW", "192.0.2.2")},
			want:    map[string]string{"a": "", "b": ""},
			sets:    []string{"www.example.com. 3600 A 192.0.2.1, 192.0.2.2"},
		},
		"bad record stands alone": {
			records: []v1beta1.Record{aRecord(object("a", 2), "www", "x"), aRecord(object("b", 1), "www", "192.0.2.2")},
			want:    map[string]string{"a": "Invalid: spec.ipv4Addresses[0]", "b": ""},
			sets:    []string{"www.example.com. 3600 A 192.0.2.2"},
		},
		"bad owner name and TTL": {
			records: []v1beta1.Record{
				aRecord(object("outside", 2), "www.example.org.", "192.0.2.1"), withTTL(aRecord(object("ttl", 1), "x", "192.0.2.1"), -1),
				withTTL(aRecord(object("big", 1), "x", "192.0.2.1"), 1<<31),
			},
			want: map[string]string{"outside": "Invalid: spec.name: ", "ttl": "Invalid: spec.ttl: -1", "big": "Invalid: spec.ttl: 2147483648"},
		},
		"older address beats alias": {
			records: []v1beta1.Record{cnameRecord(object("alias", 1), "www", "web"), aRecord(object("a", 2), "www", "192.0.2.1")},
			want:    map[string]string{"a": "", "alias": "Conflict: www.example.com. already has A data, declared by ARecord dns/a, which is older"},
			sets:    []string{"www.example.com. 3600 A 192.0.2.1"},
		},
		"older alias beats address and text": {
			records: []v1beta1.Record{cnameRecord(object("alias", 3), "www", "web"), aRecord(object("a", 2), "www", "192.0.2.1"), txtRecord(object("t", 1), "www", "x")},
			want:    map[string]string{"alias": "", "a": "Conflict: www.example.com. is an alias, declared by CNAMERecord dns/alias", "t": "Conflict: "},
			sets:    []string{"www.example.com. 3600 CNAME web.example.com."},
		},
		"older of two aliases": {
			records: []v1beta1.Record{cnameRecord(object("young", 1), "www", "a"), cnameRecord(object("old", 2), "www", "b")},
			want:    map[string]string{"old": "", "young": "Conflict: www.example.com. is already an alias of b.example.com., declared by CNAMERecord dns/old"},
			sets:    []string{"www.example.com. 3600 CNAME b.example.com."},
		},
		"two objects, one alias": {
			records: []v1beta1.Record{cnameRecord(object("young", 1), "www", "a"), cnameRecord(object("old", 2), "www", "A.example.com.")},
			want:    map[string]string{"old": "", "young": ""},
			sets:    []string{"www.example.com. 3600 CNAME a.example.com."},
		},
		"a refused older object does not win": {
			records: []v1beta1.Record{cnameRecord(object("bad", 3), "www", "a..b"), aRecord(object("a", 2), "www", "192.0.2.1")},
			want:    map[string]string{"bad": "Invalid: spec.target", "a": ""},
			sets:    []string{"www.example.com. 3600 A 192.0.2.1"},
		},
		"same age, by name": {
			records: []v1beta1.Record{cnameRecord(object("z", 1), "www", "web"), aRecord(object("y", 1), "www", "192.0.2.1")},
			want:    map[string]string{"y": "", "z": "Conflict: "},
			sets:    []string{"www.example.com. 3600 A 192.0.2.1"},
		},
		"object being created is the youngest": {
			records: []v1beta1.Record{
				cnameRecord(metav1.ObjectMeta{Namespace: "dns", Name: "a"}, "www", "web"), aRecord(object("z", 1), "www", "192.0.2.1"),
			},
			want: map[string]string{"z": "", "a": "Conflict: "},
			sets: []string{"www.example.com. 3600 A 192.0.2.1"},
		},
		"alias at the apex": {
			records: []v1beta1.Record{cnameRecord(object("alias", 9), "@", "web")},
			want:    map[string]string{"alias": "Invalid: spec.name: a CNAME cannot stand at the apex of the zone"},
		},
		"alias of itself": {
			records: []v1beta1.Record{cnameRecord(object("alias", 9), "www", "WWW")},
			want:    map[string]string{"alias": "Invalid: spec.target: www.example.com. would be an alias of itself"},
		},
		"alias of itself, of data": {
			records: []v1beta1.Record{dnsRecord(object("alias", 9), "www", "CNAME", "WWW")},
			want:    map[string]string{"alias": "Invalid: spec.data: www.example.com. would be an alias of itself"},
		},
		"alias at a name server": {
			records: []v1beta1.Record{cnameRecord(object("alias", 1), "ns2", "web"), nsRecord(object("ns", 2), "@", "ns2")},
			want:    map[string]string{"ns": "", "alias": "Conflict: ns2.example.com. is a name server of this zone, declared by NSRecord dns/ns"},
		},
		"name server at an alias": {
			records: []v1beta1.Record{cnameRecord(object("alias", 2), "ns2", "web"), nsRecord(object("ns", 1), "@", "ns2")},
			want:    map[string]string{"alias": "", "ns": "Conflict: spec.nameserver: ns2.example.com. is an alias, declared by CNAMERecord dns/alias"},
			sets:    []string{"ns2.example.com. 3600 CNAME web.example.com."},
		},
		"wildcard NS": {
			records: []v1beta1.Record{nsRecord(object("ns", 1), "*", "ns.example.org.")},
			want:    map[string]string{"ns": "Invalid: spec.name: *.example.com."},
		},
		"a DNSRecord unites with the kind of its type": {
			records: []v1beta1.Record{aRecord(object("a", 2), "www", "192.0.2.1"), dnsRecord(object("b", 1), "www", "A", "192.0.2.2")},
			want:    map[string]string{"a": "", "b": ""},
			sets:    []string{"www.example.com. 3600 A 192.0.2.1, 192.0.2.2"},
		},
		"an alias excludes any type": {
			records: []v1beta1.Record{dnsRecord(object("https", 2), "www", "HTTPS", "1 ."), cnameRecord(object("alias", 1), "www", "web")},
			want:    map[string]string{"https": "", "alias": "Conflict: www.example.com. already has HTTPS data, declared by DNSRecord dns/https"},
			sets:    []string{"www.example.com. 3600 HTTPS 1 ."},
		},
		"an alias by DNSRecord": {
			records: []v1beta1.Record{dnsRecord(object("alias", 2), "www", "CNAME", "web"), aRecord(object("a", 1), "www", "192.0.2.1")},
			want:    map[string]string{"alias": "", "a": "Conflict: www.example.com. is an alias, declared by DNSRecord dns/alias"},
			sets:    []string{"www.example.com. 3600 CNAME web.example.com."},
		},
		"all reasons of one record": {
			records: []v1beta1.Record{dnsRecord(object("https", 1), "www", "HTTPS", "x", "1 .", "y")},
			want:    map[string]string{"https": `Invalid: spec.data[0]: HTTPS rdata "x": bad SVCB priority: "x"; the data is priority, target and parameters, as in 1 . alpn=h2,h3; spec.data[2]: HTTPS rdata "y": `},
		},
		"DS of a delegation, the older": {
			records: []v1beta1.Record{dnsRecord(object("ds", 2), "sub", "DS", "1 13 9 AB"), nsRecord(object("ns", 1), "sub", "ns.example.org.")},
			want:    map[string]string{"ds": "", "ns": ""},
			sets:    []string{"sub.example.com. 3600 NS ns.example.org.", "sub.example.com. 3600 DS 1 13 9 AB"},
		},
		"DS without delegation": {
			records: []v1beta1.Record{dnsRecord(object("ds", 2), "sub", "DS", "1 13 9 AB")},
			want:    map[string]string{"ds": "Conflict: sub.example.com. is not delegated: a DS stands beside the NS of a delegation"},
		},
		"DS without delegation, beside data": {
			records: []v1beta1.Record{dnsRecord(object("ds", 2), "sub", "DS", "1 13 9 AB"), aRecord(object("a", 1), "sub", "192.0.2.1")},
			want:    map[string]string{"ds": "Conflict: sub.example.com. is not delegated", "a": ""},
			sets:    []string{"sub.example.com. 3600 A 192.0.2.1"},
		},
		"DS below a delegation": {
			records: []v1beta1.Record{nsRecord(object("ns", 3), "sub", "ns.example.org."), dnsRecord(object("ds", 2), "deep.sub", "DS", "1 13 9 AB")},
			want:    map[string]string{"ds": "Conflict: sub.example.com. is delegated to ns.example.org.", "ns": ""},
			sets:    []string{"sub.example.com. 3600 NS ns.example.org."},
		},
		"DS of the zone itself": {
			records: []v1beta1.Record{dnsRecord(object("ds", 2), "@", "DS", "1 13 9 AB")},
			want:    map[string]string{"ds": "Invalid: spec.name: the DS of example.com. belongs in the zone above it"},
		},
		"data below a DNAME": {
			records: []v1beta1.Record{dnsRecord(object("dname", 3), "old", "DNAME", "new"), aRecord(object("at", 2), "old", "192.0.2.1"), aRecord(object("below", 1), "www.old", "192.0.2.1")},
			want:    map[string]string{"dname": "", "at": "", "below": "Conflict: names below old.example.com. are redirected to new.example.com., declared by DNSRecord dns/dname"},
			sets:    []string{"old.example.com. 3600 A 192.0.2.1", "old.example.com. 3600 DNAME new.example.com."},
		},
		"DNAME over older data": {
			records: []v1beta1.Record{dnsRecord(object("dname", 1), "old", "DNAME", "new"), aRecord(object("below", 2), "www.old", "192.0.2.1")},
			want:    map[string]string{"below": "", "dname": "Conflict: a DNAME at old.example.com. would hide www.old.example.com. A, declared by ARecord dns/below"},
			sets:    []string{"www.old.example.com. 3600 A 192.0.2.1"},
		},
		"DNAME of the whole zone": {
			records: []v1beta1.Record{dnsRecord(object("dname", 3), "@", "DNAME", "example.net."), aRecord(object("below", 1), "www", "192.0.2.1")},
			want:    map[string]string{"dname": "", "below": "Conflict: names below example.com. are redirected"},
		},
		"DNAME at a delegation": {
			records: []v1beta1.Record{nsRecord(object("ns", 3), "sub", "ns.example.org."), dnsRecord(object("dname", 2), "sub", "DNAME", "new")},
			want:    map[string]string{"ns": "", "dname": "Conflict: sub.example.com. is delegated"},
			sets:    []string{"sub.example.com. 3600 NS ns.example.org."},
		},
		"a second DNAME": {
			records: []v1beta1.Record{dnsRecord(object("dname", 3), "old", "DNAME", "new"), dnsRecord(object("other", 2), "old", "DNAME", "newer")},
			want:    map[string]string{"dname": "", "other": "Conflict: old.example.com. DNAME already has new.example.com., declared by DNSRecord dns/dname"},
			sets:    []string{"old.example.com. 3600 DNAME new.example.com."},
		},
		"delegation with glue": {
			records: []v1beta1.Record{
				aRecord(object("glue", 3), "ns1.sub", "192.0.2.1"), nsRecord(object("ns1", 2), "sub", "ns1.sub"),
				nsRecord(object("ns2", 1), "sub", "ns2.sub"), aRecord(object("late", 0), "ns2.sub", "192.0.2.2"),
			},
			want: map[string]string{"glue": "", "ns1": "", "ns2": "", "late": ""},
			sets: []string{
				"sub.example.com. 3600 NS ns1.sub.example.com., ns2.sub.example.com.",
				"ns1.sub.example.com. 3600 A 192.0.2.1", "ns2.sub.example.com. 3600 A 192.0.2.2",
			},
		},
		"data below a delegation": {
			records: []v1beta1.Record{
				nsRecord(object("ns", 5), "sub", "ns.example.org."), aRecord(object("www", 4), "www.sub", "192.0.2.1"),
				txtRecord(object("at", 3), "sub", "x"), nsRecord(object("deeper", 2), "a.sub", "ns.example.org."),
				cnameRecord(object("alias", 1), "b.c.sub", "web"), aRecord(object("beside", 1), "xsub", "192.0.2.1"),
			},
			want: map[string]string{
				"ns": "", "beside": "", "www": "Conflict: sub.example.com. is delegated to ns.example.org., declared by NSRecord dns/ns",
				"at": "Conflict: ", "deeper": "Conflict: ", "alias": "Conflict: ",
			},
			sets: []string{"sub.example.com. 3600 NS ns.example.org.", "xsub.example.com. 3600 A 192.0.2.1"},
		},
		"delegation over older data": {
			records: []v1beta1.Record{aRecord(object("www", 2), "www.sub", "192.0.2.1"), nsRecord(object("ns", 1), "sub", "ns.example.org.")},
			want:    map[string]string{"www": "", "ns": "Conflict: a delegation of sub.example.com. would hide www.sub.example.com. A, declared by ARecord dns/www"},
			sets:    []string{"www.sub.example.com. 3600 A 192.0.2.1"},
		},
		"delegation over an older delegation": {
			records: []v1beta1.Record{nsRecord(object("deep", 2), "a.sub", "ns.example.org."), nsRecord(object("ns", 1), "sub", "ns.example.org.")},
			want:    map[string]string{"deep": "", "ns": "Conflict: a delegation of sub.example.com. would hide a.sub.example.com. NS"},
			sets:    []string{"a.sub.example.com. 3600 NS ns.example.org."},
		},
		"text at a glue name is no glue": {
			records: []v1beta1.Record{nsRecord(object("ns", 2), "sub", "ns.sub"), txtRecord(object("t", 1), "ns.sub", "x")},
			want:    map[string]string{"ns": "", "t": "Conflict: "},
			sets:    []string{"sub.example.com. 3600 NS ns.sub.example.com."},
		},
		"100 values over objects": {
			records: []v1beta1.Record{
				aRecord(object("a", 3), "www", addresses(0, 60)...), aRecord(object("b", 2), "www", addresses(50, 51)...),
				aRecord(object("c", 1), "www", addresses(50, 50)...),
			},
			want: map[string]string{"a": "", "b": "Unsupported: www.example.com. A would have 101 values, 60 of them by other declarations, and the zone's servers take at most 100 of one name and type; those who run them can raise maxRecordsPerType", "c": ""},
			sets: []string{"www.example.com. 3600 A " + strings.Join(rrset.New(rrset.Key{}, 0, addresses(0, 100)...).Rdata, ", ")},
		},
		"101 values of one object": {
			records: []v1beta1.Record{aRecord(object("a", 1), "www", addresses(0, 101)...), aRecord(object("b", 1), "ftp", addresses(0, 100)...)},
			want:    map[string]string{"a": "Unsupported: www.example.com. A would have 101 values, and the zone's servers take at most 100", "b": ""},
			sets:    []string{"ftp.example.com. 3600 A " + strings.Join(rrset.New(rrset.Key{}, 0, addresses(0, 100)...).Rdata, ", ")},
		},
		"more text than a message holds": {
			records: []v1beta1.Record{
				txtRecord(object("a", 2), "t", strings.Repeat("a", 50000)), txtRecord(object("b", 1), "t", strings.Repeat("b", 20000)),
			},
			want: map[string]string{"a": "", "b": "Conflict: t.example.com. TXT would take 70"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			z, err := Build(exampleZone(), Objects(test.records), Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := verdicts(z)
			for object, want := range test.want {
				v, ok := got[object]
				if !ok || (want == "") != (v == "") || !strings.HasPrefix(v, want) {
					t.Errorf("%s: %q, want %q", object, v, want)
				}
			}
			if len(got) != len(test.records) {
				t.Errorf("%d declarations of %d records", len(got), len(test.records))
			}
			if test.sets == nil {
				return
			}
			var sets []rrset.RRset
			for s := range z.All() {
				if s.Name != "example.com." {
					sets = append(sets, s)
				}
			}
			want := slices.Clone(test.sets)
			gotLines := sortedLines(sets)
			slices.Sort(want)
			slices.Sort(gotLines)
			if diff := cmp.Diff(want, gotLines); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBuildTTL(t *testing.T) {
	zone := exampleZone()
	ttl := int64(900)
	zone.Spec.TTL = &ttl
	z, err := Build(zone, []Object{
		aRecord(object("zone", 4), "www", "192.0.2.1"), withTTL(aRecord(object("low", 3), "www", "192.0.2.2"), 60),
		withTTL(aRecord(object("high", 2), "www", "192.0.2.3"), 7200), withTTL(aRecord(object("same", 1), "www", "192.0.2.4"), 60),
		withTTL(aRecord(object("zero", 1), "never", "192.0.2.1"), 0),
		cnameRecord(object("note", 1), "note", "cdn.example.org"),
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]uint32{"www.example.com.": 60, "never.example.com.": 0} {
		if got, _ := z.Get(rrset.Key{Name: key, Type: dns.TypeA}); got.TTL != want {
			t.Errorf("%s has TTL %d, want %d", key, got.TTL, want)
		}
	}
	const because = ": ARecord dns/low declares it for the same name and type, which have one TTL (RFC 2181 section 5.2)"
	want := map[string]string{
		"zone": "TTL 60 is served instead of 900" + because, "high": "TTL 60 is served instead of 7200" + because,
		"low": "", "same": "", "zero": "",
		"note": `spec.target "cdn.example.org" has no final dot, so it is relative to the zone: cdn.example.org.example.com.`,
	}
	got := map[string]string{}
	for _, d := range z.Declarations.All() {
		got[d.Ref.Name] = d.Note
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBuildNotesUnreachableHosts(t *testing.T) {
	mail := func(name, server string) v1beta1.Record {
		return &v1beta1.MXRecord{ObjectMeta: object(name, 1), Spec: v1beta1.MXRecordSpec{RecordCommon: common("@"), MailServer: server}}
	}
	z, err := Build(exampleZone(), []Object{
		aRecord(object("host", 1), "host", "192.0.2.1"), cnameRecord(object("alias", 1), "alias", "host"),
		aRecord(object("wild", 1), "*.wild", "192.0.2.1"), nsRecord(object("cut", 1), "sub", "ns.example.org."),
		mail("reachable", "host"), mail("outside", "mail.example.org."), mail("none", "."), mail("to-alias", "alias"),
		mail("missing", "mail"), mail("covered", "mail.wild.example.com."), mail("delegated", "mail.sub.example.com."),
		nsRecord(object("glueless", 1), "a", "ns.a.example.com."), nsRecord(object("elsewhere", 1), "b", "ns.a.example.com."),
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"to-alias": "alias.example.com. is an alias, and MX records must name the host itself (RFC 2181 section 10.3)",
		"missing":  "mail.example.com. has no address in this zone; publish one with an ARecord or AAAARecord",
		"glueless": "ns.a.example.com. is inside what it serves and has no address here, so nobody can find it; publish one with an ARecord or AAAARecord",
	}
	for _, d := range z.Declarations.All() {
		if !d.Accepted || d.Note != want[d.Ref.Name] {
			t.Errorf("%s: %q %s", d.Ref, d.Note, d.Message)
		}
	}
}

func TestBuildIgnoresWhatIsBeingDeleted(t *testing.T) {
	gone := aRecord(object("gone", 1), "www", "192.0.2.1")
	now := metav1.Now()
	gone.DeletionTimestamp = &now
	z, err := Build(exampleZone(), []Object{gone, nil}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if z.Declarations.Len() != 0 || z.Len() != 1 {
		t.Error(lines(z))
	}
}

// randomRecords gives records that get in each other's way in every way there is.
func randomRecords(r *rand.Rand, n int) []v1beta1.Record {
	names := []string{"@", "www", "sub", "a.sub", "b.a.sub", "ns.sub", "*", "*.sub", "ns2", "a..b"}
	var records []v1beta1.Record
	for i := range n {
		o, name := object(fmt.Sprintf("r%d", i), r.IntN(n)), names[r.IntN(len(names))]
		other := names[1+r.IntN(5)]
		switch r.IntN(5) {
		case 0, 1:
			records = append(records, withTTL(aRecord(o, name, fmt.Sprintf("192.0.2.%d", r.IntN(5))), int64(r.IntN(3))))
		case 2:
			records = append(records, cnameRecord(o, name, other))
		case 3:
			records = append(records, nsRecord(o, name, other))
		case 4:
			records = append(records, txtRecord(o, name, other))
		}
	}
	return records
}

func TestBuildDoesNotDependOnOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		records := randomRecords(r, 25)
		first, err := Build(exampleZone(), Objects(records), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			r.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
			again, err := Build(exampleZone(), Objects(records), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffZones(first, again); diff != "" {
				t.Fatalf("seed %d: %s", seed, diff)
			}
		}
		checkServable(t, first)
	}
}

// checkServable holds a zone against the rules that BIND would silently drop data by.
func checkServable(t *testing.T, z *Zone) {
	t.Helper()
	accepted := map[rrset.Key]map[string]bool{}
	for _, d := range z.Declarations.All() {
		if d.Accepted == (d.Reason != "") || d.Accepted != (d.Message == "") || (d.Reason != "" && d.Reason != status.Invalid && d.Reason != status.Conflict && d.Reason != status.Unsupported) {
			t.Errorf("%s: accepted %v with reason %q", d.Ref, d.Accepted, d.Reason)
		}
		for _, v := range d.Rdata {
			if set, _ := z.Get(d.Key); d.Accepted && !slices.Contains(set.Rdata, v) {
				t.Errorf("%s is accepted and %s %s is not in the zone", d.Ref, d.Key, v)
			}
		}
		if d.Accepted {
			if accepted[d.Key] == nil {
				accepted[d.Key] = map[string]bool{}
			}
			for _, v := range d.Rdata {
				accepted[d.Key][v] = true
			}
		}
	}
	for key, set := range z.RRsets.All() {
		if len(set.Owners) != len(set.Rdata) || !slices.IsSorted(set.Rdata) || len(set.Rdata) == 0 || key != set.Key {
			t.Errorf("%s: %q by %v", key, set.Rdata, set.Owners)
		}
		for i, v := range set.Rdata {
			if zones := slices.Contains(set.Owners[i], z.Ref); !zones && !accepted[key][v] {
				t.Errorf("nobody declares %s %s", key, v)
			}
		}
		if key.Type != dns.TypeCNAME {
			continue
		}
		for other := range z.RRsets.All() {
			if other.Name == key.Name && other != key {
				t.Errorf("%s stands beside %s", other, key)
			}
		}
		if len(set.Rdata) != 1 {
			t.Errorf("%s has %d targets", key, len(set.Rdata))
		}
	}
	for key := range z.RRsets.All() {
		if _, delegated := z.Get(rrset.Key{Name: key.Name, Type: dns.TypeNS}); key.Type == dns.TypeDS && (!delegated || key.Name == z.Name) {
			t.Errorf("%s is of no delegation", key)
		}
	}
	for cut := range z.RRsets.All() {
		isNS := cut.Type == dns.TypeNS && cut.Name != z.Name
		if !isNS && cut.Type != dns.TypeDNAME {
			continue
		}
		for key, set := range z.RRsets.All() {
			below := key.Name != cut.Name && rrset.IsSubdomain(key.Name, cut.Name)
			isAddress := key.Type == dns.TypeA || key.Type == dns.TypeAAAA
			zones := slices.ContainsFunc(set.Owners, func(by []*Ref) bool { return slices.Contains(by, z.Ref) })
			if isNS && (below || key.Name == cut.Name && key != cut && key.Type != dns.TypeDS) && !isAddress || !isNS && below && !zones {
				t.Errorf("%s is hidden by %s", key, cut)
			}
		}
	}
}

func TestHash(t *testing.T) {
	base := Declaration{Key: rrset.Key{Name: "www.example.com.", Type: dns.TypeA}, TTL: 300, Rdata: []string{"192.0.2.1"}}
	seen := map[string]string{Hash(base): "base"}
	for name, change := range map[string]func(*Declaration){
		"name":   func(d *Declaration) { d.Key.Name = "ftp.example.com." },
		"type":   func(d *Declaration) { d.Key.Type = dns.TypeAAAA },
		"TTL":    func(d *Declaration) { d.TTL = 301 },
		"values": func(d *Declaration) { d.Rdata = []string{"192.0.2.1", "192.0.2.2"} },
		"joined": func(d *Declaration) { d.Rdata = []string{"192.0.2.1192.0.2.2"} },
	} {
		d := base
		change(&d)
		h := Hash(d)
		if other, ok := seen[h]; ok {
			t.Errorf("%s hashes like %s", name, other)
		}
		seen[h] = name
	}
	same := base
	same.Ref, same.Accepted, same.Note = &Ref{Name: "x", Generation: 9}, true, "note"
	if Hash(same) != Hash(base) || len(Hash(base)) != 64 {
		t.Error("the hash depends on more than DNS data")
	}
}

// TestOwnNamespaceComesFirst: a record of another namespace may be old, and get the name of a younger one or a delegation above it since.
func TestOwnNamespaceComesFirst(t *testing.T) {
	guest := object("guest", 1000)
	guest.Namespace = "team"
	own := aRecord(object("own", 1), "www", "192.0.2.1")
	for name, stranger := range map[string]v1beta1.Record{
		"alias":      cnameRecord(guest, "www", "evil.example.net."),
		"delegation": nsRecord(guest, "www", "ns.example.net."),
		"DNAME":      dnsRecord(guest, "@", "DNAME", "example.net."),
	} {
		t.Run(name, func(t *testing.T) {
			z, err := Build(exampleZone(), Objects([]v1beta1.Record{stranger, own}), Options{})
			if err != nil {
				t.Fatal(err)
			}
			of := func(o Object) (d Declaration) {
				for _, each := range z.Of(KeyOf(o)) {
					d = each
				}
				return d
			}
			if d := of(own); !d.Accepted {
				t.Errorf("the zone's own record: %+v", d)
			}
			if d := of(stranger); d.Accepted || !strings.Contains(d.Message, "declared by an object of the zone's namespace, which comes first") {
				t.Errorf("the other namespace's: %+v", d)
			}
		})
	}
}

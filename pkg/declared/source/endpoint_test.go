package source

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

func TestBuildDNSEndpoints(t *testing.T) {
	const old = "declared by ARecord dns/record, which is older"
	for name, test := range map[string]struct {
		endpoints []v1alpha1.Endpoint
		// want tells by index what became of each endpoint: the beginning of its message, "" for accepted.
		want map[int]string
		sets []string
		// longest is how long a message may be; 0 for any length.
		longest int
	}{
		"all types": {
			endpoints: []v1alpha1.Endpoint{
				endpoint("a.example.com", "A", "192.0.2.1"), endpoint("a.example.com", "AAAA", "2001:db8::1"),
				endpoint("c.example.com", "CNAME", "a.example.com"), endpoint("sub.example.com", "NS", "ns.example.org"),
				endpoint("p.example.com", "PTR", "a.example.com"), endpoint("t.example.com", "TXT", "text"),
				endpoint("example.com", "MX", "10 a.example.com"), endpoint("_sip._tcp.example.com", "SRV", "1 2 3 a.example.com"),
				endpoint("example.com.", "CAA", `0 issue "ca"`),
			},
			want: map[int]string{0: "", 1: "", 2: "", 3: "", 4: "", 5: "", 6: "", 7: "", 8: ""},
			sets: []string{
				"a.example.com. 3600 A 192.0.2.1", "a.example.com. 3600 AAAA 2001:db8::1", "c.example.com. 3600 CNAME a.example.com.",
				"sub.example.com. 3600 NS ns.example.org.", "p.example.com. 3600 PTR a.example.com.", `t.example.com. 3600 TXT "text"`,
				"_sip._tcp.example.com. 3600 SRV 1 2 3 a.example.com.",
			},
		},
		"one bad endpoint is refused alone": {
			endpoints: []v1alpha1.Endpoint{endpoint("a.example.com", "A", "x"), endpoint("a.example.com", "A", "192.0.2.1")},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (a.example.com A): targets[0]: ", 1: ""},
			sets:      []string{"a.example.com. 3600 A 192.0.2.1"},
		},
		"values unite": {
			endpoints: []v1alpha1.Endpoint{endpoint("a.example.com", "A", "192.0.2.2"), endpoint("A.example.com.", "A", "192.0.2.1", "192.0.2.2")},
			want:      map[int]string{0: "", 1: ""},
			sets:      []string{"a.example.com. 3600 A 192.0.2.1, 192.0.2.2"},
		},
		"the earlier endpoint wins": {
			endpoints: []v1alpha1.Endpoint{endpoint("a.example.com", "CNAME", "b.example.com"), endpoint("a.example.com", "A", "192.0.2.1")},
			want:      map[int]string{0: "", 1: "Conflict: spec.endpoints[1] (a.example.com A): a.example.com. is an alias, declared by spec.endpoints[0], which comes first"},
			sets:      []string{"a.example.com. 3600 CNAME b.example.com."},
		},
		"the older object wins": {
			endpoints: []v1alpha1.Endpoint{endpoint("www.example.com", "CNAME", "b.example.com")},
			want:      map[int]string{0: "Conflict: spec.endpoints[0] (www.example.com CNAME): www.example.com. already has A data, " + old},
		},
		"alias at the apex": {
			endpoints: []v1alpha1.Endpoint{endpoint("example.com", "CNAME", "b.example.org")},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (example.com CNAME): dnsName: a CNAME cannot stand at the apex"},
		},
		"name servers, one of them an alias": {
			endpoints: []v1alpha1.Endpoint{endpoint("ns2.example.com", "CNAME", "b.example.org"), endpoint("example.com", "NS", "ns3.example.org", "ns2.example.com")},
			want:      map[int]string{0: "", 1: "Conflict: spec.endpoints[1] (example.com NS): targets: ns2.example.com. is an alias, declared by spec.endpoints[0], which comes first"},
		},
		"what is not of this zone": {
			endpoints: []v1alpha1.Endpoint{endpoint("example.org", "A", "x"), endpoint("badexample.com", "A", "x"), endpoint("a.example.com", "A", "192.0.2.1")},
			want:      map[int]string{2: ""},
		},
		"a bad name at the end of which is this zone": {
			endpoints: []v1alpha1.Endpoint{endpoint("a..b.Example.com", "A", "192.0.2.1")},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (a..b.Example.com A): dnsName: "},
		},
		"more reasons than anybody reads": {
			endpoints: []v1alpha1.Endpoint{endpoint("a.example.com", "A", strings.Split(strings.Repeat("x ", 999), " ")...)},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (a.example.com A): targets[0]: "},
			longest:   1000,
		},
		"names longer than anybody reads": {
			endpoints: []v1alpha1.Endpoint{endpoint(strings.Repeat("long.", 9999)+"example.com", strings.Repeat("x", 9999), "x")},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (long.long."},
			longest:   1000,
		},
		"several reasons on one line": {
			endpoints: []v1alpha1.Endpoint{endpoint("a.example.com", "A", "x", "y")},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (a.example.com A): targets[0]: A rdata \"x\": not an IPv4 address, such as 192.0.2.1; targets[1]: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := endpoints(object("many", 1), test.endpoints...)
			z, err := Build(exampleZone(), []Object{e, aRecord(object("record", 2), "www", "192.0.2.7")}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, refused, elsewhere := map[int]string{}, 0, 0
			for id, d := range z.Of(KeyOf(e)) {
				if *d.Ref != (Ref{"externaldns.k8s.io/v1alpha1", "DNSEndpoint", "dns", "many", e.UID, 1}) {
					t.Errorf("declared by %v", d.Ref)
				}
				if got[id.Index] = ""; !d.Accepted {
					got[id.Index], refused = d.Reason+": "+d.Message, refused+1
				}
				if strings.Contains(d.Message, "is not published here") {
					elsewhere++
				}
			}
			if refused != z.Refused || elsewhere != z.Elsewhere {
				t.Errorf("%d are refused, %d of them for other programs; the zone says %d and %d", refused, elsewhere, z.Refused, z.Elsewhere)
			}
			for i, message := range got {
				if test.longest > 0 && len(message) > test.longest {
					t.Errorf("endpoint %d: a message of %d bytes", i, len(message))
				}
				if want, ok := test.want[i]; !ok || !strings.HasPrefix(message, want) || (want == "" && message != "") {
					t.Errorf("endpoint %d: %q, want %q", i, message, want)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("%d declarations: %v", len(got), got)
			}
			present := lines(z)
			for _, want := range test.sets {
				if !strings.Contains(strings.Join(present, "\n"), want) {
					t.Errorf("%q is not in %q", want, present)
				}
			}
		})
	}
}

func TestEndpointTTLAndNotes(t *testing.T) {
	low, high := endpoint("a.example.com", "A", "192.0.2.1"), endpoint("a.example.com", "A", "192.0.2.2")
	low.RecordTTL, high.RecordTTL = 60, 600
	e := endpoints(object("many", 1), low, high, endpoint("example.com", "MX", "10 nowhere.example.com", "20 nowhere.example.com"))
	z, err := Build(exampleZone(), []Object{e}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]string{
		0: "",
		1: "spec.endpoints[1] (a.example.com A): TTL 60 is served instead of 600: DNSEndpoint dns/many declares it for the same name and type, which have one TTL (RFC 2181 section 5.2)",
		2: "spec.endpoints[2] (example.com MX): nowhere.example.com. has no address in this zone; publish one with an ARecord or AAAARecord",
	}
	got := map[int]string{}
	for id, d := range z.Of(KeyOf(e)) {
		got[id.Index] = d.Note
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPublishedKeys(t *testing.T) {
	annotated := func(names string) metav1.ObjectMeta {
		o := object("o", 1)
		o.Annotations = map[string]string{v1beta1.FormerNamesAnnotation: names}
		return o
	}
	published := aRecord(annotated("older/A,oldest.example.com./A, www/A,x.example.org./A,,no-type,a/b/A,@/ALIAS,a..b/A"), "www", "192.0.2.1")
	published.Status = v1beta1.RecordStatus{PublishedName: "Old.example.com", Zone: "example.com"}
	elsewhere := aRecord(object("o", 1), "www", "192.0.2.1")
	elsewhere.Status = v1beta1.RecordStatus{PublishedName: "x.sub.example.com", Zone: "sub.example.com"}
	outside := aRecord(object("o", 1), "www.example.org.", "192.0.2.1")
	outside.Status.PublishedName = "www.example.org"
	many := endpoints(annotated("old.example.com/TXT,x.example.org/A"), endpoint("A.example.com", "A", "x"), endpoint("a.example.org", "A", "192.0.2.1"),
		endpoint("b.example.com", "ALIAS", "x"), endpoint("a.example.com.", "A", "192.0.2.2"))
	many.Spec.Endpoints = append(many.Spec.Endpoints, nil)
	many.Status.Zones = []v1alpha1.EndpointZone{
		{Namespace: "dns", Name: "example-com", ZoneName: "example.com", RRsets: []string{"www.example.com./A", "a.example.com./A", "example.com./SOA", "x"}},
		{Namespace: "dns", Name: "other", ZoneName: "sub.example.com", RRsets: []string{"x.sub.example.com./A"}},
	}
	for name, test := range map[string]struct {
		object Object
		want   []string
	}{
		"never published":     {cnameRecord(object("o", 1), "@", "x"), []string{"example.com. CNAME"}},
		"with former names":   {published, []string{"a/b.example.com. A", "old.example.com. A", "older.example.com. A", "oldest.example.com. A", "www.example.com. A"}},
		"from another zone":   {elsewhere, []string{"www.example.com. A"}},
		"nothing in the zone": {outside, nil},
		"endpoints":           {many, []string{"a.example.com. A", "old.example.com. TXT", "www.example.com. A"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, key := range PublishedKeys(test.object, "example.com.") {
				got = append(got, key.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

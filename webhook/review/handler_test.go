package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/webhook/internal/requests"
	"github.com/lockstep-dns/lockstep/webhook/mark"
)

const (
	// www is the stored record of that name, blog is the stored alias.
	www  = `{kind: ARecord, metadata: {name: www, namespace: dns, uid: r1, labels: {zone: example}, creationTimestamp: "2026-01-02T00:00:00Z"}, spec: {name: www, ipv4Addresses: [192.0.2.1]}}`
	blog = `{kind: CNAMERecord, metadata: {name: blog, namespace: dns, uid: r2, labels: {zone: example}, creationTimestamp: "2026-01-02T00:00:00Z"}, spec: {name: blog, target: www}}`
)

func record(kind, name, spec string) string {
	return "{kind: " + kind + ", metadata: {name: " + name + ", namespace: dns, labels: {zone: example}}, spec: " + spec + "}"
}

func zone(name, spec string) string {
	return "{kind: DNSZone, metadata: {name: " + name + ", namespace: dns}, spec: {soaRecord: {primaryNs: ns1.example.com., adminEmail: a@example.com}, " + spec + "}}"
}

// atSerial is a zone whose lowest serial is declared, and that is at one.
func atSerial(least, at int64) string {
	return fmt.Sprintf("{kind: DNSZone, metadata: {name: z, namespace: dns}, spec: {zoneName: other.test, soaRecord: {primaryNs: ns1.example.com., adminEmail: a@example.com, serial: %d}}, status: {serial: %d}}", least, at)
}

func endpoint(spec string) string {
	return "{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, metadata: {name: e, namespace: dns}, spec: {endpoints: [" + spec + "]}}"
}

// Each case wants either nothing (the object is stored), or words that the refusal has to have: a warning where it is stored all the same.
func TestReview(t *testing.T) {
	tests := map[string]struct {
		object, old string
		warned      bool
		want        []string
	}{
		"A":                          {object: record("ARecord", "a", `{name: a, ipv4Addresses: [192.0.2.7]}`)},
		"A, older form":              {object: record("ARecord", "a", `{name: a, ipv4Address: 192.0.2.7}`)},
		"A, bad address":             {object: record("ARecord", "a", `{name: a, ipv4Addresses: [192.0.2.7, 192.0.2.300]}`), want: []string{"spec.ipv4Addresses[1]", "192.0.2.300"}},
		"A, IPv6 address":            {object: record("ARecord", "a", `{name: a, ipv4Addresses: ["2001:db8::1"]}`), want: []string{"spec.ipv4Addresses[0]", "2001:db8::1"}},
		"A, no address":              {object: record("ARecord", "a", `{name: a}`), want: []string{"spec.ipv4Addresses"}},
		"A, two faults":              {object: record("ARecord", "a", `{name: "a..b", ipv4Addresses: [x]}`), want: []string{"spec.name", "a..b", "spec.ipv4Addresses[0]"}},
		"AAAA, bad address":          {object: record("AAAARecord", "a", `{name: a, ipv6Addresses: ["192.0.2.1"]}`), want: []string{"spec.ipv6Addresses[0]", "192.0.2.1"}},
		"CNAME at the apex":          {object: record("CNAMERecord", "a", `{name: "@", target: x.test.}`), want: []string{"spec.name", "example.com.", "publish addresses there"}},
		"CNAME beside A":             {object: record("CNAMERecord", "a", `{name: www, target: x.test.}`), warned: true, want: []string{"spec.name", "www", "ARecord dns/www"}},
		"CNAME beside A, other case": {object: record("CNAMERecord", "a", `{name: WWW, target: x.test.}`), warned: true, want: []string{"ARecord dns/www"}},
		"CNAME beside A, absolute":   {object: record("CNAMERecord", "a", `{name: www.example.com., target: x.test.}`), warned: true, want: []string{"ARecord dns/www"}},
		"A beside CNAME":             {object: record("ARecord", "a", `{name: blog, ipv4Addresses: [192.0.2.7]}`), warned: true, want: []string{"CNAMERecord dns/blog"}},
		"second CNAME":               {object: record("CNAMERecord", "a", `{name: blog, target: other}`), warned: true, want: []string{"CNAMERecord dns/blog"}},
		"the same CNAME again":       {object: record("CNAMERecord", "a", `{name: blog, target: www}`)},
		"DNSRecord beside CNAME":     {object: record("DNSRecord", "a", `{name: blog, type: AAAA, data: ["2001:db8::7"]}`), warned: true, want: []string{"CNAMERecord dns/blog", "this DNSRecord is published as soon as that is gone"}},
		"DS beside CNAME":            {object: record("DNSRecord", "a", `{name: blog, type: DS, data: ["1 13 2 0000000000000000000000000000000000000000000000000000000000000000"]}`), warned: true, want: []string{"CNAMERecord dns/blog"}},
		"second A":                   {object: record("ARecord", "a", `{name: www, ipv4Addresses: [192.0.2.7]}`)},
		"CNAME beside an endpoint":   {object: record("CNAMERecord", "a", `{name: shop, target: www}`), warned: true, want: []string{"spec.name", "declared by an object of another namespace, is not published any more"}},
		"A beside an endpoint":       {object: record("ARecord", "a", `{name: shop, ipv4Addresses: [192.0.2.7]}`)},
		"update over an endpoint": {
			object: strings.Replace(blog, "name: blog, target", "name: shop, target", 1), old: blog, warned: true, want: []string{"declared by an object of another namespace, is not published any more"},
		},
		"A below a delegation":               {object: record("ARecord", "a", `{name: host.sub, ipv4Addresses: [192.0.2.7]}`), want: []string{"spec.name", "sub.example.com. is delegated to", "NSRecord dns/sub", "declare host.sub.example.com. in that zone"}},
		"A far below a delegation":           {object: record("ARecord", "a", `{name: a.b.host.sub, ipv4Addresses: [192.0.2.7]}`), want: []string{"is delegated to"}},
		"A at a delegation":                  {object: record("ARecord", "a", `{name: sub, ipv4Addresses: [192.0.2.7]}`), want: []string{"is delegated to"}},
		"A of a delegation's server":         {object: record("ARecord", "a", `{name: ns1.sub, ipv4Addresses: [192.0.2.7]}`)},
		"A below an endpoint's delegation":   {object: record("ARecord", "a", `{name: host.leased, ipv4Addresses: [192.0.2.7]}`), warned: true, want: []string{"leased.example.com. NS, declared by an object of another namespace, is not published any more"}},
		"A of an endpoint's server":          {object: record("ARecord", "a", `{name: ns1.leased, ipv4Addresses: [192.0.2.7]}`)},
		"delegation above a record":          {object: record("NSRecord", "a", `{name: down, nameserver: ns.test.}`), want: []string{"spec.name", "a delegation of down.example.com. would hide deep.down.example.com.", "ARecord dns/deep"}},
		"delegation above an endpoint":       {object: record("NSRecord", "a", `{name: market, nameserver: ns.test.}`), warned: true, want: []string{"stand.market.example.com. A, declared by an object of another namespace, is not published any more"}},
		"delegation above another's server":  {object: record("NSRecord", "a", `{name: else, nameserver: ns.test.}`)},
		"DS of a delegation":                 {object: record("DNSRecord", "a", `{name: sub, type: DS, data: ["1 13 9 AB"]}`)},
		"DS before its delegation":           {object: record("DNSRecord", "a", `{name: soon, type: DS, data: ["1 13 9 AB"]}`), warned: true, want: []string{"soon.example.com. is not delegated", "declare an NSRecord", "this DNSRecord is published as soon as that has changed"}},
		"second server of a delegation":      {object: record("NSRecord", "a", `{name: sub, nameserver: ns.test.}`)},
		"update into a delegation":           {object: strings.Replace(www, "name: www, ipv4", "name: www.sub, ipv4", 1), old: www, want: []string{"is delegated to"}},
		"CNAME for the zone's own server":    {object: record("CNAMERecord", "a", `{name: ns1, target: x.test.}`), want: []string{"is a name server of this zone"}},
		"zone's own server that is an alias": {object: record("NSRecord", "a", `{name: "@", nameserver: blog}`), want: []string{"blog.example.com. is an alias"}},
		"update that makes a second CNAME":   {object: strings.Replace(record("CNAMERecord", "c", `{name: blog, target: other}`), "metadata: {", "metadata: {uid: c, ", 1), old: record("CNAMERecord", "c", `{name: free, target: other}`), warned: true, want: []string{"CNAMERecord dns/blog"}},
		"TXT too long in one string":         {object: record("TXTRecord", "a", `{name: a, text: ["`+strings.Repeat("x", 70000)+`"]}`), want: []string{"spec.text"}},
		"MX, bad host":                       {object: record("MXRecord", "a", `{name: a, priority: 10, mailServer: "mail host"}`), want: []string{"spec.mailServer", "mail host"}},
		"SRV, bad port":                      {object: record("SRVRecord", "a", `{name: _sip._tcp, priority: 1, weight: 1, port: 70000, target: sip}`), want: []string{"spec.port", "70000"}},
		"CAA, bad tag":                       {object: record("CAARecord", "a", `{name: "@", flags: 0, tag: "is sue", value: ca.test}`), want: []string{"spec"}},
		"NS of a wildcard":                   {object: record("NSRecord", "a", `{name: "*", nameserver: ns.test.}`), want: []string{"spec.name"}},
		"name outside of the zone":           {object: record("ARecord", "a", `{name: www.other.test., ipv4Addresses: [192.0.2.7]}`), want: []string{"spec.name", "www.other.test."}},
		"update that makes a clash":          {object: strings.Replace(www, "name: www, ipv4", "name: blog, ipv4", 1), old: www, warned: true, want: []string{"CNAMERecord"}},
		"update that keeps the peace":        {object: strings.Replace(www, "192.0.2.1", "192.0.2.9", 1), old: www},
		"bad data outside any zone": {
			object: `{kind: ARecord, metadata: {name: a, namespace: elsewhere}, spec: {name: a, ipv4Addresses: [nonsense]}}`,
			want:   []string{"spec.ipv4Addresses[0]", "nonsense"},
		},
		"being deleted, whatever it holds": {
			object: `{kind: ARecord, metadata: {name: a, namespace: dns, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {name: a, ipv4Addresses: [x]}}`,
			old:    www,
		},

		"zone":                       {object: zone("z", `zoneName: other.test, clusterRef: c`)},
		"zone, same name elsewhere":  {object: zone("z", `zoneName: example.com, clusterRef: d`)},
		"zone, made anew":            {object: zone("example-com", `zoneName: example.com, clusterRef: c`)},
		"zone, duplicate":            {object: zone("z", `zoneName: EXAMPLE.com, clusterRef: c`), want: []string{"spec.zoneName", "dns/example-com", "bind9InstancesFrom"}},
		"zone, bad name":             {object: zone("z", `zoneName: "bad..name"`), want: []string{"spec.zoneName"}},
		"zone, serial":               {object: atSerial(2026112601, 7), old: atSerial(0, 7)},
		"zone, serial too far":       {object: atSerial(4294967295, 2026112601), old: atSerial(2026112601, 2026112601), want: []string{"spec.soaRecord.serial", "2026112601", "4173596248 first"}},
		"zone, serial by the limit":  {object: atSerial(4173596248, 2026112601), old: atSerial(2026112601, 2026112601)},
		"zone, lower serial":         {object: atSerial(1, 2026112601), old: atSerial(2026112601, 2026112601)},
		"zone, serial long reached":  {object: strings.Replace(atSerial(4294967295, 5), "zoneName", "ttl: 60, zoneName", 1), old: atSerial(4294967295, 5)},
		"zone, serial of a new zone": {object: atSerial(4294967295, 0)},
		"zone, bad operator": {
			object: zone("z", `zoneName: other.test, recordsFrom: [{selector: {}}, {selector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}}]`),
			want:   []string{"spec.recordsFrom[1].selector.matchExpressions[0]", "Like", "In and NotIn"},
		},
		"zone, In without values": {
			object: zone("z", `zoneName: other.test, recordsFrom: [{selector: {matchExpressions: [{key: a, operator: In}]}}]`),
			want:   []string{"spec.recordsFrom[0].selector.matchExpressions[0]"},
		},
		"zone, Exists with values": {
			object: zone("z", `zoneName: other.test, bind9InstancesFrom: [{selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}]`),
			want:   []string{"spec.bind9InstancesFrom[0].selector.matchExpressions[0]"},
		},
		"zone, bad label value": {
			object: zone("z", `zoneName: other.test, recordsFrom: [{selector: {matchLabels: {a: "not a label"}}}]`),
			want:   []string{"spec.recordsFrom[0].selector.matchLabels[a]", "not a label"},
		},

		"endpoint":                                    {object: endpoint(`{dnsName: a.example.com, recordType: A, targets: [192.0.2.1]}`)},
		"endpoint of a foreign type":                  {object: endpoint(`{dnsName: a.example.com, recordType: ALIAS, targets: [whatever]}`)},
		"endpoint, text as it stands":                 {object: endpoint(`{dnsName: a.example.com, recordType: TXT, targets: ['"heritage=external-dns,x=y"', plain words]}`)},
		"endpoint, bad target":                        {object: endpoint(`{dnsName: a.example.com, recordType: A, targets: [192.0.2.1, x]}`), want: []string{"spec.endpoints[0].targets[1]"}},
		"endpoint, two faults":                        {object: endpoint(`{dnsName: "a..example.com", recordType: MX, targets: [mail.example.com]}`), want: []string{"spec.endpoints[0].dnsName", "a..example.com", "spec.endpoints[0].targets[0]", "preference"}},
		"endpoint, the second one":                    {object: endpoint(`{dnsName: a.example.com, recordType: A, targets: [192.0.2.1]}, {dnsName: a.example.com, recordType: SRV, targets: [1 2 70000 x]}`), want: []string{"spec.endpoints[1].targets[0]", "70000"}},
		"endpoint, all types":                         {object: endpoint(`{dnsName: a.example.com, recordType: MX, targets: [10 mail.example.com]}, {dnsName: 1.2.0.192.in-addr.arpa, recordType: PTR, targets: [a.example.com]}, {dnsName: _s._tcp.example.com, recordType: SRV, targets: [1 2 443 a.example.com]}, {dnsName: example.com, recordType: CAA, targets: ['0 issue "ca.test"']}`)},
		"endpoint, no target":                         {object: endpoint(`{dnsName: a.example.com, recordType: A}`), want: []string{"spec.endpoints[0].targets"}},
		"endpoint, address of a host":                 {object: endpoint(`{dnsName: a.example.com, recordType: PTR, targets: [192.0.2.1]}`), want: []string{"spec.endpoints[0].targets[0]", "recordType A"}},
		"endpoint, routed answers":                    {object: endpoint(`{dnsName: a.example.com, recordType: A, setIdentifier: blue, targets: [192.0.2.1]}`), want: []string{"spec.endpoints[0].setIdentifier", "blue", "leave this out"}},
		"endpoint, routed answers of another program": {object: endpoint(`{dnsName: a.b, recordType: A, setIdentifier: blue, targets: [192.0.2.1]}`)},
		"endpoint, bad name":                          {object: endpoint(`{dnsName: "a..example.com", recordType: A, targets: [192.0.2.1]}`), want: []string{"spec.endpoints[0].dnsName", "a..example.com"}},
		"endpoint, alias of the zone itself":          {object: endpoint(`{dnsName: example.com, recordType: CNAME, targets: [lb.cloud.test]}`), want: []string{"spec.endpoints[0].dnsName", "at the apex", "publish addresses there"}},
		"endpoint, bad TTL":                           {object: endpoint(`{dnsName: a.example.com, recordType: A, recordTTL: -1, targets: [192.0.2.1]}`), want: []string{"spec.endpoints[0].recordTTL", "-1"}},
		"another kind":                                {object: `{kind: Bind9Cluster, metadata: {name: c, namespace: dns}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			answer := NewHandler(example(t)).Handle(quick(t), request(t, tc.object, tc.old))
			message := strings.Join(answer.Warnings, "\n")
			if !answer.Allowed {
				message = answer.Result.Message
			}
			if stored := len(tc.want) == 0 || tc.warned; answer.Allowed != stored {
				t.Fatalf("allowed = %t, want %t: %s", answer.Allowed, stored, message)
			}
			for _, word := range tc.want {
				if !strings.Contains(message, word) {
					t.Errorf("the message lacks %q: %s", word, message)
				}
			}
		})
	}
}

// What a DNSEndpoint has at names of no zone is the matter of other programs: it is stored, whatever it is, with a warning that says why it
// could not be published here.
func TestReviewLeavesOtherNamesAlone(t *testing.T) {
	addresses := addressList(4001)
	for text, warned := range map[string]string{
		`{dnsName: a.b, recordType: A, targets: []}`: "there is no target",
		`{dnsName: a.b, recordType: CNAME, targets: [a.test, b.test], providerSpecific: [{name: alias, value: "true"}]}`: "a CNAME has one target",
		`{dnsName: a.b, recordType: A, targets: [lb.cloud.test], providerSpecific: [{name: aws/alias, value: "true"}]}`:  "targets[0]",
		`{dnsName: bücher.test, recordType: A, targets: [192.0.2.1]}`:                                                    "xn--bcher-kva.test",
		`{dnsName: a.b, recordType: A, targets: [` + addresses + `]}`:                                                    "4000",
	} {
		answer := NewHandler(example(t)).Handle(quick(t), request(t, endpoint(text), ""))
		if !answer.Allowed {
			t.Errorf("%.80s: refused: %s", text, answer.Result.Message)
		}
		if len(answer.Warnings) != 1 || !strings.Contains(answer.Warnings[0], "no DNSZone takes") || !strings.Contains(answer.Warnings[0], warned) {
			t.Errorf("%.80s: warnings %q", text, answer.Warnings)
		}
	}
}

// addressList is so many IPv4 addresses.
func addressList(n int) string {
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	return strings.Join(addresses, ", ")
}

// More values than servers take are stored, with a warning that says who takes how many: the number may be raised in the same commit.
func TestReviewWarnsOfTooManyValues(t *testing.T) {
	a := func(name string, n int) string {
		return record("ARecord", "many", "{name: "+name+", ipv4Addresses: ["+addressList(n)+"]}")
	}
	targets := func(n int) string {
		return endpoint("{dnsName: many.example.com, recordType: A, targets: [" + addressList(n) + "]}")
	}
	const takes, raise = "Bind9Instance dns/c-primary-0 takes at most ", "raise spec.global.maxRecordsPerType of its cluster c"
	for name, tc := range map[string]struct {
		object string
		most   int32
		want   []string
	}{
		"as many":             {a("many", 100), 0, nil},
		"one more":            {a("many", 101), 0, []string{"many.example.com. A would have 101 values", takes + "100", raise, "as soon as that has changed, and not before"}},
		"beside another one":  {a("www", 100), 0, []string{"www.example.com. A would have 101 values, 1 of them by other declarations", takes + "100"}},
		"with a higher limit": {a("www", 100), 101, nil},
		"and one more":        {a("www", 101), 101, []string{"would have 102 values", takes + "101"}},
		"endpoint":            {targets(101), 0, []string{"spec.endpoints[0]: many.example.com. A would have 101 values", takes + "100"}},
		"endpoint, raised":    {targets(101), 101, nil},
	} {
		objects := example(t)
		objects.servers.Instances[0].Status.MaxRecordsPerType = max(100, tc.most)
		answer := NewHandler(objects).Handle(quick(t), request(t, tc.object, ""))
		if message := strings.Join(answer.Warnings, "\n"); !answer.Allowed || (len(tc.want) > 0) != (message != "") {
			t.Errorf("%s: %v, %q", name, answer.Result, message)
		} else {
			for _, word := range tc.want {
				if !strings.Contains(message, word) {
					t.Errorf("%s: the warning lacks %q: %s", name, word, message)
				}
			}
		}
	}
	answer := NewHandler(example(t)).Handle(quick(t), request(t, a("many", 4001), ""))
	if answer.Allowed || !strings.Contains(answer.Result.Message, "at most 4000") {
		t.Errorf("what no answer can hold: %+v", answer.Result)
	}
}

// A record that is accepted beside an older one that waits for its name loses the name to it later.
func TestReviewWarnsOfAnOlderRecordThatWaits(t *testing.T) {
	const waiting = `{kind: CNAMERecord, metadata: {name: next, namespace: dns, uid: r8, labels: {zone: example}, creationTimestamp: "2026-01-03T00:00:00Z"}, spec: {name: www, target: x.test.}}`
	for name, tc := range map[string]struct {
		objects *staticObjects
		object  string
		warns   bool
	}{
		"younger":             {example(t, recordOf(t, waiting)), record("ARecord", "more", `{name: www, ipv4Addresses: [192.0.2.7]}`), true},
		"older":               {example(t, recordOf(t, waiting)), strings.Replace(www, "192.0.2.1", "192.0.2.9", 1), false},
		"at another name":     {example(t, recordOf(t, waiting)), record("ARecord", "more", `{name: other, ipv4Addresses: [192.0.2.7]}`), false},
		"where nothing waits": {example(t), record("ARecord", "more", `{name: www, ipv4Addresses: [192.0.2.7]}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			old := ""
			if strings.Contains(tc.object, "uid: r1") {
				old = www
			}
			answer := NewHandler(tc.objects).Handle(quick(t), request(t, tc.object, old))
			warned := strings.Contains(strings.Join(answer.Warnings, "\n"), "published only until an older object that waits for the name gets it: www.example.com. is an alias, declared by CNAMERecord dns/next")
			if !answer.Allowed || warned != tc.warns || len(answer.Warnings) > 1 {
				t.Errorf("allowed = %t, warnings %q", answer.Allowed, answer.Warnings)
			}
		})
	}
}

// A record of the zone's namespace that takes the place of what another one declares does so without naming its object.
func TestReviewNamesNothingOfOthers(t *testing.T) {
	older := strings.Replace(blog, "2026-01-02", "2026-01-01", 1)
	answer := NewHandler(example(t)).Handle(quick(t), request(t, strings.Replace(older, "name: blog, target", "name: shop, target", 1), older))
	message := strings.Join(answer.Warnings, "\n")
	if !answer.Allowed || !strings.Contains(message, "shop.example.com. A, declared by an object of another namespace, is not published any more") || strings.Contains(message, "guests") {
		t.Errorf("allowed = %t: %q", answer.Allowed, message)
	}
}

func TestReviewListsSomeOfManyProblems(t *testing.T) {
	object := endpoint(strings.TrimSuffix(strings.Repeat(`{dnsName: a.example.com, recordType: A, targets: [x]},`, maxProblems+3), ","))
	answer := NewHandler(example(t)).Handle(quick(t), request(t, object, ""))
	if causes := answer.Result.Details.Causes; answer.Allowed || len(causes) != maxProblems+1 || !strings.Contains(causes[maxProblems].Message, "3 more problems") {
		t.Errorf("allowed = %v, %d causes: %v", answer.Allowed, len(causes), causes)
	}
}

func TestReviewWarns(t *testing.T) {
	tests := map[string]struct {
		namespace string
		want      int
	}{
		"where zones are, none selects it": {"dns", 1},
		"where no zone is yet":             {"elsewhere", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := `{kind: ARecord, metadata: {name: a, namespace: ` + tc.namespace + `}, spec: {name: a, ipv4Addresses: [192.0.2.1]}}`
			answer := NewHandler(example(t)).Handle(quick(t), request(t, object, ""))
			if !answer.Allowed || len(answer.Warnings) != tc.want {
				t.Errorf("allowed = %v, warnings = %q", answer.Allowed, answer.Warnings)
			}
		})
	}
}

// A record is of no use where the servers answer from a zone below.
func TestReviewWarnsOfHiddenRecords(t *testing.T) {
	below := func(cluster string) *v1beta1.DNSZone {
		return zoneOf(t, `
metadata: {name: kiosk, namespace: dns, uid: z2, creationTimestamp: "2026-01-03T00:00:00Z"}
spec:
  zoneName: KIOSK.example.com
  clusterRef: `+cluster+`
  soaRecord: {primaryNs: ns1.kiosk.example.com., adminEmail: a@example.com}
`)
	}
	record := func(kind, name, spec string) string {
		return `{kind: ` + kind + `, metadata: {name: x, namespace: dns, labels: {zone: example}}, spec: {name: ` + name + `, ` + spec + `}}`
	}
	const address = "ipv4Addresses: [192.0.2.1]"
	for name, tc := range map[string]struct {
		zone   *v1beta1.DNSZone
		object string
		warns  bool
	}{
		"at the name of the zone below": {below("c"), record("ARecord", "kiosk", address), true},
		"below that":                    {below("c"), record("ARecord", "a.kiosk", address), true},
		"beside it":                     {below("c"), record("ARecord", "workkiosk", address), false},
		"a zone on other servers":       {below("d"), record("ARecord", "a.kiosk", address), false},
		"its delegation":                {below("c"), record("NSRecord", "kiosk", "nameserver: ns.test."), false},
		"without another zone":          {nil, record("ARecord", "a.kiosk", address), false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := example(t)
			if tc.zone != nil {
				objects.members.SetZone(tc.zone)
			}
			answer := NewHandler(objects).Handle(quick(t), request(t, tc.object, ""))
			if !answer.Allowed || (len(answer.Warnings) == 1) != tc.warns {
				t.Fatalf("allowed = %v (%v), warnings = %q", answer.Allowed, answer.Result, answer.Warnings)
			}
			if tc.warns && !strings.Contains(answer.Warnings[0], "from DNSZone kiosk, whose zone KIOSK.example.com is longer than example.com") {
				t.Errorf("%q", answer.Warnings)
			}
		})
	}
}

func TestReviewWarnsOfEndpoints(t *testing.T) {
	outside := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{dnsName: a.elsewhere.test, recordType: A, targets: [192.0.2.1]},`, n), ",")
	}
	tests := map[string]struct {
		object string
		want   []string // words of each warning
	}{
		"published":            {endpoint(`{dnsName: a.example.com, recordType: A, targets: [192.0.2.1]}`), nil},
		"no zone":              {endpoint(outside(1)), []string{`spec.endpoints[0].dnsName: no DNSZone takes "a.elsewhere.test"`}},
		"a type in lower case": {endpoint(`{dnsName: a.example.com, recordType: cname, targets: [x]}`), []string{`spec.endpoints[0].recordType: "cname" is not published here, and stored for other programs: types are in upper case; write "CNAME"`}},
		"a type unknown":       {endpoint(`{dnsName: a.example.com, recordType: ALIAS, targets: [x]}`), []string{`spec.endpoints[0].recordType: Lockstep does not publish type "ALIAS"`}},
		"a type left out":      {endpoint(`{dnsName: a.example.com, targets: [x]}`), []string{"spec.endpoints[0].recordType"}},
		"not admitted": {
			strings.Replace(endpoint(`{dnsName: a.example.com, recordType: A, targets: [192.0.2.1]}`), "namespace: dns", "namespace: strangers", 1),
			[]string{"admits the namespace"},
		},
		"admitted": {
			strings.Replace(endpoint(`{dnsName: a.example.com, recordType: A, targets: [192.0.2.1]}`), "namespace: dns", "namespace: friends, annotations: {bindy.firestoned.io/allow-zone-namespaces: dns}", 1), nil,
		},
		"many": {endpoint(outside(7)), []string{"[0]", "[1]", "[2]", "[3]", "[4]", "2 more endpoints"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			answer := NewHandler(example(t)).Handle(quick(t), request(t, tc.object, ""))
			if !answer.Allowed || len(answer.Warnings) != len(tc.want) {
				t.Fatalf("allowed = %v, warnings = %q, want %d", answer.Allowed, answer.Warnings, len(tc.want))
			}
			for i, word := range tc.want {
				if !strings.Contains(answer.Warnings[i], word) {
					t.Errorf("warning %d lacks %q: %s", i, word, answer.Warnings[i])
				}
			}
		})
	}
}

func TestDeletionsAreNeverReviewed(t *testing.T) {
	req := request(t, record("ARecord", "a", `{name: a, ipv4Addresses: [x]}`), "")
	for _, op := range []admissionv1.Operation{admissionv1.Delete, admissionv1.Connect} {
		req.Operation = op
		if answer := NewHandler(example(t)).Handle(quick(t), req); !answer.Allowed {
			t.Errorf("%s: refused", op)
		}
	}
}

// Whatever is sent, every handler answers with a review.
func FuzzHandlers(f *testing.F) {
	seeds := [][]byte{
		[]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`),
		[]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"kind":{"group":"bindy.firestoned.io","kind":"DNSZone"},"operation":"DELETE","oldObject":{"spec":{"zoneName":"example.com"}}}}`),
		[]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"kind":{"group":"bindy.firestoned.io","kind":"ARecord"},"operation":"UPDATE"}}`),
	}
	for _, object := range []string{www, blog, zone("z", `zoneName: x.test`), endpoint(`{dnsName: a.b, recordType: MX, targets: [x]}`)} {
		req := request(f, object, object)
		review := admissionv1.AdmissionReview{Request: &req.AdmissionRequest}
		review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
		data, err := json.Marshal(review)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, data)
	}
	handlers := map[string]admission.Handler{"mark": mark.NewHandler(example(f).zoneCache(), nil), "review": NewHandler(example(f)), "both": NewMarkingHandler(NewHandler(example(f)), nil)}
	handle := func(t testing.TB, body []byte) {
		for name, handler := range handlers {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			(&admission.Webhook{Handler: handler, RecoverPanic: new(bool)}).ServeHTTP(w, r)
			var review admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil {
				t.Fatalf("%s answers %q: %v", name, w.Body, err)
			}
		}
	}
	for _, seed := range seeds {
		handle(f, seed) // Definitions are compiled once. Go takes an input of more than ten seconds for one that never ends.
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) { handle(t, body) })
}

// What the definition of somebody else accepts and our types cannot hold is refused, in words.
func TestUnreadableObjectIsRefused(t *testing.T) {
	req := requests.FromYAML(t, `{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, metadata: {name: e, namespace: dns},
  spec: {endpoints: [{dnsName: a.test, recordType: A, targets: [192.0.2.1], recordTTL: soon}]}}`, "")
	answer := NewHandler(newStaticObjects()).Handle(quick(t), req)
	if answer.Allowed || !strings.Contains(answer.Result.Message, "spec.endpoints cannot be read") {
		t.Errorf("answered %+v", answer.Result)
	}
}

// A target with a dot inside and none at the end is warned about, unless the zone has what it stands for.
func TestWarnOfRelativeTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		warns  string
	}{
		"alias":                 {record("CNAMERecord", "a", "{name: a, target: example.github.io}"), `spec.target "example.github.io" has no final dot, so it is relative to the zone: example.github.io.example.com., where nothing is declared; write it with a final dot`},
		"mail server":           {record("MXRecord", "a", "{name: a, priority: 10, mailServer: mx.test}"), "mx.test.example.com., where nothing is declared"},
		"host of an address":    {record("PTRRecord", "a", `{name: "10", target: host10.test}`), "host10.test.example.com., where"},
		"server of a service":   {record("SRVRecord", "a", "{name: _sip._tcp, priority: 1, weight: 1, port: 5060, target: sip.test}"), "sip.test.example.com., where"},
		"name server":           {record("NSRecord", "a", "{name: a, nameserver: ns.test}"), "ns.test.example.com., where"},
		"inside its delegation": {record("NSRecord", "a", "{name: a, nameserver: ns1.a}"), ""},
		"one label":             {record("CNAMERecord", "a", "{name: a, target: nowhere}"), ""},
		"complete":              {record("CNAMERecord", "a", "{name: a, target: example.github.io.}"), ""},
		"a record's name":       {record("CNAMERecord", "a", "{name: a, target: deep.down}"), ""},
		"an endpoint's name":    {record("CNAMERecord", "a", "{name: a, target: stand.market}"), ""},
		"below a delegation":    {record("CNAMERecord", "a", "{name: a, target: host.sub}"), ""},
		"no target":             {record("TXTRecord", "a", "{name: a, text: [example.github.io]}"), ""},
		"no zone that it is in": {strings.Replace(record("CNAMERecord", "a", "{name: a, target: example.github.io}"), "zone: example", "zone: other", 1), "no DNSZone"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := NewHandler(example(t)).Handle(quick(t), request(t, tc.object, ""))
			if said := strings.Join(answer.Warnings, "\n"); !answer.Allowed || !strings.Contains(said, tc.warns) || tc.warns == "" && said != "" {
				t.Errorf("allowed = %v (%v), warnings = %q, want %q", answer.Allowed, answer.Result, answer.Warnings, tc.warns)
			}
		})
	}
}

// An object that has no place in the zone keeps nobody else out of it.
func TestExcludedExcludesNothing(t *testing.T) {
	stored := func(kind, name, day, spec string) client.Object {
		return recordOf(t, "{kind: "+kind+", metadata: {name: "+name+", namespace: dns, uid: "+name+`, labels: {zone: example}, creationTimestamp: "2026-01-`+day+`T00:00:00Z"}, spec: `+spec+"}")
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		object  string
		warns   string
	}{
		"delegation above older data": {
			[]client.Object{stored("TXTRecord", "below", "03", "{name: x.lost, text: [x]}"), stored("NSRecord", "lost", "04", "{name: lost, nameserver: ns.test.}")},
			record("AAAARecord", "a", `{name: lost, ipv6Addresses: ["2001:db8::7"]}`), "",
		},
		"delegation at an older alias": {
			[]client.Object{stored("CNAMERecord", "alias", "03", "{name: lost, target: www}"), stored("NSRecord", "lost", "04", "{name: lost, nameserver: ns.test.}")},
			record("ARecord", "a", "{name: x.lost, ipv4Addresses: [192.0.2.7]}"), "",
		},
		"redirection above older data": {
			[]client.Object{stored("ARecord", "below", "03", "{name: x.lost, ipv4Addresses: [192.0.2.8]}"), stored("DNSRecord", "lost", "04", "{name: lost, type: DNAME, data: [www.test.]}")},
			record("ARecord", "a", "{name: y.lost, ipv4Addresses: [192.0.2.7]}"), "",
		},
		"alias of a name server beside older data": {
			[]client.Object{stored("ARecord", "host", "03", "{name: host, ipv4Addresses: [192.0.2.8]}"), stored("CNAMERecord", "lost", "04", "{name: host, target: www}")},
			record("NSRecord", "a", `{name: "@", nameserver: host}`), "published only until an older object that waits for the name gets it",
		},
		"delegation in a DNSEndpoint": {
			[]client.Object{stored("TXTRecord", "below", "01", "{name: x.leased, text: [x]}")},
			record("ARecord", "a", "{name: y.leased, ipv4Addresses: [192.0.2.7]}"), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := NewHandler(example(t, tc.objects...)).Handle(quick(t), request(t, tc.object, ""))
			if said := strings.Join(answer.Warnings, "\n"); !answer.Allowed || !strings.Contains(said, tc.warns) || tc.warns == "" && said != "" {
				t.Errorf("allowed = %v (%v), warnings = %q, want %q", answer.Allowed, answer.Result, answer.Warnings, tc.warns)
			}
		})
	}
}

// However many objects are below delegations that exclude each other, a review looks at some thousands at most.
func TestRelatedObjectsAreBounded(t *testing.T) {
	var objects []client.Object
	name := "x"
	for range 60 {
		name += ".n"
		objects = append(objects, recordOf(t, "{kind: NSRecord, metadata: {name: "+name+", namespace: dns, uid: "+name+`, labels: {zone: example}, creationTimestamp: "2026-01-03T00:00:00Z"}, spec: {name: `+strings.TrimPrefix(name, "x.")+", nameserver: ns.test.}}"))
	}
	for i := range 2 * maxRelated {
		host := fmt.Sprintf("h%d.%s", i, name)
		objects = append(objects, recordOf(t, fmt.Sprintf("{kind: TXTRecord, metadata: {name: h%d, namespace: dns, uid: h%[1]d, labels: {zone: example}, creationTimestamp: \"2026-01-02T00:00:00Z\"}, spec: {name: %s, text: [x]}}", i, host)))
	}
	all := example(t, objects...)
	added := recordOf(t, record("ARecord", "a", "{name: y."+name+", ipv4Addresses: [192.0.2.7]}"))
	related, err := findRelated(t.Context(), all, all.zoneCache().ZoneOfRecord(added), added)
	if err != nil {
		t.Fatal(err)
	}
	for range maxRounds {
		if _, err := related.addExcluding(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(related.around) > 2 || related.size() < maxRelated {
		t.Errorf("%d objects were collected, around %d", related.size(), len(related.around))
	}
}

// Two names of one server are one server.
func TestReviewWarnsOfOneAddressForTwoNames(t *testing.T) {
	for servers, want := range map[string]int{
		"{hostname: ns2.new.example., ipv4Address: 192.0.2.1}, {hostname: ns3.new.example., ipv4Address: 192.0.2.1}": 1,
		"{hostname: ns2.new.example., ipv4Address: 192.0.2.1}, {hostname: ns3.new.example., ipv4Address: 192.0.2.2}": 0,
	} {
		answer := NewHandler(example(t)).Handle(quick(t), request(t, zone("new", "zoneName: new.example, clusterRef: c, nameServers: ["+servers+"]"), ""))
		told := slices.DeleteFunc(slices.Clone(answer.Warnings), func(w string) bool { return !strings.Contains(w, "have one address, 192.0.2.1") })
		if !answer.Allowed || len(told) != want {
			t.Errorf("%s: allowed = %v, warnings = %q", servers, answer.Allowed, answer.Warnings)
		}
	}
}

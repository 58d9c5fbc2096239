package externaldns

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// found is an endpoint as external-dns finds it at a source object.
func found(resource, name, rrtype string, ttl int64, targets ...string) *v1alpha1.Endpoint {
	return &v1alpha1.Endpoint{DNSName: name, RecordType: rrtype, RecordTTL: ttl, Targets: targets, Labels: map[string]string{resourceLabel: resource}}
}

// line returns what of an endpoint external-dns compares.
func line(e *v1alpha1.Endpoint) string {
	return fmt.Sprintf("%s %d %s %s [%s]", e.DNSName, e.RecordTTL, e.RecordType, strings.Join(e.Targets, " | "), e.SetIdentifier)
}

func TestAdjustEndpoints(t *testing.T) {
	const web = "service/shop/web"
	tests := map[string]struct {
		endpoint *v1alpha1.Endpoint
		want     string // as line writes it
		refused  string // part of the note
	}{
		"canonical already":       {endpoint: found(web, "www.example.com", "A", 300, "192.0.2.1"), want: "www.example.com 300 A 192.0.2.1 [service/shop/web]"},
		"no TTL":                  {endpoint: found(web, "www.example.com", "A", 0, "192.0.2.1"), want: "www.example.com 0 A 192.0.2.1 [service/shop/web]"},
		"final dots and capitals": {endpoint: found(web, "WWW.Example.com.", "CNAME", 0, "Web.Example.net."), want: "www.example.com 0 CNAME web.example.net [service/shop/web]"},
		"several targets":         {endpoint: found(web, "www.example.com", "A", 0, "192.0.2.2", "192.0.2.1", "192.0.2.2"), want: "www.example.com 0 A 192.0.2.1 | 192.0.2.2 [service/shop/web]"},
		"long IPv6":               {endpoint: found(web, "www.example.com", "AAAA", 0, "2001:DB8:0:0::1"), want: "www.example.com 0 AAAA 2001:db8::1 [service/shop/web]"},
		"text":                    {endpoint: found(web, "www.example.com", "TXT", 0, "ends in a dot."), want: `www.example.com 0 TXT "ends in a dot." [service/shop/web]`},
		"no mail":                 {endpoint: found(web, "example.com", "MX", 0, "0 ."), want: "example.com 0 MX 0 . [service/shop/web]"},
		"mail":                    {endpoint: found(web, "example.com", "MX", 0, "10 Mail.example.com."), want: "example.com 0 MX 10 mail.example.com [service/shop/web]"},
		"a wildcard":              {endpoint: found(web, "*.example.com", "A", 0, "192.0.2.1"), want: "*.example.com 0 A 192.0.2.1 [service/shop/web]"},
		"settings of others": {
			endpoint: &v1alpha1.Endpoint{DNSName: "www.example.com", RecordType: "A", Targets: []string{"192.0.2.1"}, Labels: map[string]string{resourceLabel: web, "owner": "x"},
				ProviderSpecific: []v1alpha1.ProviderSpecificProperty{{Name: "alias", Value: "true"}}},
			want: "www.example.com 0 A 192.0.2.1 [service/shop/web]",
		},
		"adjusted before": {
			endpoint: &v1alpha1.Endpoint{DNSName: "www.example.com", RecordType: "A", Targets: []string{"192.0.2.1"}, SetIdentifier: web},
			want:     "www.example.com 0 A 192.0.2.1 [service/shop/web]",
		},
		"of a DNSEndpoint": {endpoint: found("crd/shop/web", "www.example.com", "A", 0, "192.0.2.1")},
		"weighted": {
			endpoint: &v1alpha1.Endpoint{DNSName: "www.example.com", RecordType: "A", Targets: []string{"192.0.2.1"}, SetIdentifier: "blue", Labels: map[string]string{resourceLabel: web}},
			refused:  "setIdentifier",
		},
		"no targets":          {endpoint: found(web, "www.example.com", "A", 0), refused: "there is no target"},
		"no address":          {endpoint: found(web, "www.example.com", "A", 0, "192.0.2.300"), refused: "192.0.2.300"},
		"unknown type":        {endpoint: found(web, "www.example.com", "BOGUS", 0, "x"), refused: "recordType"},
		"no name":             {endpoint: found(web, "a b..example.com", "A", 0, "192.0.2.1"), refused: "dnsName"},
		"an endless name":     {endpoint: found(web, strings.Repeat("a.", 5000)+"example.com", "A", 0, "192.0.2.1"), refused: "too long"},
		"two hosts":           {endpoint: found(web, "www.example.com", "CNAME", 0, "a.example.net", "b.example.net"), refused: "one target"},
		"thousands of them":   {endpoint: found(web, "www.example.com", "A", 0, addresses(4001)...), refused: "targets"},
		"TTL below zero":      {endpoint: found(web, "www.example.com", "A", -1, "192.0.2.1"), refused: "recordTTL"},
		"no source object":    {endpoint: found("", "www.example.com", "A", 0, "192.0.2.1"), refused: "kind/namespace/name"},
		"no namespace":        {endpoint: found("node/worker", "www.example.com", "A", 0, "192.0.2.1"), refused: "kind/namespace/name"},
		"a path as namespace": {endpoint: found("service/../web", "www.example.com", "A", 0, "192.0.2.1"), refused: "names no object"},
		"a path as name":      {endpoint: found("service/shop/..", "www.example.com", "A", 0, "192.0.2.1"), refused: "names no object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			adjusted, refused := adjustEndpoints([]*v1alpha1.Endpoint{tc.endpoint, nil})
			var got, notes []string
			for _, e := range adjusted {
				got = append(got, line(e))
				if len(e.ProviderSpecific) > 0 {
					t.Errorf("settings %v remain", e.ProviderSpecific)
				}
			}
			for _, r := range refused {
				notes = append(notes, r.note)
			}
			if strings.Join(got, "\n") != tc.want {
				t.Errorf("adjusted to %q, want %q", got, tc.want)
			}
			if (tc.refused == "") != (len(notes) == 0) || !strings.Contains(strings.Join(notes, "\n"), tc.refused) {
				t.Errorf("refused for %q, want %q", notes, tc.refused)
			}
			again, _ := adjustEndpoints(adjusted)
			if diff := cmp.Diff(adjusted, again); diff != "" {
				t.Errorf("adjusting again changes (-once +twice):\n%s", diff)
			}
		})
	}
}

func addresses(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("192.0.%d.%d", i/250, i%250+1))
	}
	return all
}

// What was stored comes back as it was adjusted, whatever external-dns found: otherwise it would change it at each interval.
func TestServedRecordsAreAsAdjusted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"www.example.com", "WWW.example.com.", "*.Example.com", `a\046b.example.com`, "_x._tcp.example.com", "xn--mnchen-3ya.example.com"}
	targets := map[string][]string{
		"A": {"192.0.2.1", "192.0.2.2", "192.0.2.3"}, "AAAA": {"2001:DB8::1", "2001:db8:0:0::2"}, "CNAME": {"Web.example.net.", "web.example.net"},
		"TXT": {"plain", `"quoted" "twice"`, "a.", `back\slash`, "ü"}, "MX": {"0 .", "10 mail.example.com."}, "SRV": {"1 2 3 a.example.com.", "0 0 0 ."},
		"NS": {"ns1.example.net."}, "PTR": {"host.example.com."}, "CAA": {`0 issue "ca.example.net"`},
	}
	for range 2000 {
		var endpoints []*v1alpha1.Endpoint
		for rrtype, values := range targets {
			e := found("service/shop/web", names[random.IntN(len(names))], rrtype, int64(random.IntN(3)*300))
			for range 1 + random.IntN(3) {
				e.Targets = append(e.Targets, values[random.IntN(len(values))])
			}
			endpoints = append(endpoints, e)
		}
		desired, _ := adjustEndpoints(endpoints)
		next, refused := mergeChanges(nil, planChanges{Create: desired}, "external-dns")
		if len(desired) == 0 {
			continue
		}
		if len(next) != 1 || len(refused) > 0 {
			t.Fatalf("%d declarations, refused %v", len(next), refused)
		}
		stored := storedObject("service/shop/web", next[0].endpoints...)
		serveAll(&stored)
		want, got := map[string]bool{}, map[string]bool{}
		for _, e := range desired {
			want[line(e)] = true
		}
		for _, e := range servedRecords([]v1alpha1.DNSEndpoint{stored}, "external-dns") {
			got[line(e)] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("records (-desired +served):\n%s", diff)
		}
	}
}

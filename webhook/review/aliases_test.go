package review

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/webhook/review/trap"
)

// aliasZones are two zones on the same servers, another of the first one's name elsewhere, and one that a parent delegates.
func aliasZones(t testing.TB) (all []client.Object) {
	for i, spec := range []string{"example.com, clusterRef: c", "example.net, clusterRef: c", "example.com, clusterRef: d", "child.example.com, clusterRef: c"} {
		all = append(all, zoneOf(t, fmt.Sprintf(`
metadata: {name: z%d, namespace: dns}
spec:
  zoneName: %s
  soaRecord: {primaryNs: ns1.example.org., adminEmail: a@example.com}
  recordsFrom: [{selector: {matchLabels: {zone: z%d}}}]
`, i, strings.ReplaceAll(spec, ", ", "\n  "), i)))
	}
	return all
}

// Each case has records as ZONE NAME TYPE DATA, and wants what the records in the trap say, in their order.
func TestAliases(t *testing.T) {
	for name, tc := range map[string]struct {
		records []string
		want    []string
	}{
		"an alias":                     {[]string{"0 a CNAME b", "0 b A 192.0.2.1"}, nil},
		"two":                          {[]string{"0 a CNAME b", "0 b CNAME a"}, []string{"a.example.com. -> b.example.com. -> a.example.com. [", "b.example.com. -> a.example.com. -> b.example.com. ["}},
		"into a circle":                {[]string{"0 c CNAME a", "0 a CNAME b", "0 b CNAME a"}, []string{"circle: c.example.com. -> a.example.com. -> b.example.com. -> a.example.com.", "circle", "circle"}},
		"of two zones":                 {[]string{"0 a CNAME a.example.net.", "1 a CNAME a.example.com."}, []string{"circle: a.example.com. -> a.example.net. -> a.example.com.", "circle"}},
		"of a zone of the same name":   {[]string{"0 a CNAME a.example.net.", "1 a CNAME a.example.com.", "2 a A 192.0.2.1"}, []string{"circle", "circle"}},
		"seen by nobody":               {[]string{"2 a CNAME b", "0 b CNAME a"}, nil},
		"by a wildcard":                {[]string{"0 *.w CNAME x.w"}, []string{"circle: *.w.example.com. -> x.w.example.com. -> x.w.example.com."}},
		"below a wildcard":             {[]string{"0 *.w CNAME x.y.w", "0 y.w A 192.0.2.1"}, nil},
		"a wildcard and a name":        {[]string{"0 *.w CNAME x.w", "0 x.w A 192.0.2.1"}, nil},
		"an empty name by a wildcard":  {[]string{"0 *.w CNAME x.w", "0 a.x.w A 192.0.2.1"}, nil},
		"a delegation":                 {[]string{"0 a CNAME a.sub", "0 sub NS ns.example.org.", "1 x CNAME x.child.example.com.", "3 x CNAME x.example.net."}, []string{"circle: x.example.net. -> x.child", "circle"}},
		"DNAME above itself":           {[]string{"0 d.e DNAME e"}, nil},
		"two DNAMEs":                   {[]string{"0 d DNAME e", "0 e DNAME d"}, []string{"circle: name.d.example.com. -> name.e.example.com. -> name.d.example.com.", "circle"}},
		"DNAMEs that grow":             {[]string{"0 d DNAME x.e", "0 e DNAME d"}, []string{"through more than 8 aliases", "more than 8"}},
		"CNAME and DNAME":              {[]string{"0 a CNAME a.d", "0 d DNAME example.com."}, []string{"circle: a.example.com. -> a.d.example.com. -> a.example.com."}},
		"DNAME of two zones":           {[]string{"0 @ DNAME example.net.", "1 a CNAME a.example.com."}, []string{"circle: a.example.net. -> a.example.com. -> a.example.net."}},
		"DNAME to a name too long":     {[]string{"0 d DNAME " + strings.Repeat(strings.Repeat("x", 60)+".", 4), "0 a CNAME " + strings.Repeat("y", 60) + ".d"}, nil},
		"data in bytes":                {[]string{`0 a TYPE5 \# 15 0162076578616d706c6503636f6d00`, "0 b CNAME a"}, []string{"circle", "circle"}},
		"the host of mail":             {[]string{"0 @ MX 10 mail", "0 mail CNAME a"}, []string{"mail.example.com. is an alias, and MX records must name the host itself"}},
		"the host of mail elsewhere":   {[]string{"0 @ MX 10 mail.example.net.", "1 mail CNAME a"}, []string{"mail.example.net. is an alias of a.example.net., and MX records"}},
		"the host by a wildcard":       {[]string{"0 @ MX 10 mail.w", "0 *.w CNAME a"}, []string{"mail.w.example.com. is an alias of a.example.com."}},
		"the host by a DNAME":          {[]string{"0 _a._tcp SRV 0 0 1 mail.d", "0 d DNAME example.net."}, []string{"mail.d.example.com. is an alias of mail.example.net."}},
		"the name server elsewhere":    {[]string{"0 sub NS ns.example.net.", "1 ns CNAME a"}, []string{"ns.example.net. is an alias of a.example.net., and NS records"}},
		"the host of mail, a host":     {[]string{"0 @ MX 10 mail.example.net.", "1 mail A 192.0.2.1"}, nil},
		"the target of HTTPS or PTR":   {[]string{"0 a HTTPS 1 b", "0 b CNAME c", "0 p PTR b"}, nil},
		"an endpoint":                  {[]string{"0 a CNAME e", "endpoint e.example.com CNAME a.example.com"}, []string{"circle", "spec.endpoints[0].targets: aliases lead in a circle"}},
		"what is not published":        {[]string{"0 a A 192.0.2.1", "0 a CNAME a"}, nil},
		"eight, one after the other":   {chainOf(8), nil},
		"more than resolvers follow":   {chainOf(9), []string{"a0.example.com. leads through more than 8 aliases, and resolvers give up"}},
		"a circle with a long way off": {append(chainOf(30), "0 a30 CNAME a0"), slices.Repeat([]string{"more than 8"}, 31)},
	} {
		t.Run(name, func(t *testing.T) {
			all := append(aliasZones(t), aliasObjects(t, tc.records)...)
			results, err := Batch(t.Context(), all)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, r := range results {
				for _, f := range r.Traps {
					if strings.HasPrefix(f.ID, "alias-") {
						found = append(found, f.Text)
					}
				}
			}
			if len(found) != len(tc.want) {
				t.Fatalf("%d traps, want %d: %q", len(found), len(tc.want), found)
			}
			for i, want := range tc.want {
				if !strings.Contains(found[i], want) {
					t.Errorf("trap %d lacks %q: %s", i, want, found[i])
				}
			}
		})
	}
}

// Each case wants the IDs of traps that values of one name are in beside each other, by the record.
func TestTrapsOfOneName(t *testing.T) {
	for name, tc := range map[string]struct {
		records []string
		want    string
	}{
		"two TTLs":             {[]string{"0 a A 192.0.2.1 60", "0 a A 192.0.2.2 600"}, "1 spec.ttl several-ttls"},
		"its own and the zone": {[]string{"0 a A 192.0.2.1 60", "0 a A 192.0.2.2"}, "1 spec.ttl several-ttls"},
		"one TTL":              {[]string{"0 a A 192.0.2.1 60", "0 a A 192.0.2.2 60", "0 a TXT x", "0 b A 192.0.2.1"}, ""},
		"no host, and one":     {[]string{"0 a MX 0 .", "0 a MX 10 mail.example.org."}, "0 spec.data null-target"},
		"no service, and one":  {[]string{"0 _a._tcp SRV 0 0 1 x.example.org.", "0 _a._tcp SRV 0 0 0 ."}, "1 spec.data null-target"},
		"no host":              {[]string{"0 a MX 0 .", "0 a MX 10 .", "0 b MX 10 mail.example.org."}, ""},
		"an alias and a host":  {[]string{"0 a HTTPS 1 .", "0 a HTTPS 2 x.example.org."}, ""},
	} {
		all := aliasObjects(t, tc.records)
		for i, text := range tc.records {
			if f := strings.Fields(text); f[2] == "A" && len(f) > 4 {
				o := all[i].(*v1beta1.DNSRecord)
				ttl, err := strconv.ParseInt(f[4], 10, 64)
				if o.Spec.TTL, o.Spec.Data = &ttl, []string{f[3]}; err != nil {
					t.Fatal(err)
				}
			}
		}
		zones := aliasZones(t)
		results, err := Batch(t.Context(), append(zones, all...))
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for i, r := range results[len(zones):] {
			for _, f := range r.Traps {
				found = append(found, fmt.Sprintf("%d %s %s", i, f.Field, f.ID))
			}
		}
		if got := strings.Join(found, ", "); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// chainOf are as many aliases, one after the other.
func chainOf(n int) (records []string) {
	for i := range n {
		records = append(records, fmt.Sprintf("0 a%d CNAME a%d", i, i+1))
	}
	return records
}

func aliasObjects(t testing.TB, records []string) (all []client.Object) {
	t.Helper()
	for i, text := range records {
		f := strings.SplitN(text, " ", 4)
		if f[0] == "endpoint" {
			e := &v1alpha1.DNSEndpoint{}
			e.Namespace, e.Name = "dns", fmt.Sprintf("e%03d", i)
			e.Spec.Endpoints = []*v1alpha1.Endpoint{{DNSName: f[1], RecordType: f[2], Targets: []string{f[3]}}}
			all = append(all, e)
			continue
		}
		data, err := yaml.Marshal([]string{f[3]})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, recordOf(t, fmt.Sprintf("kind: DNSRecord\nmetadata: {name: r%05d, namespace: dns, labels: {zone: z%s}}\nspec:\n  name: %q\n  type: %s\n  data:\n  %s", i, f[0], f[1], f[2], data)))
	}
	return all
}

// The work for an alias does not depend on how many there are, however they lead.
func TestManyAliases(t *testing.T) {
	const many = 10000
	records := append(chainOf(many), fmt.Sprintf("0 a%d CNAME a0", many), "0 *.w CNAME x.w", "0 d DNAME x.e", "0 e DNAME d")
	all := append(aliasZones(t), aliasObjects(t, records)...)
	start := time.Now()
	results, err := Batch(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range results {
		if slices.ContainsFunc(r.Traps, func(f trap.Found) bool { return f.ID == trap.AliasCircle }) {
			found++
		}
	}
	if took := time.Since(start); found != len(records) || took > 30*time.Second {
		t.Errorf("%d of %d aliases lead nowhere, after %s", found, len(records), took)
	}
}

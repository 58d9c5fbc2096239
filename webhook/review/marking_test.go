package review

import (
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/webhook/internal/requests"
)

// One call marks and reviews. Without words the object is stored, with marks or, if it has them already, without a patch.
func TestMarkingHandler(t *testing.T) {
	const (
		marks    = `finalizers: [bindy.firestoned.io/finalizer], annotations: {bindy.firestoned.io/zone: example.com}, `
		dying    = `deletionTimestamp: "2026-01-01T00:00:00Z", `
		older    = `uid: r0, creationTimestamp: "2026-01-01T00:00:00Z", `
		younger  = `uid: r9, creationTimestamp: "2026-01-03T00:00:00Z", `
		good     = `{name: new, ipv4Addresses: [192.0.2.7]}`
		bad      = `{name: new, ipv4Addresses: [192.0.2.300]}`
		conflict = `{name: blog, ipv4Addresses: [192.0.2.7]}` // The CNAMERecord blog is there.
	)
	a := func(metadata, spec string) string {
		return "{kind: ARecord, metadata: {" + metadata + "name: a, namespace: dns, labels: {zone: example}}, spec: " + spec + "}"
	}
	for name, tc := range map[string]struct {
		object, old string
		patches     bool
		want        string // in the refusal
		warned      string // in a warning
	}{
		"creation":                                    {object: a("", good), patches: true},
		"creation that no zone selects":               {object: strings.Replace(a("", good), "example}", "other}", 1)},
		"bad creation":                                {object: a("", bad), want: "192.0.2.300"},
		"bad creation with a time of deletion":        {object: a(dying, bad), want: "192.0.2.300"},
		"creation of a rival with a time of deletion": {object: a(dying, conflict), patches: true, warned: "CNAMERecord dns/blog"},
		"creation that claims to be old":              {object: a(older, conflict), patches: true, warned: "CNAMERecord dns/blog"},
		"creation with a generated name":              {object: strings.Replace(a("", bad), "name: a,", "generateName: www-,", 1), want: `"www-" is invalid`},
		"bad update":                                  {object: a(marks, bad), old: a(marks, good), want: "192.0.2.300"},
		"update that drops marks":                     {object: a("", good), old: a(marks, conflict), patches: true},
		"marks dropped from a bad one":                {object: a("", bad), old: a(marks, bad), patches: true},
		"annotation of a bad one":                     {object: a(strings.Replace(marks, "annotations: {", "annotations: {x: z, ", 1), bad), old: a(marks, bad)},
		"labels of a bad one":                         {object: strings.Replace(a(marks, bad), "zone: example}", "zone: example, x: z}", 1), old: a(marks, bad), want: "192.0.2.300"},
		"bad update of one that goes":                 {object: a(dying+marks, bad), old: a(dying+marks, good)},
		"bad PUT of one that goes":                    {object: a(marks, bad), old: a(dying+marks, good)},
		"PUT without the time of creation":            {object: a(marks, conflict), old: a(older+marks, good), want: "CNAMERecord dns/blog could not be published any more"},
		"PUT of one that is older than its rival":     {object: a(marks, strings.Replace(conflict, "2.7", "2.8", 1)), old: a(older+marks, conflict)},
		"PUT that claims to be old":                   {object: a(older+marks, conflict), old: a(younger+marks, good), patches: true, warned: "declared by CNAMERecord dns/blog, which is older"},
		"DNSEndpoint":                                 {object: endpoint(`{dnsName: new.example.com, recordType: A, targets: [192.0.2.7]}`), patches: true},
		"bad DNSEndpoint":                             {object: endpoint(`{dnsName: new.example.com, recordType: A, targets: [x]}`), want: "spec.endpoints[0].targets[0]"},
		"DNSEndpoint whose definition is another one": {object: endpoint(`{dnsName: new.example.com, recordType: A, recordTTL: soon}`), want: "spec.endpoints[0].recordTTL"},
		"a kind that has no marks":                    {object: zone("z", `zoneName: "bad..name"`)},
	} {
		t.Run(name, func(t *testing.T) {
			answer := NewMarkingHandler(NewHandler(example(t)), nil).Handle(quick(t), requests.FromYAML(t, tc.object, tc.old))
			switch {
			case answer.Allowed != (tc.want == ""):
				t.Fatalf("allowed = %t: %v", answer.Allowed, answer.Result)
			case tc.want != "" && !strings.Contains(answer.Result.Message, tc.want):
				t.Errorf("the message lacks %q: %s", tc.want, answer.Result.Message)
			case !strings.Contains(strings.Join(answer.Warnings, ""), tc.warned):
				t.Errorf("warnings %q, want %q", answer.Warnings, tc.warned)
			case (len(answer.Patches) > 0) != tc.patches:
				t.Errorf("patches %v", answer.Patches)
			}
		})
	}
}

// What marking warns of is shown beside what the review warns of.
func TestMarkingHandlerWarns(t *testing.T) {
	const held = `{kind: ARecord, metadata: {name: a, namespace: dns, labels: {zone: %s}%s}, spec: {name: a, ipv4Addresses: [192.0.2.1]}}`
	old := strings.NewReplacer("%s}%s}", "example}, finalizers: [bindy.firestoned.io/finalizer], annotations: {bindy.firestoned.io/zone: example.com}}").Replace(held)
	object := strings.NewReplacer("%s}%s}", "other}}").Replace(held)
	answer := NewMarkingHandler(NewHandler(example(t)), nil).Handle(quick(t), requests.FromYAML(t, object, old))
	if warnings := strings.Join(answer.Warnings, "\n"); !answer.Allowed || len(answer.Warnings) != 2 ||
		!strings.Contains(warnings, "stays until the data has left DNS") || !strings.Contains(warnings, "no DNSZone in namespace dns selects this ARecord") {
		t.Errorf("allowed = %t, warnings %q", answer.Allowed, answer.Warnings)
	}
}

// What trusted users write is reviewed, and its marks are final.
func TestMarkingHandlerReviewsTrustedUsers(t *testing.T) {
	req := requests.FromYAML(t, record("ARecord", "a", `{name: a, ipv4Addresses: [x]}`), "")
	req.UserInfo.Username = "controller"
	handler := NewMarkingHandler(NewHandler(example(t)), map[string]bool{"controller": true})
	if answer := handler.Handle(quick(t), req); answer.Allowed {
		t.Error("a bad record is accepted")
	}
	req = requests.FromYAML(t, record("ARecord", "a", `{name: a, ipv4Addresses: [192.0.2.1]}`), "")
	req.UserInfo.Username = "controller"
	if answer := handler.Handle(quick(t), req); !answer.Allowed || len(answer.Patches) > 0 {
		t.Errorf("allowed = %t, patches %v", answer.Allowed, answer.Patches)
	}
}

// What the definition of a kind refuses is refused in its words, although the review comes first.
func TestMarkingHandlerRefusesInTheWordsOfTheDefinition(t *testing.T) {
	for object, want := range map[string]string{
		`{apiVersion: bindy.firestoned.io/v1beta1, kind: ARecord, metadata: {name: a, namespace: dns}, spec: {name: a}}`:                                               "spec.ipv4Addresses is required: list at least one IPv4 address",
		`{apiVersion: bindy.firestoned.io/v1beta1, kind: ARecord, metadata: {name: a, namespace: dns}, spec: {name: a, ipv4Addresses: ["2001:db8::1"]}}`:               "use an AAAARecord",
		`{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, metadata: {name: e, namespace: dns}, spec: {endpoints: [{dnsName: a.test, recordTTL: "soon"}]}}`: "spec.endpoints[0].recordTTL",
	} {
		answer := NewMarkingHandler(NewHandler(example(t)), nil).Handle(quick(t), requests.FromYAML(t, object, ""))
		if answer.Allowed || !strings.Contains(answer.Result.Message, want) {
			t.Errorf("%s: allowed = %t, %v; want %q", object, answer.Allowed, answer.Result, want)
		}
	}
}

package review

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// TestReviewSigner: a signed zone stays with the servers that have its keys, until it is known that no resolver has a DS record.
func TestReviewSigner(t *testing.T) {
	server := func(cluster, name, created string) *v1beta1.Bind9Instance {
		i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{"server": name}}}
		if err := i.CreationTimestamp.UnmarshalQueryParameter(created); err != nil {
			t.Fatal(err)
		}
		i.Spec.ClusterRef, i.Spec.Role = cluster, v1beta1.RolePrimary
		return i
	}
	objects := newStaticObjects(
		&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "a"}}, server("a", "a-primary-0", "2026-01-02T00:00:00Z"),
		server("a", "a-primary-1", "2026-01-04T00:00:00Z"),
		&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "b", UID: "b"}}, server("b", "b-primary-0", "2026-01-03T00:00:00Z"),
		server("", "older", "2026-01-01T00:00:00Z"), server("", "younger", "2026-01-05T00:00:00Z"),
	)
	zone := func(cluster string, adjust ...func(*v1beta1.DNSZone)) *v1beta1.DNSZone {
		z := sharedZone(t, "team", "example.test", cluster, "2026-01-01T00:00:00Z")
		z.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1.example.test.", AdminEmail: "a@example.test"}
		z.Status.DNSSEC = &v1beta1.DNSSECStatus{Policy: "default", Signed: true}
		for _, f := range adjust {
			f(z)
		}
		return z
	}
	with := func(instance string) func(*v1beta1.DNSZone) {
		return func(z *v1beta1.DNSZone) {
			z.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"server": instance}}}}
		}
	}
	absent := func(since time.Duration) func(*v1beta1.DNSZone) {
		return func(z *v1beta1.DNSZone) {
			z.Status.DNSSEC.Delegation = &v1beta1.SecureDelegation{TTL: 3600, AbsentSince: new(metav1.NewTime(time.Now().Add(-since)))}
		}
	}
	// theirs is signed by a server of a provider, after so much was decided.
	theirs := func(d *v1beta1.SecureDelegation, providers ...string) func(*v1beta1.DNSZone) {
		return func(z *v1beta1.DNSZone) {
			z.Status.DNSSEC = &v1beta1.DNSSECStatus{Signed: true, Delegation: d}
			for _, name := range providers {
				z.Spec.ProviderRefs = append(z.Spec.ProviderRefs, v1beta1.ProviderReference{Name: name})
			}
		}
	}
	published := &v1beta1.SecureDelegation{TTL: 3600}
	forgotten := &v1beta1.SecureDelegation{TTL: 3600, AbsentSince: new(metav1.NewTime(time.Now().Add(-2 * time.Hour)))}
	unsigned := func(z *v1beta1.DNSZone) { z.Status.DNSSEC = nil }
	ends := func(z *v1beta1.DNSZone) { z.Spec.DNSSECPolicy = "insecure" }
	for name, tc := range map[string]struct {
		old, zone *v1beta1.DNSZone
		refused   string
	}{
		"others sign, as before":                      {zone("", theirs(published, "corp")), zone("", theirs(published, "corp")), ""},
		"others sign, and more servers":               {zone("", theirs(published, "corp")), zone("", theirs(published, "corp", "isp")), ""},
		"others sign, and other servers":              {zone("", theirs(published, "corp")), zone("", theirs(published, "isp")), "spec: "},
		"others sign, and a cluster":                  {zone("", theirs(published, "corp")), zone("a", theirs(published, "corp")), "spec.clusterRef"},
		"others sign, without DS records":             {zone("", theirs(nil, "corp")), zone("a", theirs(nil)), ""},
		"others sign, and no resolver has DS records": {zone("", theirs(forgotten, "corp")), zone("a", theirs(forgotten)), ""},
		"stays":                                           {zone("a"), zone("a"), ""},
		"another cluster":                                 {zone("a"), zone("b"), "spec.clusterRef"},
		"another cluster, as it ends":                     {zone("a"), zone("b", ends), "spec.clusterRef"},
		"a cluster that is not there":                     {zone("a"), zone("c"), "spec.clusterRef"},
		"no servers":                                      {zone("a"), zone(""), "spec.clusterRef"},
		"an older instance, which signs":                  {zone("a"), zone("a", with("older")), "spec: "},
		"a younger instance, which does not sign":         {zone("a"), zone("a", with("younger")), ""},
		"not signed":                                      {zone("a", unsigned), zone("b", unsigned), ""},
		"no resolver has a DS record":                     {zone("a", absent(2*time.Hour)), zone("b"), ""},
		"resolvers may have a DS record":                  {zone("a", absent(time.Hour)), zone("b"), "spec.clusterRef"},
		"says that no resolver has one, which counts not": {zone("a"), zone("b", absent(2*time.Hour)), "spec.clusterRef"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := zoneReviewer{objects}.review(quick(t), tc.zone, tc.old)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, p := range v.Problems {
				got += p.Error()
			}
			if !strings.Contains(got, tc.refused) || (got == "") != (tc.refused == "") || tc.refused != "" && !strings.Contains(got, "Set dnssecPolicy: insecure") {
				t.Errorf("%q, want %q", got, tc.refused)
			}
		})
	}
}

// A namespace has a hundred zones of one name at most: all that has to do with a name looks at all of them.
func TestNamesakes(t *testing.T) {
	zone := func(namespace, name, zoneName string) string {
		return fmt.Sprintf(`{kind: DNSZone, metadata: {name: %s, namespace: %s, uid: %[1]s}, spec: {zoneName: %[3]s, clusterRef: %[1]s, soaRecord: {primaryNs: ns1.example.net., adminEmail: a@example.net}}}`, name, namespace, zoneName)
	}
	const refusal = "namespace full has 100 DNSZones of this name already"
	for name, c := range map[string]struct {
		object, old string
		stored      int
		want        string
	}{
		"one more":          {zone("full", "new", "same.example"), "", 99, ""},
		"one too many":      {zone("full", "new", "same.example"), "", 100, refusal},
		"spelled otherwise": {zone("full", "new", "Same.example."), "", 100, refusal},
		"another namespace": {zone("empty", "new", "same.example"), "", 100, ""},
		"another name":      {zone("full", "new", "other.example"), "", 100, ""},
		"one of them":       {zone("full", "z5", "same.example"), zone("full", "z5", "same.example"), 120, ""},
		"a renamed one":     {zone("full", "new", "same.example"), zone("full", "new", "other.example"), 100, refusal},
	} {
		t.Run(name, func(t *testing.T) {
			var stored []client.Object
			for n := range c.stored {
				z := sharedZone(t, "full", "same.example", "", "2026-01-01T00:00:00Z")
				z.Name, z.Spec.ClusterRef, z.Spec.RecordsFrom = fmt.Sprint("z", n), fmt.Sprint("z", n), nil
				stored = append(stored, z)
			}
			answer := NewHandler(newStaticObjects(stored...)).Handle(quick(t), request(t, c.object, c.old))
			if answer.Allowed != (c.want == "") || c.want != "" && !strings.Contains(answer.Result.Message, c.want) {
				t.Errorf("allowed: %t, %v, want %q", answer.Allowed, answer.Result, c.want)
			}
		})
	}
}

// A namespace has sixteen zones that select records by one label, or by none, at most: each record would be told to all of them.
func TestZonesThatSelectAlike(t *testing.T) {
	zone := func(namespace, name, recordsFrom string) string {
		return fmt.Sprintf(`{kind: DNSZone, metadata: {name: %s, namespace: %s, uid: %[1]s}, spec: {zoneName: %[1]s.example, recordsFrom: [%[3]s], soaRecord: {primaryNs: ns1.example.net., adminEmail: a@example.net}}}`, name, namespace, recordsFrom)
	}
	const main, refusal = `{selector: {matchLabels: {zone: main}}}`, "namespace full may have 16 DNSZones that select records by the same label, or by none, has 16, and this adds 1: "
	exclusions := func(n int) string {
		return "matchExpressions: [" + strings.Repeat("{key: a, operator: NotIn, values: ["+strings.Repeat("b, ", 50)+"]},", n) + "]"
	}
	for name, c := range map[string]struct {
		object, old string
		stored      int
		want        string
	}{
		"one more":                 {zone("full", "new", main), "", 15, ""},
		"one too many":             {zone("full", "new", main), "", 16, refusal},
		"with an exclusion":        {zone("full", "new", `{selector: {matchLabels: {zone: main}, matchExpressions: [{key: a, operator: NotIn, values: [b]}]}}`), "", 16, refusal},
		"by its own label too":     {zone("full", "new", `{selector: {matchLabels: {zone: main, own: a}}}`), "", 16, ""},
		"many exclusions":          {zone("full", "new", "{selector: {"+exclusions(5)+"}}"), "", 16, ""},
		"too many exclusions":      {zone("full", "new", "{selector: {"+exclusions(6)+"}}"), "", 0, "has 0, and this adds 20, as its selectors have many labels and values: "},
		"too many in several":      {zone("full", "new", strings.Repeat("{selector: {"+exclusions(2)+"}},", 3)), "", 0, "has 0, and this adds 20, "},
		"too many of namespaces":   {zone("full", "new", "{selector: {}, namespaceSelector: {"+exclusions(6)+"}}"), "", 0, "has 0, and this adds 20, "},
		"exclusions beside others": {zone("full", "new", "{selector: {matchLabels: {zone: main}, "+exclusions(1)+"}}"), "", 12, ""},
		"one zone more":            {zone("full", "new", "{selector: {matchLabels: {zone: main}, "+exclusions(1)+"}}"), "", 13, "has 13, and this adds 4, "},
		"one of several":           {zone("full", "new", `{selector: {matchLabels: {own: a}}}, `+main), "", 16, refusal},
		"everything":               {zone("full", "new", `{selector: {}}`), "", 16, ""},
		"another namespace":        {zone("empty", "new", main), "", 16, ""},
		"nothing":                  {zone("full", "new", ""), "", 16, ""},
		"one of them":              {strings.Replace(zone("full", "z5", main), "spec: {", "spec: {ttl: 5, ", 1), zone("full", "z5", main), 20, ""},
		"a changed one":            {zone("full", "new", main), zone("full", "new", ""), 16, refusal},
	} {
		t.Run(name, func(t *testing.T) {
			var stored []client.Object
			for n := range c.stored {
				z := sharedZone(t, "full", fmt.Sprintf("z%d.example", n), "", "2026-01-01T00:00:00Z")
				z.Name = fmt.Sprint("z", n)
				stored = append(stored, z)
			}
			answer := NewHandler(newStaticObjects(stored...)).Handle(quick(t), request(t, c.object, c.old))
			if answer.Allowed != (c.want == "") || c.want != "" && !strings.Contains(answer.Result.Message, c.want) {
				t.Errorf("allowed: %t, %v, want %q", answer.Allowed, answer.Result, c.want)
			}
		})
	}
}

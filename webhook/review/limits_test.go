package review

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/kube/intern"
)

// counted has another number of objects stored than the caches hold.
type counted struct {
	*staticObjects
	stored int
}

func (c counted) countLive(context.Context, string, string) (int, bool) {
	return c.stored, c.stored >= 0
}

// A namespace gets as many zones, providers, instances and records as a ZoneGrant says, or else a flag, whatever others have; changes of those
// that it has go on.
func TestLimits(t *testing.T) {
	zone := func(namespace, name string) string {
		return fmt.Sprintf(`{kind: DNSZone, metadata: {name: %s, namespace: %s, uid: %[1]s}, spec: {zoneName: %[1]s.example, soaRecord: {primaryNs: ns1.example.net., adminEmail: a@example.net}}}`, name, namespace)
	}
	provider := func(namespace string) string {
		return fmt.Sprintf(`{kind: DNSProvider, metadata: {name: new, namespace: %s}, spec: {rfc2136: {primaries: [{address: 192.0.2.1}]}}}`, namespace)
	}
	instance := func(namespace, cluster string) string {
		return fmt.Sprintf(`{kind: Bind9Instance, metadata: {name: new, namespace: %s}, spec: {role: primary, clusterRef: %s}}`, namespace, cluster)
	}
	cluster := func(primaries, secondaries int) string {
		return fmt.Sprintf(`{kind: Bind9Cluster, metadata: {name: new, namespace: full}, spec: {primary: {replicas: %d}, secondary: {replicas: %d}}}`, primaries, secondaries)
	}
	const record = `{kind: TXTRecord, metadata: {name: new, namespace: full}, spec: {name: new, text: [a]}}`
	endpoints := func(n int) string {
		return `{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, metadata: {name: e, namespace: full}, spec: {endpoints: [` +
			strings.Repeat(`{dnsName: a.example, recordType: A, targets: [192.0.2.1]},`, n) + `]}}`
	}
	large := func(kib int) string {
		return strings.Replace(record, "[a]", "["+strings.TrimSuffix(strings.Repeat(strings.Repeat("x", 253)+",", 4*kib-1), ",")+"]", 1)
	}
	var labels []string
	for n := range 40 {
		labels = append(labels, fmt.Sprintf("l%d: a", n))
	}
	var all []client.Object
	for _, name := range []string{"a", "b"} {
		all = append(all, sharedZone(t, "full", name+".example", "", "2026-01-01T00:00:00Z"), &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: name, UID: "p"}})
	}
	all = append(all, // Four records.
		&v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: "a"}}, &v1beta1.TXTRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: "b"}},
		&v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: "e"}, Spec: v1alpha1.DNSEndpointSpec{Endpoints: []*v1alpha1.Endpoint{{}, {}}}},
		&v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "a"}})
	three := v1beta1.Bind9ClusterSpec{Primary: &v1beta1.RoleConfig{}, Secondary: &v1beta1.RoleConfig{Replicas: new(int32(2))}}
	all = append(all, // Seven instances: one is made of the three that c asks for, and three are of d, which asks for one.
		&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: "c"}, Spec: three},
		&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: "d"}})
	for name, of := range map[string]string{"c-0": "c", "d-0": "d", "d-1": "d", "d-2": "d", "alone": ""} {
		all = append(all, &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: name}, Spec: v1beta1.Bind9InstanceSpec{ClusterRef: of}})
	}
	grant := func(name, namespace string, l v1beta1.NamespaceLimits) client.Object {
		return &v1beta1.ZoneGrant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ZoneGrantSpec{Suffixes: []string{"elsewhere.example"}, Namespaces: []string{namespace}, Limits: &l}}
	}
	n := func(n int32) *int32 { return &n }
	two := Limits{Zones: 2, Providers: 2, Records: 4}
	for name, c := range map[string]struct {
		object, old string
		limits      Limits
		stored      int
		grants      []client.Object
		want        string
	}{
		"one zone too many":          {zone("full", "c"), "", two, -1, nil, "namespace full may have 2 objects of kind DNSZone by --max-zones of the webhook, has 2, and this adds 1: "},
		"one provider too many":      {provider("full"), "", two, -1, nil, "namespace full may have 2 objects of kind DNSProvider by --max-providers of the webhook, has 2, "},
		"one record too many":        {record, "", two, -1, nil, "namespace full may have 4 records and endpoints of DNSEndpoints by --max-records of the webhook, has 4, and this adds 1: "},
		"endpoints too many":         {strings.Replace(endpoints(3), "name: e,", "name: f,", 1), "", Limits{Records: 6}, -1, nil, "has 4, and this adds 3: "},
		"as many endpoints":          {strings.Replace(endpoints(2), "name: e,", "name: f,", 1), "", Limits{Records: 6}, -1, nil, ""},
		"an endpoint more":           {endpoints(3), endpoints(2), two, -1, nil, "has 4, and this adds 1: "},
		"an endpoint fewer":          {endpoints(1), endpoints(2), Limits{Records: 1}, -1, nil, ""},
		"the caches lag":             {zone("full", "c"), "", two, 1, nil, ""},
		"as many are stored":         {zone("full", "c"), "", two, 2, nil, "--max-zones"},
		"a record of the kind left":  {record, "", two, 0, nil, ""},
		"the record is still stored": {record, "", two, 1, nil, "--max-records"},
		"a zone of another":          {zone("empty", "c"), "", two, -1, nil, ""},
		"a large provider":           {strings.Replace(provider("full"), "name: new,", "name: new, labels: {a: "+strings.Repeat("x", 40<<10)+"},", 1), "", Limits{Providers: 4}, -1, nil, "has 2, and this adds 3, as it is large: "},
		"a provider becomes large":   {strings.Replace(provider("full"), "name: new,", "name: new, labels: {a: "+strings.Repeat("x", 40<<10)+"},", 1), provider("full"), Limits{Providers: 3}, -1, nil, "has 2, and this adds 2, as it is large: "},
		"a provider changes":         {strings.Replace(provider("full"), "192.0.2.1", "192.0.2.2", 1), provider("full"), two, -1, nil, ""},
		"a provider of another":      {provider("empty"), "", two, -1, nil, ""},
		"a change":                   {strings.Replace(zone("full", "a"), "spec: {", "spec: {ttl: 5, ", 1), zone("full", "a"), two, -1, nil, ""},
		"one more is permitted":      {zone("full", "c"), "", Limits{Zones: 3, Providers: 2, Records: 4}, -1, nil, ""},
		"there is no limit":          {zone("full", "c"), "", Limits{}, -1, nil, ""},
		"the limit is of the other":  {zone("full", "c"), "", Limits{Providers: 2, Records: 1}, -1, nil, ""},

		"a large record":             {large(3), "", Limits{Records: 6}, -1, nil, "has 4, and this adds 3, as it is large: "},
		"a large record fits":        {large(3), "", Limits{Records: 7}, -1, nil, ""},
		"a record becomes large":     {large(9), large(2), Limits{Records: 10}, -1, nil, "has 4, and this adds 7, as it is large: "},
		"a record becomes larger":    {large(9), large(2), Limits{Records: 11}, -1, nil, ""},
		"a record becomes less":      {large(2), large(9), Limits{Records: 1}, -1, nil, ""},
		"large labels":               {strings.Replace(record, "name: new,", "name: new, labels: {a: "+strings.Repeat("x", 3000)+"},", 1), "", Limits{Records: 6}, -1, nil, "this adds 3, as it is large"},
		"a deep name":                {strings.Replace(record, "name: new, text", "name: "+strings.Repeat("a.", 35)+"a, text", 1), "", Limits{Records: 6}, -1, nil, "this adds 6, as it is large: "},
		"endpoints of deep names":    {strings.Replace(endpoints(2), "a.example", strings.Repeat("a.", 100)+"example", 1), endpoints(2), Limits{Records: 20}, -1, nil, "this adds 17: "},
		"many labels":                {strings.Replace(record, "name: new,", "name: new, labels: {"+strings.Join(labels, ", ")+"},", 1), "", Limits{Records: 6}, -1, nil, "this adds 3, as it is large"},
		"endpoints of reverse names": {strings.ReplaceAll(endpoints(4), "a.example", "1.0.0.10.in-addr.arpa"), endpoints(3), Limits{Records: 5}, -1, nil, ""},
		"large endpoints":            {strings.Replace(endpoints(1), "192.0.2.1", strings.Repeat("x", 5000), 1), endpoints(1), Limits{Records: 6}, -1, nil, "this adds 4: "},
		"a large zone":               {strings.Replace(zone("full", "c"), "spec: {", "spec: {clusterRef: "+strings.Repeat("x", 9000)+", ", 1), "", Limits{Zones: 3}, -1, nil, "this adds 2, as it is large: "},
		"caches that lag":            {large(3), "", Limits{Records: 6}, 0, nil, ""},

		"one instance too many":       {instance("full", "c"), "", Limits{Instances: 7}, -1, nil, "namespace full may have 7 Bind9Instances, with those that Bind9Clusters ask for, by --max-instances of the webhook, has 7, and this adds 1: "},
		"one instance more":           {instance("full", "c"), "", Limits{Instances: 8}, -1, nil, ""},
		"an instance of another":      {instance("empty", "c"), "", Limits{Instances: 1}, -1, nil, ""},
		"instances are gone":          {instance("full", "c"), "", Limits{Instances: 7}, 4, nil, ""},
		"a cluster too large":         {cluster(2, 3), "", Limits{Instances: 11}, -1, nil, "has 7, and this adds 5: "},
		"a cluster":                   {cluster(2, 3), "", Limits{Instances: 12}, -1, nil, ""},
		"a cluster without instances": {cluster(0, 0), "", Limits{Instances: 7}, -1, nil, "has 7, and this adds 1: "},
		"a cluster grows":             {cluster(2, 3), cluster(2, 1), Limits{Instances: 8}, -1, nil, "has 7, and this adds 2: "},
		"a cluster shrinks":           {cluster(1, 1), cluster(2, 1), Limits{Instances: 1}, -1, nil, ""},
		"a large instance":            {strings.Replace(instance("full", "c"), "new,", "new, labels: {a: "+strings.Repeat("x", 40<<10)+"},", 1), "", Limits{Instances: 9}, -1, nil, "this adds 3, as it is large: "},
		"a large cluster":             {strings.Replace(cluster(1, 1), "new,", "new, labels: {a: "+strings.Repeat("x", 20<<10)+"},", 1), "", Limits{Instances: 10}, -1, nil, "this adds 4: "},

		"a grant raises":           {zone("full", "c"), "", two, -1, []client.Object{grant("g", "full", v1beta1.NamespaceLimits{Zones: n(3)})}, ""},
		"a grant lowers":           {record, "", Limits{Records: 100}, -1, []client.Object{grant("g", "full", v1beta1.NamespaceLimits{Records: n(3)})}, "may have 3 records and endpoints of DNSEndpoints by spec.limits of ZoneGrant g, has 4, "},
		"a grant limits":           {provider("full"), "", Limits{}, -1, []client.Object{grant("g", "*", v1beta1.NamespaceLimits{Providers: n(1)})}, "may have 1 objects of kind DNSProvider by spec.limits of ZoneGrant g, has 2, "},
		"a grant of another":       {zone("full", "c"), "", two, -1, []client.Object{grant("g", "empty", v1beta1.NamespaceLimits{Zones: n(3)})}, "--max-zones"},
		"a grant of another limit": {zone("full", "c"), "", two, -1, []client.Object{grant("g", "full", v1beta1.NamespaceLimits{Records: n(3)})}, "--max-zones"},
		"a grant that names it goes first": {zone("full", "c"), "", two, -1,
			[]client.Object{grant("f", "*", v1beta1.NamespaceLimits{Zones: n(9)}), grant("g", "full", v1beta1.NamespaceLimits{Zones: n(1)}), grant("h", "*", v1beta1.NamespaceLimits{Zones: n(9)})},
			"may have 1 objects of kind DNSZone by spec.limits of ZoneGrant g"},
		"the highest of several": {zone("full", "c"), "", two, -1,
			[]client.Object{grant("f", "full", v1beta1.NamespaceLimits{Zones: n(1)}), grant("h", "full", v1beta1.NamespaceLimits{Zones: n(2)}), grant("g", "full", v1beta1.NamespaceLimits{Zones: n(2)})},
			"may have 2 objects of kind DNSZone by spec.limits of ZoneGrant g"},
	} {
		t.Run(name, func(t *testing.T) {
			handler := NewHandler(counted{newStaticObjects(append(c.grants, all...)...), c.stored})
			handler.Limits = c.limits
			answer := handler.Handle(quick(t), request(t, c.object, c.old))
			if answer.Allowed != (c.want == "") || c.want != "" && !strings.Contains(answer.Result.Message, c.want) {
				t.Errorf("allowed: %t, %v, want %q", answer.Allowed, answer.Result, c.want)
			}
		})
	}
}

// The caches count what the informers list, and find the grants with limits.
func TestCachedCounts(t *testing.T) {
	limits := &v1beta1.NamespaceLimits{Records: new(int32)}
	o := filled(t, map[string][]client.Object{
		"arecords":   {&v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}}, &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "x"}}},
		"txtrecords": {&v1beta1.TXTRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}}},
		"dnszones":   {&v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x", Labels: map[string]string{"large": strings.Repeat("x", 10<<10)}}}},
		"dnsendpoints": {&v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}, Spec: v1alpha1.DNSEndpointSpec{
			Endpoints: []*v1alpha1.Endpoint{{DNSName: "a.example"}, {DNSName: "b.example"}, {DNSName: "c.example"}}}}},
		"zonegrants": {
			&v1beta1.ZoneGrant{ObjectMeta: metav1.ObjectMeta{Name: "named"}, Spec: v1beta1.ZoneGrantSpec{Namespaces: []string{"a", "b"}, Limits: limits}},
			&v1beta1.ZoneGrant{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1beta1.ZoneGrantSpec{Namespaces: []string{"*"}, Limits: limits}},
			&v1beta1.ZoneGrant{ObjectMeta: metav1.ObjectMeta{Name: "without"}, Spec: v1beta1.ZoneGrantSpec{Namespaces: []string{"a"}}},
		},
	})
	for want, got := range map[int]int{
		5: o.countObjects("a", "").weight, 1: o.countObjects("b", "").weight, 3: o.countObjects("a", endpointKind).weight, 0: o.countObjects("c", "").weight,
		2: o.countObjects("a", zoneKind).weight, // It is large.
	} {
		if got != want {
			t.Errorf("%d records are counted, want %d", got, want)
		}
	}
	for namespace, want := range map[string]int{"a": 2, "b": 2, "c": 1} {
		if got, err := o.limitsFor(namespace); err != nil || len(got) != want {
			t.Errorf("%s: %d grants have limits, want %d: %v", namespace, len(got), want, err)
		}
	}
}

// An object counts as much in a request, however that spells it, as in a cache.
func TestWeightsAreTheSame(t *testing.T) {
	text := func(n int, of string) string { return strings.Repeat(of, n) }
	for name, c := range map[string]struct {
		kind, raw string
		want      int
	}{
		"an empty DNSEndpoint":    {endpointKind, `{"metadata": {"name": "e"}, "spec": {}}`, 1},
		"no spec":                 {endpointKind, `{"metadata": {"name": "e"}}`, 1},
		"endpoints":               {endpointKind, `{"metadata": {"name": "e"}, "spec": {"endpoints": [{"dnsName": "a.example"}, {}]}}`, 2},
		"blanks":                  {"ARecord", `{"metadata": {"name": "a"}, "spec": {"name": "a",` + text(3000, " ") + `"ipv4Address": "192.0.2.1"}}`, 1},
		"a field that is unknown": {"ARecord", `{"metadata": {"name": "a"}, "spec": {"name": "a", "else": "` + text(3000, "x") + `"}}`, 1},
		"escapes":                 {"TXTRecord", `{"metadata": {"name": "a"}, "spec": {"name": "a", "text": ["` + text(300, "<") + `"]}}`, 2},
		"a large text":            {"TXTRecord", `{"metadata": {"name": "a"}, "spec": {"name": "a", "text": ["` + text(2000, "x") + `"]}}`, 2},
		"labels":                  {"DNSRecord", `{"metadata": {"name": "a", "labels": {"a": "` + text(3000, "x") + `"}}, "spec": {}}`, 3},
		"labels of a zone":        {zoneKind, `{"metadata": {"name": "a", "labels": {"a": "` + text(9000, "x") + `"}}, "spec": {"zoneName": "a.example"}}`, 2},
		"other annotations":       {zoneKind, `{"metadata": {"name": "a", "annotations": {"a": "` + text(9000, "x") + `"}}, "spec": {"zoneName": "a.example"}}`, 1},
		"former names":            {endpointKind, `{"metadata": {"name": "a", "annotations": {"bindy.firestoned.io/former-names": "` + text(300, "a.example.org/A,") + `"}}, "spec": {}}`, 5},
		"a host name":             {"MXRecord", `{"metadata": {"name": "a"}, "spec": {"name": "a.b.c.d.e", "priority": 10, "mailServer": "mail.a.b.c.example.org."}}`, 1},
		"a deep host name":        {"MXRecord", `{"metadata": {"name": "a"}, "spec": {"name": "a", "priority": 10, "mailServer": "` + text(100, "a.") + `"}}`, 19},
		"many addresses":          {"TXTRecord", `{"metadata": {"name": "a"}, "spec": {"name": "a", "text": ["v=spf1 ip4:192.0.2.1 ip4:192.0.2.2 ip4:192.0.2.3 -all"]}}`, 1},
		"values":                  {"DNSRecord", `{"metadata": {"name": "a"}, "spec": {"name": "a", "type": "AAAA", "data": [` + text(99, `"::1",`) + `"::1"]}}`, 7},
		"values of a selector": {zoneKind, `{"metadata": {"name": "a"}, "spec": {"zoneName": "a.example", "recordsFrom": [{"selector": {"matchExpressions": [
			{"key": "a", "operator": "In", "values": [` + text(299, `"a",`) + `"a"]}]}}]}}`, 5},
		"former names of a zone": {zoneKind, `{"metadata": {"name": "a", "annotations": {"bindy.firestoned.io/former-names": "` + text(9000, "x") + `"}}, "spec": {"zoneName": "a.example"}}`, 1},
		"a spec that is no spec": {zoneKind, `{"metadata": {"name": "a"}, "spec": 1}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := emptyOf(c.kind)
			if err := json.Unmarshal([]byte(c.raw), o); err != nil {
				t.Fatal(err)
			}
			stripped, err := StripForCache(o)
			if err != nil {
				t.Fatal(err)
			}
			cached, err := (&intern.Pool{}).Transform(stripped)
			if err != nil {
				t.Fatal(err)
			}
			if _, kind, got := weigh(cached); got != c.want || kind != c.kind {
				t.Errorf("in a cache it is a %s and counts as %d, want a %s and %d", kind, got, c.kind, c.want)
			}
			if got := weightOf(c.kind, []byte(c.raw)); got != c.want {
				t.Errorf("in a request it counts as %d, want %d", got, c.want)
			}
		})
	}
	if got := weightOf(zoneKind, []byte(`{"metadata": 1}`)); got != 0 {
		t.Errorf("what cannot be read counts as %d", got)
	}
}

// After any events the counts are those of the objects that are left, and none are left of none.
func TestCountsFollowEvents(t *testing.T) {
	var c objectCounts
	record := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}}
	large := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x", Labels: map[string]string{"label": strings.Repeat("x", 3000)}}}
	of := func(n int) *v1alpha1.DNSEndpoint {
		return &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, Spec: v1alpha1.DNSEndpointSpec{Endpoints: make([]*v1alpha1.Endpoint, n)}}
	}
	emptied := func(former string) *v1alpha1.DNSEndpoint { // Only its metadata changes.
		return &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Generation: 2, Annotations: map[string]string{v1beta1.FormerNamesAnnotation: former}}}
	}
	for i, step := range []struct {
		event func()
		want  int
	}{
		{func() { c.OnAdd(record, true) }, 1},
		{func() { c.OnUpdate(record, record) }, 1},
		{func() { c.OnUpdate(record, large) }, 3},
		{func() { c.OnUpdate(large, record) }, 1},
		{func() { c.OnAdd(of(2), false) }, 3},
		{func() { c.OnUpdate(of(2), of(5)) }, 6},
		{func() { c.OnUpdate(of(5), of(0)) }, 2},
		{func() { c.OnUpdate(of(0), of(1)) }, 2},
		{func() { c.OnUpdate(of(1), emptied("")) }, 2},
		{func() { c.OnUpdate(emptied(""), emptied(strings.Repeat("x", 3000))) }, 4},
		{func() { c.OnUpdate(emptied(strings.Repeat("x", 3000)), of(1)) }, 2},
		{func() { c.OnDelete(record) }, 1},
		{func() { c.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: of(1)}) }, 0},
	} {
		step.event()
		if got := c.of("a", "").weight; got != step.want {
			t.Errorf("step %d: %d, want %d", i, got, step.want)
		}
	}
	if len(c.kinds) > 0 {
		t.Errorf("counts of nothing: %v", c.kinds)
	}
}

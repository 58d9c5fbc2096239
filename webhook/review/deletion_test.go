package review

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
)

// ending says of one namespace that it is being deleted.
type ending struct {
	Objects
	namespace string
}

func (e ending) terminating(_ context.Context, namespace string) (bool, error) {
	return namespace != "" && namespace == e.namespace, nil
}

// fleet is the example with a second server of another cluster, a zone on both, and a global cluster's server.
func fleet(t *testing.T) Objects {
	t.Helper()
	server := func(namespace, name, cluster string, role v1beta1.ServerRole) *v1beta1.Bind9Instance {
		return &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"cluster": cluster}},
			Spec: v1beta1.Bind9InstanceSpec{ClusterRef: cluster, Role: role}}
	}
	global := server("servers", "g-primary-0", "g", "primary")
	global.OwnerReferences = []metav1.OwnerReference{{APIVersion: "bindy.firestoned.io/v1beta1", Kind: "Bind9GlobalCluster", Name: "g", UID: "g1"}}
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "g", UID: "g1"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "servers"}}
	leaving := server("dns", "e-primary-0", "e", "primary")
	leaving.DeletionTimestamp = &metav1.Time{}
	all := []client.Object{
		server("dns", "c-primary-0", "c", "primary"), server("dns", "d-primary-0", "d", "Primary"), server("dns", "c-secondary-0", "c", "secondary"), global, cluster,
		leaving, server("dns", "e-primary-1", "e", "primary"),
	}
	for _, text := range []string{
		zone("main", `zoneName: main.test, clusterRef: c, recordsFrom: [{selector: {matchLabels: {zone: main}}}]`),
		zone("both", `zoneName: both.test, clusterRef: d, bind9InstancesFrom: [{selector: {matchLabels: {cluster: c}}}]`),
		zone("global", `zoneName: global.test, clusterProviderRef: g`),
		zone("empty", `zoneName: empty.test, clusterRef: e`),
		zone("external", `zoneName: external.test`),
	} {
		all = append(all, zoneOf(t, text))
	}
	left := zoneOf(t, zone("left", `zoneName: left.test, clusterRef: f`))
	left.DeletionTimestamp = &metav1.Time{}
	all = append(all, left, server("dns", "f-primary-0", "f", "primary"))
	all = append(all, recordOf(t, strings.Replace(www, "zone: example", "zone: main", 1)),
		recordOf(t, strings.Replace(blog, `zone: example`, `zone: main`, 1)))
	all = append(all, exampleEndpoint("shop.external.test"))
	return newStaticObjects(all...)
}

// deletionOf is a request to delete an object that has been at work for a while.
func deletionOf(t *testing.T, object string) admission.Request {
	t.Helper()
	seen := "{status: {observedGeneration: 1}, "
	if strings.Contains(object, "kind: DNSZone") && !strings.Contains(object, "finalizers:") {
		object = strings.Replace(object, "metadata: {", "metadata: {finalizers: [bindy.firestoned.io/finalizer], ", 1)
	}
	if strings.HasPrefix(object, "{kind: Bind9") || strings.HasPrefix(object, "{kind: ClusterBind9") {
		object = seen + object[1:]
	}
	req := request(t, object, "")
	req.Operation, req.OldObject, req.Object.Raw = admissionv1.Delete, req.Object, nil
	return req
}

func TestDeletions(t *testing.T) {
	instance := func(name, cluster, role string) string {
		return "{kind: Bind9Instance, metadata: {name: " + name + ", namespace: dns, labels: {cluster: " + cluster + "}}, spec: {clusterRef: " + cluster + ", role: " + role + "}}"
	}
	main := zone("main", `zoneName: main.test, clusterRef: c, recordsFrom: [{selector: {matchLabels: {zone: main}}}]`)
	annotated := func(object, value string) string {
		return strings.Replace(object, "namespace: dns", `namespace: dns, annotations: {bindy.firestoned.io/allow-deletion: "`+value+`"}`, 1)
	}
	tests := map[string]struct {
		object string
		ending string // namespace
		want   []string
	}{
		"zone with records":              {object: main, want: []string{"zone main.test still has records, such as", "dns/", "kubectl annotate", "-n dns main bindy.firestoned.io/allow-deletion=true"}},
		"zone with records, allowed":     {object: annotated(main, "true")},
		"zone with records, not allowed": {object: annotated(main, "false"), want: []string{"still has records"}},
		"zone with its namespace":        {object: main, ending: "dns"},
		"zone while another namespace":   {object: main, ending: "other", want: []string{"still has records"}},
		"zone deleted already":           {object: strings.Replace(main, "namespace: dns", `namespace: dns, deletionTimestamp: "2026-01-01T00:00:00Z"`, 1)},
		"zone without records":           {object: zone("empty", `zoneName: empty.test, clusterRef: e`)},
		"zone with endpoints":            {object: zone("external", `zoneName: external.test`), want: []string{"zone external.test still has data of a DNSEndpoint, shop.external.test"}},
		"cluster with zones":             {object: "{kind: Bind9Cluster, metadata: {name: d, namespace: dns}}", want: []string{"Bind9Cluster d still serves zones, such as both.test of DNSZone dns/both"}},
		"cluster with zones, allowed":    {object: annotated("{kind: Bind9Cluster, metadata: {name: d, namespace: dns}}", "true")},
		"cluster of another namespace":   {object: "{kind: Bind9Cluster, metadata: {name: d, namespace: other}}"},
		"global cluster with zones":      {object: "{kind: Bind9GlobalCluster, metadata: {name: g, uid: g1}}", want: []string{"Bind9GlobalCluster g still serves zones, such as global.test", "annotate", " g bindy"}},
		"global cluster without zones":   {object: "{kind: ClusterBind9Provider, metadata: {name: g, uid: g2}}"},
		"cluster whose zone leaves":      {object: "{kind: Bind9Cluster, metadata: {name: f, namespace: dns}}"},
		"primary whose zone leaves":      {object: instance("f-primary-0", "f", "primary")},
		"last primary":                   {object: instance("c-primary-0", "c", "primary"), want: []string{"instance c-primary-0 is the last primary of zones, such as main.test of DNSZone dns/main"}},
		"last primary, allowed":          {object: annotated(instance("c-primary-0", "c", "primary"), "true")},
		"one of two primaries":           {object: instance("d-primary-0", "d", "Primary")},
		"secondary":                      {object: instance("c-secondary-0", "c", "secondary")},
		"last primary that stays":        {object: instance("e-primary-1", "e", "PRIMARY"), want: []string{"last primary"}},
		"record":                         {object: www},
		"endpoint":                       {object: endpoint(`{dnsName: a.b, recordType: A, targets: [192.0.2.1]}`)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			answer := NewHandler(ending{fleet(t), tc.ending}).Handle(quick(t), deletionOf(t, tc.object))
			if answer.Allowed != (len(tc.want) == 0) {
				t.Fatalf("allowed = %v: %v", answer.Allowed, answer.Result)
			}
			for _, word := range tc.want {
				if !strings.Contains(answer.Result.Message, word) {
					t.Errorf("the message lacks %q: %s", word, answer.Result.Message)
				}
			}
		})
	}
}

// A refusal names no DNSZone of another namespace, and of what it may name always the same one: deletions can be tried in vain,
// and reviews of them forged, any number of times.
func TestDeletionsNameNothingOfOthers(t *testing.T) {
	server := func(namespace, name, cluster string) *v1beta1.Bind9Instance {
		return &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "pool"},
			Annotations: map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "*"}}, Spec: v1beta1.Bind9InstanceSpec{ClusterRef: cluster, Role: "primary"}}
	}
	global := server("servers", "g-primary-0", "g")
	global.OwnerReferences = []metav1.OwnerReference{{APIVersion: "bindy.firestoned.io/v1beta1", Kind: "Bind9GlobalCluster", Name: "g", UID: "g1"}}
	all := []client.Object{
		global, &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "g", UID: "g1"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "servers"}},
		server("guests", "c-primary-0", "c"), server("mixed", "c-primary-0", "c"),
	}
	add := func(namespace, name, zoneName, instances string) {
		z := zoneOf(t, zone(name, "zoneName: "+zoneName))
		z.Namespace, z.UID, z.Annotations = namespace, types.UID(name), map[string]string{v1beta1.AllowInstanceNamespacesAnnotation: instances}
		z.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "pool"}}}}
		all = append(all, z)
	}
	for _, name := range []string{"secret-1", "secret-2", "secret-3"} {
		add("victim", name, name+".victim.test", "servers, guests")
	}
	add("victim", "secret-0", "secret-0.victim.test", "guests")
	add("another", "secret-4", "secret-4.test", "mixed")
	add("mixed", "own", "own.mixed.test", "mixed")
	for name, tc := range map[string]struct{ object, want string }{
		"cluster":            {"{kind: Bind9Cluster, metadata: {name: c, namespace: guests}}", "still serves zones, such as one of another namespace: delete records first"},
		"instance":           {"{kind: Bind9Instance, metadata: {name: c-primary-0, namespace: guests, labels: {app: pool}, annotations: {bindy.firestoned.io/allow-zone-namespaces: '*'}}, spec: {clusterRef: c, role: primary}}", "is the last primary of zones, such as one of another namespace: delete records first"},
		"one of its own":     {"{kind: Bind9Cluster, metadata: {name: c, namespace: mixed}}", "such as own.mixed.test of DNSZone mixed/own: delete records first"},
		"for administrators": {"{kind: Bind9GlobalCluster, metadata: {name: g, uid: g1}}", "such as secret-1.victim.test: delete records first"},
	} {
		for range 10 {
			got := NewHandler(newStaticObjects(all...)).Handle(quick(t), deletionOf(t, tc.object))
			if got.Allowed || !strings.Contains(got.Result.Message, tc.want) {
				t.Errorf("%s: allowed = %t, %v, want %q", name, got.Allowed, got.Result, tc.want)
			}
		}
	}
}

// catchingUp are caches that lag behind the deletion of all that they hold until somebody asks what is stored.
type catchingUp struct {
	lagging
	current *bool
}

func (c catchingUp) hasChanged(ctx context.Context, o client.Object) bool {
	changed := c.lagging.hasChanged(ctx, o)
	*c.current = changed
	return changed
}

func (c catchingUp) zoneCache() *membership.Cache {
	if *c.current {
		return membership.NewCache()
	}
	return c.lagging.zoneCache()
}

func (c catchingUp) recordsUnder(ctx context.Context, kind v1beta1.RecordKind, namespace, key string) ([]v1beta1.Record, error) {
	if *c.current {
		return nil, nil
	}
	return c.lagging.recordsUnder(ctx, kind, namespace, key)
}

// One command deletes a zone's records and the zone: what the caches still hold of them is no reason to refuse it.
func TestDeletionsLookAtWhatIsStored(t *testing.T) {
	const main = `zoneName: main.test, clusterRef: c, recordsFrom: [{selector: {matchLabels: {zone: main}}}]`
	record := recordOf(t, strings.Replace(www, "zone: example", "zone: main", 1))
	leaving := recordOf(t, strings.Replace(www, "zone: example", "zone: main", 1))
	leaving.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	for name, tc := range map[string]struct {
		stored  []client.Object
		budget  flowcontrol.PassiveRateLimiter
		allowed bool
	}{
		"gone":                {allowed: true},
		"about to go":         {stored: []client.Object{leaving}, allowed: true},
		"there":               {stored: []client.Object{record}},
		"nobody can be asked": {budget: never{}},
	} {
		t.Run(name, func(t *testing.T) {
			now := storedIn(t, answers(tc.stored))
			if tc.budget != nil {
				now.budget = tc.budget
			}
			given := newStaticObjects(zoneOf(t, zone("main", main)), record)
			reviewer := NewHandler(catchingUp{lagging{given, now}, new(bool)})
			reviewer.timeout = time.Minute
			if answer := reviewer.Handle(t.Context(), deletionOf(t, zone("main", main))); answer.Allowed != tc.allowed {
				t.Errorf("allowed = %v, want %v: %v", answer.Allowed, tc.allowed, answer.Result)
			}
		})
	}
}

// Caches that do not catch up end the wait, not the guard.
func TestDeletionsWaitSoLong(t *testing.T) {
	const main = `zoneName: main.test, clusterRef: c, recordsFrom: [{selector: {matchLabels: {zone: main}}}]`
	given := newStaticObjects(zoneOf(t, zone("main", main)), recordOf(t, strings.Replace(www, "zone: example", "zone: main", 1)))
	reviewer := NewHandler(lagging{given, storedIn(t, answers(nil))})
	reviewer.timeout = 50 * time.Millisecond
	if answer := reviewer.Handle(t.Context(), deletionOf(t, zone("main", main))); answer.Allowed {
		t.Error("allowed, although the caches hold a record")
	}
}

// What is deleted is kept at work by its finalizer until its records and zones are deleted, so that one command may delete them in any
// order. It is refused where nothing would wait, with the order and each way out.
func TestDeletionsWait(t *testing.T) {
	const finalizers = "finalizers: [foregroundDeletion, bindy.firestoned.io/finalizer, bindy.firestoned.io/dependents]"
	waiting := func(object string) string {
		return strings.Replace(object, "metadata: {", "metadata: {"+finalizers+", ", 1)
	}
	main := zone("main", `zoneName: main.test, clusterRef: c, recordsFrom: [{selector: {matchLabels: {zone: main}}}]`)
	cluster := "{kind: Bind9Cluster, metadata: {name: d, namespace: dns}}"
	instance := "{kind: Bind9Instance, metadata: {name: c-primary-0, namespace: dns, labels: {cluster: c}}, spec: {clusterRef: c, role: primary}}"
	owned := strings.Replace(instance, "metadata: {", "metadata: {ownerReferences: [{apiVersion: v1, kind: x, name: c, uid: c, controller: true}], ", 1)
	background, foreground := `{"propagationPolicy":"Background"}`, `{"propagationPolicy":"Foreground"}`
	for name, tc := range map[string]struct {
		object, options string
		warning         string
		refusal         []string
	}{
		"zone":                         {object: waiting(main), options: background, warning: "zone main.test still has records, such as"},
		"zone, in the foreground":      {object: waiting(main), options: foreground, warning: "zone main.test still has records, such as"},
		"zone without records":         {object: waiting(zone("empty", `zoneName: empty.test, clusterRef: e`)), options: background},
		"zone of an older release":     {object: main, options: background, refusal: []string{"still has records", "delete records first, then zones, then their servers", "try again when", "allow-deletion=true"}},
		"cluster":                      {object: waiting(cluster), options: background, warning: "Bind9Cluster d still serves zones, such as both.test"},
		"cluster, in the foreground":   {object: waiting(cluster), options: foreground, refusal: []string{"delete records first", "kubectl delete bind9clusters -n dns d --cascade=background", "kubectl annotate bind9clusters -n dns d bindy.firestoned.io/allow-deletion=true"}},
		"cluster, by its finalizer":    {object: waiting(cluster), options: `{}`, refusal: []string{"--cascade=background"}},
		"cluster, orphaning":           {object: waiting(cluster), options: `{"orphanDependents":true}`, warning: "still serves zones"},
		"cluster-scoped":               {object: waiting("{kind: Bind9GlobalCluster, metadata: {name: g, uid: g1}}"), options: background, warning: "still serves zones, such as global.test: it stays at work until these are deleted; to delete it now: kubectl annotate bind9globalclusters g "},
		"last primary":                 {object: waiting(instance), options: background, warning: "is the last primary of zones"},
		"last primary of a cluster":    {object: owned, options: background, refusal: []string{"change the replicas of its cluster"}},
		"zone with strangers' records": {object: waiting(zone("external", `zoneName: external.test`)), options: background, warning: "still has data of a DNSEndpoint, shop.external.test"},
	} {
		t.Run(name, func(t *testing.T) {
			req := deletionOf(t, tc.object)
			req.Resource.Resource = strings.ToLower(req.Kind.Kind) + "s"
			req.Options.Raw = []byte(tc.options)
			objects := fleet(t)
			if name == "zone with strangers' records" {
				objects = foreignEndpoints{objects}
			}
			answer := NewHandler(objects).Handle(quick(t), req)
			if answer.Allowed != (len(tc.refusal) == 0) || (tc.warning != "") != (len(answer.Warnings) == 1) {
				t.Fatalf("allowed = %v: %v, %q", answer.Allowed, answer.Result, answer.Warnings)
			}
			if tc.warning != "" && !strings.Contains(answer.Warnings[0], tc.warning) {
				t.Errorf("the warning lacks %q: %s", tc.warning, answer.Warnings[0])
			}
			for _, word := range tc.refusal {
				if !strings.Contains(answer.Result.Message, word) {
					t.Errorf("the message lacks %q: %s", word, answer.Result.Message)
				}
			}
		})
	}
}

// Some tools ask for each deletion once, whatever the answer. None is refused, in whatever order a folder is deleted, and whether or not the
// controllers have seen it before.
func TestDeletionsInAnyOrder(t *testing.T) {
	const server = `{kind: Bind9Instance, metadata: {name: c-primary-0, namespace: dns, labels: {pool: a}, annotations: {bindy.firestoned.io/allow-zone-namespaces: '*'}}, spec: {clusterRef: c, role: primary}}`
	const text = "{kind: TXTRecord, metadata: {name: text, namespace: dns, labels: {zone: main}}, spec: {name: text, text: [x]}}"
	elsewhere := strings.NewReplacer("namespace: dns", "namespace: elsewhere, annotations: {bindy.firestoned.io/allow-instance-namespaces: dns}").Replace(
		zone("guest", `zoneName: guest.test, bind9InstancesFrom: [{selector: {matchLabels: {pool: a}}}]`))
	alone := `{kind: Bind9Instance, metadata: {name: alone, namespace: dns, labels: {pool: b}}, spec: {role: primary}}`
	folder := []string{
		"{kind: Bind9Cluster, metadata: {name: c, namespace: dns}}", alone, elsewhere,
		zone("main", `zoneName: main.test, bind9InstancesFrom: [{selector: {matchLabels: {pool: b}}}], recordsFrom: [{selector: {matchLabels: {zone: main}}}]`), text,
	}
	finalizers := func(object string) string {
		switch {
		case strings.Contains(object, "kind: TXT"):
			return v1beta1.Finalizer
		case strings.Contains(object, "kind: DNSZone"):
			return v1beta1.Finalizer + ", " + v1beta1.DependentsFinalizer
		}
		return v1beta1.DependentsFinalizer + ", foregroundDeletion"
	}
	for _, seen := range []bool{true, false} {
		warned := 0
		for order := range permutations(folder) {
			stored := []client.Object{storedObject(t, server)}
			for _, object := range order {
				stored = append(stored, storedObject(t, object))
			}
			for n, object := range order {
				if seen {
					object = strings.Replace(object, "metadata: {", "metadata: {finalizers: ["+finalizers(object)+"], ", 1)
				}
				req := request(t, object, "")
				req.Operation, req.OldObject, req.Object.Raw = admissionv1.Delete, req.Object, nil
				req.Options.Raw = []byte(`{"propagationPolicy":"Background"}`)
				answer := NewHandler(newStaticObjects(stored...)).Handle(quick(t), req)
				if !answer.Allowed {
					t.Fatalf("seen = %t, %q is refused after %d others: %v", seen, object, n, answer.Result)
				}
				warned += len(answer.Warnings)
				stored[n+1].SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
			}
		}
		if (warned > 0) != seen {
			t.Errorf("seen = %t: %d warnings", seen, warned)
		}
	}
}

// storedObject decodes an object of one of our kinds.
func storedObject(t *testing.T, text string) client.Object {
	t.Helper()
	scheme, head := runtime.NewScheme(), metav1.TypeMeta{}
	if err := errors.Join(v1beta1.AddToScheme(scheme), yaml.Unmarshal([]byte(text), &head)); err != nil {
		t.Fatal(err)
	}
	object, err := scheme.New(v1beta1.GroupVersion.WithKind(head.Kind))
	if err := errors.Join(err, yaml.Unmarshal([]byte(text), object)); err != nil {
		t.Fatal(err)
	}
	return object.(client.Object)
}

// permutations yields all orders of some values, each in the same slice.
func permutations[T any](of []T) iter.Seq[[]T] {
	var permute func(k int, yield func([]T) bool) bool
	permute = func(k int, yield func([]T) bool) bool {
		if k == len(of) {
			return yield(of)
		}
		for i := k; i < len(of); i++ {
			of[k], of[i] = of[i], of[k]
			if !permute(k+1, yield) {
				return false
			}
			of[k], of[i] = of[i], of[k]
		}
		return true
	}
	return func(yield func([]T) bool) { permute(0, yield) }
}

// foreignEndpoints has all DNSEndpoints in another namespace, from where the zones take them.
type foreignEndpoints struct{ Objects }

func (f foreignEndpoints) endpointsUnder(ctx context.Context, key string) ([]*v1alpha1.DNSEndpoint, error) {
	found, err := f.Objects.endpointsUnder(ctx, key)
	for i, e := range found {
		found[i] = e.DeepCopy()
		found[i].Namespace = "elsewhere"
		found[i].Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "*"}
	}
	return found, err
}

func (f foreignEndpoints) zoneCache() *membership.Cache {
	zones := membership.NewCache()
	for _, zone := range f.Objects.zoneCache().Zones() {
		open := zone.DeepCopy()
		open.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: "*"}
		zones.SetZone(open)
	}
	return zones
}

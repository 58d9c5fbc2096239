package mark

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/webhook/internal/requests"
)

const (
	controller  = "system:serviceaccount:lockstep-system:lockstep-controller"
	uninstaller = "system:serviceaccount:lockstep-system:lockstep-uninstall"
)

// memory is what metadata says: annotations by the last part of their name, and finalizers.
type memory struct {
	Annotations map[string]string
	Finalizers  []string
}

func remembered(t testing.TB, object []byte) memory {
	t.Helper()
	var head metav1.PartialObjectMetadata
	if err := utiljson.Unmarshal(object, &head); err != nil {
		t.Fatal(err)
	}
	m := memory{Finalizers: head.Finalizers}
	for name, value := range head.Annotations {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[strings.TrimPrefix(name, "bindy.firestoned.io/")] = value
	}
	return m
}

// newMarker knows the zone example.com, which takes records with the label zone=example and endpoints of some namespaces.
func newMarker() *Handler {
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{
		Namespace: "dns", Name: "example-com", Annotations: map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: "guests, friends"},
	}}
	zone.Spec.ZoneName = "example.com"
	zone.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": "example"}}}}
	return NewHandler(membership.NewCache(zone), map[string]bool{controller: true, uninstaller: true})
}

// The objects of the tables are written short: o is the metadata beside the name.
func aRecord(metadata, spec string) string {
	return "{kind: ARecord, metadata: {name: a, namespace: dns, " + metadata + "}, spec: {" + spec + "}}"
}

const (
	in      = "labels: {zone: example}, "
	marked  = "finalizers: [bindy.firestoned.io/finalizer], "
	stamped = "annotations: {bindy.firestoned.io/zone: example.com}, "
	dying   = `deletionTimestamp: "2026-01-01T00:00:00Z", `
)

func annotated(pairs ...string) string {
	return "annotations: {bindy.firestoned.io/" + strings.Join(pairs, ", bindy.firestoned.io/") + "}, "
}

// dnsEndpoint has an endpoint for each "NAME TYPE".
func dnsEndpoint(metadata string, endpoints ...string) string {
	var list []string
	for _, endpoint := range endpoints {
		name, rrtype, _ := strings.Cut(endpoint, " ")
		list = append(list, fmt.Sprintf("{dnsName: %q, recordType: %s, targets: [x]}", name, rrtype))
	}
	return "{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, metadata: {name: e, namespace: dns, " + metadata +
		"}, spec: {endpoints: [" + strings.Join(list, ", ") + "]}}"
}

func TestMarksOfNewObjects(t *testing.T) {
	ours := []string{v1beta1.Finalizer}
	tests := map[string]struct {
		object string
		want   memory
	}{
		"taken": {
			aRecord(in, "name: a"),
			memory{map[string]string{"zone": "example.com"}, ours},
		},
		"other annotations and finalizers stay": {
			`{kind: TXTRecord, metadata: {name: a, namespace: dns, finalizers: [x.test/y], labels: {zone: example}, annotations: {x: "1"}}}`,
			memory{map[string]string{"x": "1", "zone": "example.com"}, []string{"x.test/y", v1beta1.Finalizer}},
		},
		"marked already":             {aRecord(in+stamped+marked, "name: a"), memory{map[string]string{"zone": "example.com"}, ours}},
		"another zone's stamp":       {aRecord(in+annotated("zone: evil.test"), "name: a"), memory{map[string]string{"zone": "example.com"}, ours}},
		"an empty stamp":             {aRecord(in+annotated(`zone: ""`), "name: a"), memory{map[string]string{"zone": "example.com"}, ours}},
		"former names of a copy":     {aRecord(in+annotated("former-names: b/A"), "name: a"), memory{map[string]string{"zone": "example.com"}, ours}},
		"not taken":                  {aRecord("labels: {zone: other}", "name: a"), memory{}},
		"not taken, copied metadata": {aRecord(annotated("zone: x.test", "former-names: b/A")+marked, "name: a"), memory{nil, ours}},
		"another namespace": {
			`{kind: ARecord, metadata: {name: a, namespace: elsewhere, labels: {zone: example}}}`, memory{},
		},
		"a specification that cannot be read": {
			`{kind: MXRecord, metadata: {name: a, namespace: dns, labels: {zone: example}}, spec: {name: {}, priority: high}}`,
			memory{map[string]string{"zone": "example.com"}, ours},
		},
		"no specification": {
			`{kind: CAARecord, metadata: {name: a, namespace: dns, labels: {zone: example}}}`,
			memory{map[string]string{"zone": "example.com"}, ours},
		},
		"endpoints, one is taken": {
			dnsEndpoint(`annotations: {x: "1"}`, "www.elsewhere.test A", "www.Example.com A"),
			memory{map[string]string{"x": "1"}, ours},
		},
		"endpoints, none is taken":                  {dnsEndpoint("", "www.elsewhere.test A", "notexample.com A"), memory{}},
		"endpoints of a type that is not published": {dnsEndpoint("", "www.example.com ALIAS"), memory{}},
		"endpoints, no zone's stamp": {
			dnsEndpoint("annotations: {bindy.firestoned.io/zone: as it is, bindy.firestoned.io/former-names: x}", "example.com. TXT"),
			memory{map[string]string{"zone": "as it is"}, ours},
		},
		"endpoints of a namespace that is not admitted": {
			`{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, metadata: {name: e, namespace: elsewhere}, spec: {endpoints: [{dnsName: www.example.com, recordType: A}]}}`, memory{},
		},
		"endpoints of a namespace that is admitted": {
			`{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, metadata: {name: e, namespace: guests, annotations: {bindy.firestoned.io/allow-zone-namespaces: dns}}, spec: {endpoints: [{dnsName: www.example.com, recordType: A}]}}`,
			memory{map[string]string{"allow-zone-namespaces": "dns"}, ours},
		},
		"endpoints that cannot be read": {
			`{apiVersion: externaldns.k8s.io/v1alpha1, kind: DNSEndpoint, metadata: {name: e, namespace: dns}, spec: {endpoints: 7}}`, memory{},
		},
		"no record": {`{kind: DNSZone, metadata: {name: a, namespace: dns, labels: {zone: example}}}`, memory{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			after := mark(t, newMarker(), requests.FromYAML(t, tc.object, ""))
			if diff := cmp.Diff(tc.want, remembered(t, after)); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMarksOfUpdates(t *testing.T) {
	ours := []string{v1beta1.Finalizer}
	held := memory{map[string]string{"zone": "example.com"}, ours}
	tests := map[string]struct {
		old, object string
		user        string
		want        memory
		warnings    int
	}{
		// The finalizer is on: data may be in DNS.
		"stamp edited":                    {old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in+annotated("zone: evil.test")+marked, "name: a"), want: held},
		"stamp removed":                   {old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in+marked, "name: a"), want: held},
		"stamp emptied":                   {old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in+annotated(`zone: ""`)+marked, "name: a"), want: held},
		"not taken any more":              {old: aRecord(in+stamped+marked, "name: a"), object: aRecord(stamped+marked, "name: a"), want: held},
		"taken by another":                {old: aRecord(annotated("zone: other.test")+marked, "name: a"), object: aRecord(in+annotated("zone: other.test")+marked, "name: a"), want: memory{map[string]string{"zone": "other.test"}, ours}},
		"never stamped":                   {old: aRecord(marked, "name: a"), object: aRecord(in+marked, "name: a"), want: held},
		"finalizer removed":               {old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in+stamped, "name: a"), want: held, warnings: 1},
		"replaced as a whole":             {old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in, "name: a"), want: held, warnings: 1},
		"finalizer while dying":           {old: aRecord(dying+in+stamped+marked, "name: a"), object: aRecord(dying+in+stamped, "name: a"), want: memory{map[string]string{"zone": "example.com"}, nil}},
		"finalizer while dying, by a PUT": {old: aRecord(dying+in+stamped+marked, "name: a"), object: aRecord(in+stamped, "name: a"), want: memory{map[string]string{"zone": "example.com"}, nil}},
		"renamed while dying": {
			old: aRecord(dying+in+stamped+marked, "name: a"), object: aRecord(dying+in+stamped+marked, "name: b"),
			want: memory{map[string]string{"zone": "example.com", "former-names": "a/A"}, ours},
		},

		// The keepers' word is final.
		"stamp by the controller":        {user: controller, old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in+annotated("zone: b.test")+marked, "name: a"), want: memory{map[string]string{"zone": "b.test"}, ours}},
		"release by the controller":      {user: controller, old: aRecord(in+annotated("zone: b.test", "former-names: b/A")+marked, "name: a"), object: aRecord(in, "name: a"), want: memory{}},
		"former names by the controller": {user: controller, old: aRecord(in+annotated("zone: b.test", "former-names: b/A")+marked, "name: a"), object: aRecord(in+stamped+marked, "name: a"), want: held},
		"finalizer by the uninstaller":   {user: uninstaller, old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in+stamped, "name: a"), want: memory{map[string]string{"zone": "example.com"}, nil}},
		"a namesake elsewhere":           {user: "system:serviceaccount:dns:lockstep-controller", old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in, "name: a"), want: held, warnings: 1},

		// The finalizer is not on: nothing is in DNS yet.
		"relabelled into the zone":     {old: aRecord("", "name: a"), object: aRecord(in, "name: a"), want: held},
		"webhook was away before":      {old: aRecord(in, "name: a"), object: aRecord(in, "name: b"), want: held},
		"unheld stamp follows":         {old: aRecord(in+annotated("zone: x.test"), "name: a"), object: aRecord(annotated("zone: x.test"), "name: a"), want: memory{}},
		"former names out of thin air": {old: aRecord("", "name: a"), object: aRecord(in+annotated("former-names: b/A"), "name: a"), want: held},
		"dying and never held":         {old: aRecord(dying+in, "name: a"), object: aRecord(dying+in, "name: b"), want: memory{}},

		// Renaming.
		"renamed": {
			old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in+stamped+marked, "name: b"),
			want: memory{map[string]string{"zone": "example.com", "former-names": "a/A"}, ours},
		},
		"renamed again": {
			old: aRecord(in+annotated("zone: example.com", "former-names: a/A")+marked, "name: b"), object: aRecord(in+stamped+marked, "name: c"),
			want: memory{map[string]string{"zone": "example.com", "former-names": "a/A,b/A"}, ours},
		},
		"renamed back": {
			old: aRecord(in+annotated("zone: example.com", `former-names: "a/A,b/A"`)+marked, "name: c"), object: aRecord(in+stamped+marked, "name: A"),
			want: memory{map[string]string{"zone": "example.com", "former-names": "b/A,c/A"}, ours},
		},
		"the same name in capitals": {old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in+stamped+marked, "name: A"), want: held},
		"renamed and finalizer removed": {
			old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in+stamped, "name: b"), warnings: 1,
			want: memory{map[string]string{"zone": "example.com", "former-names": "a/A"}, ours},
		},
		"former names removed": {
			old: aRecord(in+annotated("zone: example.com", "former-names: b/A")+marked, "name: a"), object: aRecord(in+stamped+marked, "name: a"),
			want: memory{map[string]string{"zone": "example.com", "former-names": "b/A"}, ours},
		},
		"former names added": {
			old: aRecord(in+stamped+marked, "name: a"), object: aRecord(in+annotated("zone: example.com", "former-names: foreign/A")+marked, "name: a"), want: held,
		},
		"endpoints renamed, retyped, removed, kept": {
			old:    dnsEndpoint(marked, "a.example.com A", "b.example.com A", "c.example.com TXT", "d.example.com A"),
			object: dnsEndpoint(marked, "A1.example.com A", "b.example.com AAAA", "D.example.com. A"),
			want:   memory{map[string]string{"former-names": "a.example.com./A,b.example.com./A,c.example.com./TXT"}, ours},
		},
		"endpoints that come back": {
			old:    dnsEndpoint(annotated(`former-names: "a.example.com./A,b.example.com./A"`)+marked, "c.example.com A"),
			object: dnsEndpoint(marked, "A.example.com A"),
			want:   memory{map[string]string{"former-names": "b.example.com./A,c.example.com./A"}, ours},
		},
		"endpoints, all of them removed": {
			old: dnsEndpoint(marked, "a.example.com A"), object: dnsEndpoint(""), warnings: 1,
			want: memory{map[string]string{"former-names": "a.example.com./A"}, ours},
		},
		"endpoints, a comma in a name": {
			old: dnsEndpoint(marked, `a,b.example.com A`), object: dnsEndpoint(marked),
			want: memory{map[string]string{"former-names": `a\044b.example.com./A`}, ours},
		},
		"endpoints that were never published": {
			old: dnsEndpoint(marked, "a..example.com A", "a.example.com ALIAS"), object: dnsEndpoint(marked), want: memory{nil, ours},
		},
		"endpoints released by the controller": {
			user: controller, old: dnsEndpoint(annotated("former-names: b.example.com./A")+marked, "a.example.com A"), object: dnsEndpoint("", "a.example.com A"),
			want: memory{},
		},
		"endpoints taken now": {old: dnsEndpoint("", "a.test A"), object: dnsEndpoint("", "a.test A", "a.example.com A"), want: memory{nil, ours}},
		"a name with slashes": {
			old: aRecord(in+stamped+marked, `name: 0/25`), object: aRecord(in+stamped+marked, "name: b"),
			want: memory{map[string]string{"zone": "example.com", "former-names": "0/25/A"}, ours},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			req := requests.FromYAML(t, tc.object, tc.old)
			req.UserInfo.Username = tc.user
			m := newMarker()
			if answer := m.Handle(t.Context(), req); len(answer.Warnings) != tc.warnings {
				t.Errorf("warnings %q, want %d", answer.Warnings, tc.warnings)
			}
			if diff := cmp.Diff(tc.want, remembered(t, mark(t, m, req))); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever users, the controller and reinvocations do in any order: a second call changes nothing, and what may be in DNS
// is remembered until the controller takes it away.
func TestMarksOfAnySequence(t *testing.T) {
	m := newMarker()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		object := mark(t, m, requests.FromYAML(t, randomEdit(t, r, nil), ""))
		mayBeInDNS := map[string]bool{}
		for range 12 {
			before := remembered(t, object)
			if slices.Contains(before.Finalizers, v1beta1.Finalizer) {
				mayBeInDNS[nameIn(t, object)] = true
			}
			req := requests.FromYAML(t, randomEdit(t, r, object), string(object))
			if r.IntN(5) == 0 {
				req.UserInfo.Username = controller
				clear(mayBeInDNS)
			}
			object = mark(t, m, req)
			after := remembered(t, object)
			if req.UserInfo.Username == controller || !slices.Contains(before.Finalizers, v1beta1.Finalizer) {
				continue
			}
			if !slices.Contains(after.Finalizers, v1beta1.Finalizer) {
				t.Fatalf("seed %d: finalizer lost: %v, then %v", seed, before, after)
			}
			if stamp := before.Annotations["zone"]; stamp != "" && after.Annotations["zone"] != stamp {
				t.Fatalf("seed %d: stamp lost: %v, then %v", seed, before, after)
			}
			for name := range mayBeInDNS {
				former := slices.Contains(splitEntries(after.Annotations["former-names"]), name+"/A")
				if current := name == nameIn(t, object); former == current {
					t.Fatalf("seed %d: %q is current: %v, former: %v (%v)", seed, name, current, former, after)
				}
			}
		}
	}
}

// randomEdit changes an object as users do; without one it makes one.
func randomEdit(t testing.TB, r *rand.Rand, object []byte) string {
	t.Helper()
	record := &v1beta1.ARecord{TypeMeta: metav1.TypeMeta{Kind: "ARecord"}, ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "dns"}}
	if object != nil {
		if err := json.Unmarshal(object, record); err != nil {
			t.Fatal(err)
		}
	}
	edits := []func(){
		func() { record.Labels = map[string]string{"zone": "example"} },
		func() { record.Labels = nil },
		func() { record.Finalizers = nil },
		func() { record.Finalizers = append(record.Finalizers, "x.test/y") },
		func() { record.Annotations = nil },
		func() { record.Annotations = map[string]string{v1beta1.ZoneAnnotation: "x.test", "note": "1"} },
		func() { delete(record.Annotations, v1beta1.FormerNamesAnnotation) },
		func() { metav1.SetMetaDataAnnotation(&record.ObjectMeta, v1beta1.FormerNamesAnnotation, "x/A,y/A") },
	}
	record.Spec.Name = string(rune('a' + r.IntN(4)))
	for range r.IntN(3) {
		edits[r.IntN(len(edits))]()
	}
	record.Finalizers = slices.Compact(record.Finalizers)
	data, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func nameIn(t testing.TB, object []byte) string {
	t.Helper()
	var record v1beta1.ARecord
	if err := json.Unmarshal(object, &record); err != nil {
		t.Fatal(err)
	}
	return record.Spec.Name
}

func TestFormerNamesAreBounded(t *testing.T) {
	names := func(from, to int) []string {
		var names []string
		for i := from; i < to; i++ {
			names = append(names, fmt.Sprintf("host%05d.example.com/A", i)) // 23 bytes, 24 with the comma
		}
		return names
	}
	tests := map[string]struct {
		held          string
		before, after []string
		room          int
		first, last   string
		lost          int
	}{
		"all fit":                    {"", names(0, 3), nil, 71, "host00000", "host00002", 0},
		"one byte too few":           {"", names(0, 3), nil, 70, "host00001", "host00002", 1},
		"the oldest go first":        {strings.Join(names(0, 100), ","), names(100, 103), nil, 240, "host00093", "host00102", 93},
		"what comes again is newest": {strings.Join(names(0, 3), ","), names(0, 1), nil, 50, "host00002", "host00000", 1},
		"no room at all":             {"", names(0, 3), nil, -5, "", "", 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			former, lost := mergeFormerNames(tc.held, tc.before, tc.after, tc.room)
			entries := append(splitEntries(former), "")
			if lost != tc.lost || !strings.HasPrefix(entries[0], tc.first) || len(former) > max(0, tc.room) ||
				(len(entries) > 1 && !strings.HasPrefix(entries[len(entries)-2], tc.last)) {
				t.Errorf("%d lost, %d bytes: %s", lost, len(former), former)
			}
			if again, _ := mergeFormerNames(former, tc.before, tc.after, tc.room); again != former {
				t.Errorf("a second time: %s, then %s", former, again)
			}
		})
	}
}

// Beside large annotations of others there is less room, so that no object becomes too large for Kubernetes.
func TestFormerNamesLeaveRoomForOtherAnnotations(t *testing.T) {
	other := map[string]string{"x": strings.Repeat("x", 200<<10), v1beta1.FormerNamesAnnotation: "does not count"}
	if room := formerNamesRoom(other); room+len(other["x"])+1+len(v1beta1.FormerNamesAnnotation) != 256<<10 {
		t.Errorf("room for %d bytes", room)
	}
	if room := formerNamesRoom(nil); room != maxFormerNames {
		t.Errorf("room for %d bytes, want %d", room, maxFormerNames)
	}
}

// mark gives the object as it is stored, and fails when a second call would change it once more.
func mark(t testing.TB, m *Handler, req admission.Request) []byte {
	t.Helper()
	after := patched(t, req, m.Handle(t.Context(), req))
	req.Object.Raw = after
	if again := m.Handle(t.Context(), req); !again.Allowed || len(again.Patches) > 0 {
		t.Fatalf("a second time: %+v\n%s", again.Patches, after)
	}
	return after
}

// patched applies the answer's patch, as kube-apiserver does.
func patched(t testing.TB, req admission.Request, answer admission.Response) []byte {
	t.Helper()
	if !answer.Allowed {
		t.Fatalf("refused: %v", answer.Result)
	}
	if len(answer.Patches) == 0 {
		return slices.Clone(req.Object.Raw)
	}
	if err := answer.Complete(req); err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(req.Object.Raw)
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// Fuzzed metadata: the patch applies, a second one is empty, and nothing but the marks changes.
func FuzzMarks(f *testing.F) {
	f.Add([]byte(`{"metadata":{"labels":{"zone":"example"}},"spec":{"name":"a"}}`), []byte(`{"metadata":{"finalizers":["bindy.firestoned.io/finalizer"]},"spec":{"name":"b"}}`))
	f.Add([]byte(`{"metadata":{"annotations":null,"finalizers":[]}}`), []byte(`{"metadata":{"annotations":{"bindy.firestoned.io/former-names":",a/A, /,"},"finalizers":["bindy.firestoned.io/finalizer"]}}`))
	f.Add([]byte(`{"metadata":{"annotations":{"bindy.firestoned.io/zone":""}}}`), []byte(nil))
	f.Add([]byte(`{}`), []byte(`{"metAdAtA":{"finAliZers":["bindy.firestoned.io/finalizer"]}}`))
	f.Add([]byte(`{}`), []byte(`{"metadata":{"finalizers":["bindy.firestoned.io/finalizer"]}}`))
	m := newMarker()
	f.Fuzz(func(t *testing.T, object, old []byte) {
		req := requests.FromYAML(t, `{kind: ARecord, metadata: {name: a, namespace: dns}}`, "")
		req.Object.Raw = object
		if old != nil {
			req.Operation, req.OldObject.Raw = "UPDATE", old
		}
		if _, _, err := parseObjects(req, markedKindOf(req)); err != nil {
			return
		}
		before, after := remembered(t, object), remembered(t, mark(t, m, req))
		for _, m := range []memory{before, after} {
			maps.DeleteFunc(m.Annotations, func(name, _ string) bool { return name == "zone" || name == "former-names" })
		}
		ours := func(finalizer string) bool { return finalizer == v1beta1.Finalizer }
		if len(before.Annotations)+len(after.Annotations) > 0 && !maps.Equal(before.Annotations, after.Annotations) ||
			!slices.Equal(slices.DeleteFunc(before.Finalizers, ours), slices.DeleteFunc(after.Finalizers, ours)) {
			t.Fatalf("more than the marks changed: %v, then %v", before, after)
		}
	})
}

package preview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
)

const zoneText = `
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSZone
metadata: {name: main, namespace: dns, labels: {app: dns}}
spec:
  zoneName: main.test
  clusterRef: web
  soaRecord: {primaryNs: ns1.other.example., adminEmail: admin.other.example.}
  recordsFrom: [{selector: {matchLabels: {zone: main}}}]
---
`

func record(name, address string) string {
	return `
apiVersion: bindy.firestoned.io/v1beta1
kind: ARecord
metadata: {name: ` + name + `, namespace: dns, labels: {zone: main, app: dns}}
spec: {name: ` + name + `, ipv4Addresses: [` + address + `]}
---
`
}

// parse reads the objects of a text.
func parse(t *testing.T, text string) []manifest.Object {
	t.Helper()
	objects, faults := manifest.Parse("dns.yaml", []byte(text))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return objects
}

// stored returns the objects of a text as they were stored by kubectl apply.
func stored(t *testing.T, text string) (all []client.Object) {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range parse(t, text) {
		applied, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		o.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(applied)})
		typed, err := scheme.New(o.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(o.Object)
		if err := json.Unmarshal(text, typed); err != nil {
			t.Fatal(err)
		}
		all = append(all, typed.(client.Object))
	}
	return all
}

// makePlan plans to apply a text to a cluster with objects, of which kube-apiserver answers some requests as funcs do.
func makePlan(t *testing.T, prune, apply string, funcs interceptor.Funcs, objects ...client.Object) (report Report, text string, result error) {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), funcs)
	o := options{prune: prune, systemNamespace: "lockstep-system", palette: func(io.Writer) render.Palette { return render.Palette{} }}
	selector, err := labels.Parse(prune)
	if err != nil {
		t.Fatal(err)
	}
	report, err = o.plan(t.Context(), &cluster{client: c, namespace: "dns"}, parse(t, apply), selector)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	result = o.print(report, &out, &out)
	for _, object := range objects { // A plan changes nothing.
		now := object.DeepCopyObject().(client.Object)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), now); err != nil {
			t.Errorf("%s: %v", object.GetName(), err)
		} else if diff := cmp.Diff(object.GetAnnotations(), now.GetAnnotations()); diff != "" || object.GetResourceVersion() != "" && object.GetResourceVersion() != now.GetResourceVersion() {
			t.Errorf("%s was changed: %s", object.GetName(), diff)
		}
	}
	return report, out.String(), result
}

func TestPlan(t *testing.T) {
	live := stored(t, zoneText+strings.Replace(record("other", "192.0.2.5"), "namespace: dns", "namespace: elsewhere", 1)+record("www", "192.0.2.1")+record("old", "192.0.2.2")+strings.Replace(record("ttl", "192.0.2.3"), "spec: {", "spec: {ttl: 60, ", 1))
	_, text, err := makePlan(t, "app=dns", zoneText+record("www", "192.0.2.7")+record("new", "192.0.2.4")+record("ttl", "192.0.2.3")+"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", interceptor.Funcs{}, live...)
	want := `ZONE       CHANGE     NAME             TYPE   TTL         VALUES                  OBJECTS
dns/main   appears    new.main.test.   A      3600        192.0.2.4               ARecord dns/new
dns/main   vanishes   old.main.test.   A      3600        192.0.2.2               ARecord dns/old
dns/main   changes    ttl.main.test.   A      60 → 3600   192.0.2.3               ARecord dns/ttl
dns/main   changes    www.main.test.   A      3600        192.0.2.1 → 192.0.2.7   ARecord dns/www
4 RRsets in 1 zone: 1 appear, 2 change, 1 vanish
`
	if diff := cmp.Diff(want, text); diff != "" || !errors.Is(err, ErrChanges) {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// What the files do not have stays without --prune, and the exit code says that no answer changes.
func TestPlanOfNothing(t *testing.T) {
	live := stored(t, zoneText+record("www", "192.0.2.1")+record("old", "192.0.2.2"))
	_, text, err := makePlan(t, "", zoneText+record("www", "192.0.2.1"), interceptor.Funcs{}, live...)
	if text != "no answer changes\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// What admission refuses is reported with file and line, and the plan is without it.
func TestPlanWithRefusals(t *testing.T) {
	refuse := func(o client.Object) error {
		if o.GetName() == "bad" || o.GetName() == "main" {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "records" denied the request: no`}}
		}
		return nil
	}
	funcs := interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := refuse(o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			return refuse(o)
		},
	}
	report, text, err := makePlan(t, "app", record("bad", "192.0.2.1")+record("good", "192.0.2.1"), funcs, stored(t, zoneText)...)
	if !errors.Is(err, errRefused) || len(report.Refused) != 2 || len(report.Zones) != 1 || len(report.Zones[0].Changes) != 1 {
		t.Errorf("%v: %+v", err, report)
	}
	for _, want := range []string{
		"appears   good.main.test.", `dns.yaml:2: error: ARecord dns/bad: admission webhook "records" denied the request: no`, "error: deleting DNSZone dns/main: ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Who may not write sees the changes all the same, and that admission was not asked; who may read one namespace, those of that one.
func TestPlanOfReaders(t *testing.T) {
	forbidden := func(verb string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "arecords"}, "www", errors.New(`User "u" cannot `+verb+` resource "arecords"`))
	}
	funcs := interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return forbidden("create")
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return forbidden("patch")
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var o client.ListOptions
			if o.ApplyOptions(opts); o.Namespace == "" {
				return forbidden("list")
			}
			return c.List(ctx, list, opts...)
		},
	}
	report, _, err := makePlan(t, "", record("www", "192.0.2.7")+record("new", "192.0.2.3"), funcs, stored(t, zoneText+record("www", "192.0.2.1"))...)
	if !errors.Is(err, ErrChanges) || len(report.Zones) != 1 || len(report.Zones[0].Changes) != 2 {
		t.Errorf("%v: %+v", err, report)
	}
	remarks := strings.Join(report.Remarks, "\n")
	for _, want := range []string{"ARecord dns/www was not asked of kube-apiserver, so admission may still refuse that; lockstep validate reads the files alone: ", "ARecord dns/new was not", "ARecords of other namespaces are not taken into account", "ZoneGrants are not taken into account"} {
		if !strings.Contains(remarks, want) {
			t.Errorf("no %q in\n%s", want, remarks)
		}
	}
}

// An object that a field manager applied on the server's side is applied by the same one: else the fields that it no longer has would stay.
func TestPlanByFieldManager(t *testing.T) {
	live := stored(t, zoneText+record("www", "192.0.2.1"))
	managed := []metav1.ManagedFieldsEntry{
		{Manager: "lockstep", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{}}}`)},
		{Manager: "argocd-controller", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "bindy.firestoned.io/v1beta1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:ipv4Addresses":{}}}`)},
	}
	manager := ""
	funcs := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if key.Name == "www" {
				o.SetManagedFields(managed)
			}
			return err
		},
		Patch: func(_ context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, opts ...client.PatchOption) error {
			var o client.PatchOptions
			o.ApplyOptions(opts)
			if manager = o.FieldManager; len(o.DryRun) == 0 || !*o.Force {
				t.Errorf("not a dry run: %+v", o)
			}
			return nil
		},
	}
	if _, _, err := makePlan(t, "", record("www", "192.0.2.7"), funcs, live...); manager != "argocd-controller" || !errors.Is(err, ErrChanges) {
		t.Errorf("applied by %q: %v", manager, err)
	}
}

func TestFlags(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("a: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]options{
		"name files or folders with -f": {},
		"--output=yaml":                 {files: []string{bad}, output: "yaml"},
		"--prune: ":                     {files: []string{bad}, prune: "a in"},
		"bad.yaml:":                     {files: []string{bad}},
	} {
		if err := o.run(t.Context(), nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A plan that the guard of a zone would hold back says so.
func TestPlanOfAGuardedZone(t *testing.T) {
	guarded := strings.Replace(zoneText, "spec:\n", "spec:\n  guard: {neverEmpty: [www]}\n", 1)
	_, text, err := makePlan(t, "app=dns", guarded, interceptor.Funcs{}, stored(t, guarded+record("www", "192.0.2.1"))...)
	if want := "\nDNSZone dns/main would be Held: "; !errors.Is(err, ErrChanges) || !strings.Contains(text, want) {
		t.Errorf("%v: no %q in\n%s", err, want, text)
	}
}

// What was meant to be one of our objects, and is none, is not passed over: its answers would be missing without a word.
func TestPlanOfMistypedObjects(t *testing.T) {
	for name, tc := range map[string]struct{ object, want string }{
		"kind":          {strings.Replace(record("www", "192.0.2.1"), "ARecord", "Arecord", 1), `dns.yaml:12: error: Arecord dns/www: bindy.firestoned.io/v1beta1 has no kind Arecord: write apiVersion: bindy.firestoned.io/v1beta1 and kind: ARecord`},
		"unknown kind":  {strings.Replace(record("www", "192.0.2.1"), "ARecord", "Alias", 1), "bindy.firestoned.io/v1beta1 has no kind Alias"},
		"version":       {strings.Replace(record("www", "192.0.2.1"), "v1beta1", "v1", 1), "bindy.firestoned.io/v1 has no kind ARecord: write apiVersion: bindy.firestoned.io/v1beta1 and kind: ARecord"},
		"group":         {strings.Replace(record("www", "192.0.2.1"), "bindy.firestoned.io/v1beta1", "v1", 1), "v1 has no kind ARecord: write apiVersion: bindy.firestoned.io/v1beta1"},
		"name":          {strings.Replace(record("www", "192.0.2.1"), "metadata: {name:", "metadata: {generateName:", 1), "metadata.name is missing"},
		"another's":     {strings.Replace(record("www", "192.0.2.1"), "bindy.firestoned.io/v1beta1", "kuadrant.io/v1", 1), ""},
		"of Kubernetes": {strings.Replace(record("www", "192.0.2.1"), "bindy.firestoned.io/v1beta1\nkind: ARecord", "v1\nkind: Secret", 1), ""},
	} {
		report, text, err := makePlan(t, "", zoneText+tc.object, interceptor.Funcs{}, stored(t, zoneText)...)
		if refused := errors.Is(err, errRefused); refused != (tc.want != "") || len(report.Refused) > 1 || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %v, want %q in\n%s", name, err, tc.want, text)
		}
	}
}

// Files may be named without -f, and what is wrong with each is said.
func TestPlanNamesEveryFault(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("a: [\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := NewCommand("lockstep", nil, nil)
	cmd.SetArgs([]string{dir})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "a.yaml:") || !strings.Contains(err.Error(), "b.yaml:") {
		t.Error(err)
	}
}

// Labels of namespaces are read where a zone selects records by them, and only there.
func TestPlanReadsNamespaces(t *testing.T) {
	open := strings.Replace(zoneText, "recordsFrom: [{", "recordsFrom: [{namespaceSelector: {matchLabels: {team: 'yes'}}, ", 1)
	guest := stored(t, strings.Replace(record("www", "192.0.2.1"), "namespace: dns", "namespace: team", 1))[0]
	guest.GetAnnotations()[v1beta1.AllowZoneNamespacesAnnotation] = "dns"
	live := append(stored(t, zoneText), guest, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"team": "yes"}}})
	reads := 0
	funcs := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*corev1.NamespaceList); ok {
			reads++
		}
		return c.List(ctx, list, opts...)
	}}
	if _, text, _ := makePlan(t, "", zoneText, funcs, live...); reads > 0 || text != "no answer changes\n" {
		t.Errorf("namespaces were read %d times: %q", reads, text)
	}
	if _, text, _ := makePlan(t, "", open, funcs, live...); reads != 1 || !strings.Contains(text, "appears   www.main.test.") {
		t.Errorf("namespaces were read %d times: %q", reads, text)
	}
}

// Labels that files give namespaces, or take from them, decide where zones select records by them; without such a zone, nothing is asked.
func TestPlanOfNamespaces(t *testing.T) {
	open := strings.Replace(zoneText, "recordsFrom: [{", "recordsFrom: [{namespaceSelector: {matchLabels: {team: 'yes'}}, ", 1)
	namespace := func(labels string) string {
		return "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {" + labels + "}}\n---\n"
	}
	guest := stored(t, strings.Replace(record("www", "192.0.2.1"), "namespace: dns", "namespace: team", 1))[0]
	guest.GetAnnotations()[v1beta1.AllowZoneNamespacesAnnotation] = "dns"
	forbidden := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
		if o.GetName() != "team" {
			return c.Patch(ctx, o, patch, opts...)
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "team", errors.New(`User "u" cannot patch resource "namespaces"`))
	}}
	for name, tc := range map[string]struct {
		stored, zone, file string
		funcs              interceptor.Funcs
		want               string
	}{
		"a label comes":          {namespace(""), open, namespace("team: 'yes'"), interceptor.Funcs{}, "appears   www.main.test."},
		"a label goes":           {namespace("team: 'yes'"), open, namespace(""), interceptor.Funcs{}, "vanishes   www.main.test."},
		"a label stays":          {namespace("team: 'yes'"), open, namespace("team: 'yes'"), interceptor.Funcs{}, "no answer changes\n"},
		"an unknown namespace":   {"", open, namespace("team: 'yes'"), interceptor.Funcs{}, "appears   www.main.test."},
		"of others":              {namespace(""), open, namespace("team: 'yes'"), forbidden, "team was not asked of kube-apiserver"},
		"without such a zone":    {namespace(""), zoneText, namespace("team: 'yes'"), forbidden, "no answer changes\n"},
		"a namespace of no file": {namespace("team: 'yes'"), open, "", interceptor.Funcs{}, "no answer changes\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, text, _ := makePlan(t, "", tc.zone+tc.file, tc.funcs, append(stored(t, tc.stored+tc.zone), guest)...)
			if !strings.Contains(text, tc.want) || strings.HasPrefix(tc.want, "no ") && text != tc.want {
				t.Errorf("no %q in %q", tc.want, text)
			}
		})
	}
}

func objectOf(kind, name, spec string) string {
	return "apiVersion: bindy.firestoned.io/v1beta1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: dns, labels: {zone: main}}\nspec: " + spec + "\n---\n"
}

// A plan says of each object in the files what becomes of it, as it would if they were applied in their order.
func TestPlanSays(t *testing.T) {
	services := "apiVersion: externaldns.k8s.io/v1alpha1\nkind: DNSEndpoint\nmetadata: {name: e, namespace: dns}\nspec: {endpoints: [" +
		`{dnsName: _ipp._tcp.main.test, recordType: PTR, targets: ["Büro 2._ipp._tcp.main.test"]}, {dnsName: a.main.test, recordType: A, targets: [nonsense]}, {dnsName: b.main.test, recordType: ALIAS, targets: [x]}]}` + "\n"
	for name, tc := range map[string]struct {
		live, files string
		want        []string
		not         string
	}{
		"names as they are spelled": {"", services, []string{`PTR    3600   B\195\188ro\0322._ipp._tcp.main.test.`}, `   b\195`},
		"a target as it is spelled": {"", objectOf("CNAMERecord", "a", "{name: WWW, target: Cdn.Example.net.}"), []string{"WWW.main.test.   CNAME   3600   Cdn.Example.net."}, ""},
		"an endpoint that is none":  {"", services, []string{"DNSEndpoint dns/e would not be published: spec.endpoints[1] (a.main.test A): targets[0]: "}, "endpoints[2]"},
		"an alias and an address":   {"", objectOf("CNAMERecord", "a", "{name: a, target: www}") + record("a", "192.0.2.1"), []string{"a.main.test.   CNAME", "ARecord dns/a would not be published: a.main.test. is an alias, declared by CNAMERecord dns/a, which is older"}, "   A "},
		"an address and an alias":   {"", record("a", "192.0.2.1") + objectOf("CNAMERecord", "a", "{name: a, target: www}"), []string{"CNAMERecord dns/a would not be published: "}, "CNAME   "},
		"what was refused before":   {objectOf("CNAMERecord", "a", "{name: a, target: a}"), record("b", "192.0.2.1"), nil, "not be published"},
		"no zone":                   {"", strings.Replace(record("a", "192.0.2.1"), "zone: main", "zone: other", 1), []string{"ARecord dns/a would not be published: no DNSZone selects its labels"}, ""},
		"no zone before":            {strings.Replace(record("a", "192.0.2.1"), "zone: main", "zone: other", 1), record("b", "192.0.2.1"), nil, "not be published"},
		"a zone no more":            {record("a", "192.0.2.1"), strings.Replace(record("a", "192.0.2.1"), "zone: main", "zone: other", 1), []string{"vanishes   a.main.test.", "no DNSZone selects its labels"}, ""},
		"a serial that is counted":  {"", zoneText[:strings.Index(zoneText, "  soaRecord")] + "  soaRecord: {primaryNs: ns2.other.example., adminEmail: admin.other.example.}\n", []string{"ns1.other.example. admin.other.example. SERIAL 3600 600 604800 86400 → ns2.other.example. admin.other.example. SERIAL"}, ""},
		"a serial that is raised":   {"", zoneText[:strings.Index(zoneText, "  soaRecord")] + "  soaRecord: {primaryNs: ns1.other.example., adminEmail: admin.other.example., serial: 7}\n", []string{"admin.other.example. SERIAL 3600", "admin.other.example. 7 3600"}, ""},
		"labels that are none":      {"", strings.Replace(record("a", "192.0.2.1"), "zone: main", "zone: yes", 1) + record("b", "192.0.2.1"), []string{"b.main.test.", "dns.yaml:2: error: ARecord dns/a: reading ARecord dns/a: json: "}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, text, _ := makePlan(t, "", tc.files, interceptor.Funcs{}, stored(t, zoneText+tc.live)...)
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if tc.not != "" && strings.Contains(text, tc.not) {
				t.Errorf("%q in\n%s", tc.not, text)
			}
		})
	}
}

// A warning says which object it is about, and where the field is.
func TestPlanNamesObjectsOfWarnings(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{namespace: "dns"}
	c.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored(t, zoneText+record("old", "192.0.2.2"))...).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, under client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			c.HandleWarningHeader(http.StatusMultipleChoices-1, "-", "spec.name: it is doubtful")
			return under.Create(ctx, o, opts...)
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			c.HandleWarningHeader(http.StatusMultipleChoices-1, "-", "it waits")
			return nil
		},
	})
	o := options{prune: "app=dns", palette: func(io.Writer) render.Palette { return render.Palette{} }}
	report, err := o.plan(t.Context(), c, parse(t, zoneText+record("a", "192.0.2.1")), labels.SelectorFromSet(labels.Set{"app": "dns"}))
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if err := o.print(report, &out, &errOut); !errors.Is(err, ErrChanges) {
		t.Error(err)
	}
	if want := "dns.yaml:15: warning: ARecord dns/a: spec.name: it is doubtful\nwarning: deleting ARecord dns/old: it waits\n"; errOut.String() != want {
		t.Errorf("%q, want %q", errOut.String(), want)
	}
}

// Objects that admission is not asked about for one reason are told of in one line.
func TestPlanOfNewNamespace(t *testing.T) {
	funcs := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "dns")
	}}
	report, _, _ := makePlan(t, "", zoneText+record("dns", "192.0.2.1")+record("b", "192.0.2.1"), funcs)
	if len(report.Remarks) != 1 || !strings.HasPrefix(report.Remarks[0], `DNSZone dns/main and 2 more were not asked of kube-apiserver, so admission may still refuse that; lockstep validate reads the files alone: namespaces "dns" not found`) {
		t.Errorf("%q", report.Remarks)
	}
	if len(report.Zones) != 1 || len(report.Zones[0].Changes) != 4 {
		t.Errorf("%+v", report.Zones)
	}
}

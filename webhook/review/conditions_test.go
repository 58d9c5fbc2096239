package review

import (
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

const (
	controllerUser  = "system:serviceaccount:lockstep-system:lockstep-controller"
	fleetUser       = "system:serviceaccount:lockstep-system:lockstep-fleet"
	uninstallUser   = "system:serviceaccount:lockstep-system:lockstep-uninstall"
	lookalike       = "system:serviceaccount:elsewhere:lockstep-controller"
	markedRecord    = "{metadata: {finalizers: [bindy.firestoned.io/finalizer], annotations: {bindy.firestoned.io/zone: a.test}}, spec: {name: a}}"
	unheldRecord    = "{metadata: {annotations: {bindy.firestoned.io/zone: a.test}}, spec: {name: a}}"
	unstampedRecord = "{metadata: {finalizers: [bindy.firestoned.io/finalizer]}, spec: {name: a}}"
)

// Which requests kube-apiserver calls a webhook for, as its own libraries evaluate the conditions.
func TestConditions(t *testing.T) {
	const labeled, renamed, noted = "{metadata: {labels: {a: b}}, spec: {name: a}}", "{spec: {name: b}}", "{metadata: {annotations: {note: x}, finalizers: [example.com/other]}, spec: {name: a}}"
	const markedGoing = "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [bindy.firestoned.io/finalizer], annotations: {bindy.firestoned.io/zone: a.test}}, spec: {name: a}}"
	const plain, going = "{spec: {name: a}}", "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', labels: {a: b}}, spec: {name: a}}"
	tests := map[string]struct {
		webhook, user string
		operation     admission.Operation
		object, old   string
		want          bool
	}{
		"marks, nothing changes":                 {"mark.records.bindy.firestoned.io", "jane", admission.Update, noted, plain, false},
		"marks, new labels":                      {"mark.records.bindy.firestoned.io", "jane", admission.Update, labeled, plain, false},
		"marks, new spec":                        {"mark.records.bindy.firestoned.io", "jane", admission.Update, renamed, plain, false},
		"marks, new spec while it is deleted":    {"mark.records.bindy.firestoned.io", "jane", admission.Update, going, renamed, true},
		"marks, removed as the last finalizer":   {"mark.records.bindy.firestoned.io", "jane", admission.Update, unheldRecord, markedGoing, false},
		"marks, annotation edited":               {"mark.records.bindy.firestoned.io", "jane", admission.Update, unstampedRecord, markedRecord, true},
		"marks, finalizer removed":               {"mark.records.bindy.firestoned.io", "jane", admission.Update, unheldRecord, markedRecord, true},
		"marks, of an object that is deleted":    {"mark.records.bindy.firestoned.io", "jane", admission.Update, going, plain, false},
		"marks, removed by the controller":       {"mark.records.bindy.firestoned.io", controllerUser, admission.Update, plain, markedRecord, false},
		"marks, removed by the uninstaller":      {"mark.records.bindy.firestoned.io", uninstallUser, admission.Update, plain, markedRecord, false},
		"marks, removed by another's controller": {"mark.records.bindy.firestoned.io", lookalike, admission.Update, plain, markedRecord, true},
		"endpoints, creation":                    {"endpoints.bindy.firestoned.io", "jane", admission.Create, plain, "", true},
		"endpoints, finalizer removed":           {"endpoints.bindy.firestoned.io", "jane", admission.Update, plain, markedRecord, true},
		"endpoints, new labels":                  {"endpoints.bindy.firestoned.io", "jane", admission.Update, labeled, plain, true},
		"endpoints, nothing changes":             {"endpoints.bindy.firestoned.io", "jane", admission.Update, noted, plain, false},
		"endpoints, by the controller":           {"endpoints.bindy.firestoned.io", controllerUser, admission.Update, plain, markedRecord, false},
		"endpoints that are deleted":             {"endpoints.bindy.firestoned.io", "jane", admission.Update, going, plain, false},
		"endpoints that are deleted, new spec":   {"endpoints.bindy.firestoned.io", "jane", admission.Update, going, renamed, true},
		"record, creation":                       {"records.bindy.firestoned.io", "jane", admission.Create, plain, "", true},
		"record, creation with a deletion time":  {"records.bindy.firestoned.io", "jane", admission.Create, going, "", true},
		"record, creation by the controller":     {"records.bindy.firestoned.io", controllerUser, admission.Create, plain, "", true},
		"record, new labels":                     {"changed.records.bindy.firestoned.io", "jane", admission.Update, labeled, plain, true},
		"record, consent":                        {"changed.records.bindy.firestoned.io", "jane", admission.Update, "{metadata: {annotations: {bindy.firestoned.io/allow-zone-namespaces: dns}}, spec: {name: a}}", plain, true},
		"marks, consent":                         {"mark.records.bindy.firestoned.io", "jane", admission.Update, "{metadata: {annotations: {bindy.firestoned.io/allow-zone-namespaces: dns}}, spec: {name: a}}", plain, false},
		"record, nothing changes":                {"changed.records.bindy.firestoned.io", "jane", admission.Update, noted, plain, false},
		"record, annotation edited":              {"changed.records.bindy.firestoned.io", "jane", admission.Update, unstampedRecord, markedRecord, false},
		"record that is deleted":                 {"changed.records.bindy.firestoned.io", "jane", admission.Update, going, renamed, false},
		"record that is deleted, by a PUT":       {"changed.records.bindy.firestoned.io", "jane", admission.Update, renamed, going, false},
		"zone, new spec":                         {"zones.bindy.firestoned.io", "jane", admission.Update, renamed, plain, true},
		"zone that is deleted, new spec":         {"zones.bindy.firestoned.io", "jane", admission.Update, going, renamed, true},
		"zone that is deleted, without a mark":   {"zones.bindy.firestoned.io", "jane", admission.Update, unheldRecord, markedGoing, false},
		"endpoints, new spec":                    {"endpoints.bindy.firestoned.io", "jane", admission.Update, renamed, plain, true},
		"instance, new labels":                   {"instances.bindy.firestoned.io", "jane", admission.Update, labeled, plain, true},
		"instance, nothing changes":              {"instances.bindy.firestoned.io", "jane", admission.Update, noted, plain, false},
		"instance, new spec":                     {"instances.bindy.firestoned.io", "jane", admission.Update, renamed, plain, true},
		"instance, by the fleet manager":         {"instances.bindy.firestoned.io", fleetUser, admission.Create, plain, "", false},
		"instance, by the controller":            {"instances.bindy.firestoned.io", controllerUser, admission.Create, plain, "", true},
		"deletion":                               {"deletions.bindy.firestoned.io", "jane", admission.Delete, "", plain, true},
		"deletion by another's controller":       {"deletions.bindy.firestoned.io", lookalike, admission.Delete, "", plain, true},
		"deletion by the fleet manager":          {"deletions.bindy.firestoned.io", fleetUser, admission.Delete, "", plain, false},
		"deletion by the controller":             {"deletions.bindy.firestoned.io", controllerUser, admission.Delete, "", plain, true},
		"deletion by the uninstaller":            {"deletions.bindy.firestoned.io", uninstallUser, admission.Delete, "", plain, false},
		"deletion by Kubernetes":                 {"deletions.bindy.firestoned.io", "system:kube-controller-manager", admission.Delete, "", plain, false},
		"deletion by the garbage collector":      {"deletions.bindy.firestoned.io", "system:serviceaccount:kube-system:generic-garbage-collector", admission.Delete, "", plain, false},
		"deletion that is allowed":               {"deletions.bindy.firestoned.io", "jane", admission.Delete, "", "{metadata: {annotations: {bindy.firestoned.io/allow-deletion: 'true'}}}", false},
		"deletion that is not allowed":           {"deletions.bindy.firestoned.io", "jane", admission.Delete, "", "{metadata: {annotations: {bindy.firestoned.io/allow-deletion: 'no'}}}", true},
	}
	conditions, met := matchers(t), map[string]bool{}
	for name, tc := range tests {
		met[tc.webhook] = true
		t.Run(name, func(t *testing.T) {
			if got := isCalled(t, conditions[tc.webhook], tc.user, tc.operation, objectOf(t, tc.object), objectOf(t, tc.old)); got != tc.want {
				t.Errorf("called = %v, want %v", got, tc.want)
			}
		})
	}
	for name := range conditions {
		if !met[name] {
			t.Errorf("no case of webhook %s", name)
		}
	}
}

// isCalled reports whether kube-apiserver calls a webhook for a request that its rules name.
func isCalled(t *testing.T, conditions matchconditions.Matcher, name string, operation admission.Operation, object, old runtime.Object) bool {
	t.Helper()
	attributes := admission.NewAttributesRecord(object, old, schema.GroupVersionKind{}, "dns", "x", schema.GroupVersionResource{}, "", operation, nil, false, &user.DefaultInfo{Name: name})
	versioned := &admission.VersionedAttributes{Attributes: attributes}
	versioned.VersionedObject.Set(attributes.GetObject())
	versioned.VersionedOldObject.Set(attributes.GetOldObject())
	got := conditions.Match(t.Context(), versioned, nil, nil)
	if got.Error != nil {
		t.Fatal(got.Error)
	}
	return got.Matches
}

// Whatever changes in a record, one webhook is called at most: the one that reviews if what is in DNS may change, or else the one that marks if a
// mark may.
func TestUpdateOfARecordCostsOneCall(t *testing.T) {
	conditions := matchers(t)
	const changes = 6
	for _, who := range []string{"jane", controllerUser} {
		for _, goes := range []struct{ before, after bool }{{false, false}, {true, true}, {true, false}} {
			for set := range 1 << changes {
				old := recordWith(t, goes.before, "a", "a", "a.test", "", true)
				changed := func(i int) bool { return set&(1<<i) != 0 }
				pick := func(i int, a, b string) string {
					if changed(i) {
						return b
					}
					return a
				}
				object := recordWith(t, goes.after, pick(0, "a", "b"), pick(1, "a", "b"), pick(2, "a.test", ""), pick(3, "", "x/A"), !changed(4))
				if changed(5) {
					object.SetAnnotations(nil)
				}
				deleted := goes.before || goes.after
				data := !deleted && (changed(0) || changed(1))
				marks := who == "jane" && (changed(0) || !deleted && changed(4) || changed(2) || changed(5) || changed(3))
				reviews := isCalled(t, conditions["changed.records.bindy.firestoned.io"], who, admission.Update, object, old)
				only := isCalled(t, conditions["mark.records.bindy.firestoned.io"], who, admission.Update, object, old)
				if reviews != data || only != (marks && !data) {
					t.Fatalf("%s, %+v, changes %06b: reviewed = %t, marked = %t; data may change = %t, marks = %t", who, goes, set, reviews, only, data, marks)
				}
			}
		}
	}
}

// recordWith returns a record of a user.
func recordWith(t *testing.T, deleted bool, name, label, stamp, former string, marked bool) *unstructured.Unstructured {
	t.Helper()
	record, ok := objectOf(t, fmt.Sprintf("{metadata: {labels: {app: %s}}, spec: {name: %s}}", label, name)).(*unstructured.Unstructured)
	if !ok {
		t.Fatal("no object")
	}
	annotations := map[string]string{}
	for key, value := range map[string]string{v1beta1.ZoneAnnotation: stamp, v1beta1.FormerNamesAnnotation: former} {
		if value != "" {
			annotations[key] = value
		}
	}
	record.SetAnnotations(annotations)
	if marked {
		record.SetFinalizers([]string{v1beta1.Finalizer})
	}
	if deleted {
		record.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1_700_000_000, 0)})
	}
	return record
}

// matchers are the compiled conditions of all webhooks.
func matchers(t *testing.T) map[string]matchconditions.Matcher {
	t.Helper()
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	// What is not allowed is refused here: a condition with an error must not pass for one that keeps a webhook away.
	fail := admissionregistrationv1.Fail
	mutating, validating := configurations(t)
	all := map[string]matchconditions.Matcher{}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].FailurePolicy = &fail
		all[mutating.Webhooks[i].Name] = webhook.NewMutatingWebhookAccessor("", "", &mutating.Webhooks[i]).GetCompiledMatcher(compiler)
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].FailurePolicy = &fail
		all[validating.Webhooks[i].Name] = webhook.NewValidatingWebhookAccessor("", "", &validating.Webhooks[i]).GetCompiledMatcher(compiler)
	}
	return all
}

// objectOf reads an object; it is nil when there is none, as the old one of a creation.
func objectOf(t *testing.T, text string) runtime.Object {
	t.Helper()
	if text == "" {
		return nil
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetName("x") // No stored object is without metadata.
	return object
}

package review

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
	const plain, going = "{spec: {name: a}}", "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', labels: {a: b}}, spec: {name: a}}"
	tests := map[string]struct {
		webhook, user string
		operation     admission.Operation
		object, old   string
		want          bool
	}{
		"marks, creation":                        {"mark.records.bindy.firestoned.io", "jane", admission.Create, plain, "", true},
		"marks, nothing changes":                 {"mark.records.bindy.firestoned.io", "jane", admission.Update, noted, plain, false},
		"marks, new labels":                      {"mark.records.bindy.firestoned.io", "jane", admission.Update, labeled, plain, true},
		"marks, new spec":                        {"mark.records.bindy.firestoned.io", "jane", admission.Update, renamed, plain, true},
		"marks, annotation edited":               {"mark.records.bindy.firestoned.io", "jane", admission.Update, unstampedRecord, markedRecord, true},
		"marks, finalizer removed":               {"mark.records.bindy.firestoned.io", "jane", admission.Update, unheldRecord, markedRecord, true},
		"marks, of an object that is deleted":    {"mark.records.bindy.firestoned.io", "jane", admission.Update, going, plain, false},
		"marks, creation by the controller":      {"mark.records.bindy.firestoned.io", controllerUser, admission.Create, plain, "", false},
		"marks, removed by the controller":       {"mark.records.bindy.firestoned.io", controllerUser, admission.Update, plain, markedRecord, false},
		"marks, removed by the uninstaller":      {"mark.records.bindy.firestoned.io", uninstallUser, admission.Update, plain, markedRecord, false},
		"marks, removed by another's controller": {"mark.records.bindy.firestoned.io", lookalike, admission.Update, plain, markedRecord, true},
		"marks of endpoints, finalizer removed":  {"mark.endpoints.bindy.firestoned.io", "jane", admission.Update, plain, markedRecord, true},
		"marks of endpoints, new labels":         {"mark.endpoints.bindy.firestoned.io", "jane", admission.Update, labeled, plain, false},
		"marks of endpoints, by the controller":  {"mark.endpoints.bindy.firestoned.io", controllerUser, admission.Update, plain, markedRecord, false},
		"record, creation":                       {"records.bindy.firestoned.io", "jane", admission.Create, plain, "", true},
		"record, creation by the controller":     {"records.bindy.firestoned.io", controllerUser, admission.Create, plain, "", true},
		"record, new labels":                     {"records.bindy.firestoned.io", "jane", admission.Update, labeled, plain, true},
		"record, nothing changes":                {"records.bindy.firestoned.io", "jane", admission.Update, noted, plain, false},
		"record, annotation edited":              {"records.bindy.firestoned.io", "jane", admission.Update, unstampedRecord, markedRecord, false},
		"record that is deleted":                 {"records.bindy.firestoned.io", "jane", admission.Update, going, renamed, false},
		"zone, new spec":                         {"zones.bindy.firestoned.io", "jane", admission.Update, renamed, plain, true},
		"zone that is deleted":                   {"zones.bindy.firestoned.io", "jane", admission.Update, going, renamed, false},
		"endpoints, new spec":                    {"endpoints.bindy.firestoned.io", "jane", admission.Update, renamed, plain, true},
		"instance, new labels":                   {"instances.bindy.firestoned.io", "jane", admission.Update, labeled, plain, false},
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
			attributes := admission.NewAttributesRecord(objectOf(t, tc.object), objectOf(t, tc.old), schema.GroupVersionKind{}, "dns", "x",
				schema.GroupVersionResource{}, "", tc.operation, nil, false, &user.DefaultInfo{Name: tc.user})
			versioned := &admission.VersionedAttributes{Attributes: attributes}
			versioned.VersionedObject.Set(attributes.GetObject())
			versioned.VersionedOldObject.Set(attributes.GetOldObject())
			got := conditions[tc.webhook].Match(t.Context(), versioned, nil, nil)
			if got.Error != nil || got.Matches != tc.want {
				t.Errorf("called = %v, want %v; error %v", got.Matches, tc.want, got.Error)
			}
		})
	}
	for name := range conditions {
		if !met[name] {
			t.Errorf("no case of webhook %s", name)
		}
	}
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

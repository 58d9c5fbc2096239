package review

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/webhook/mark"
)

// configurations reads manifests/base/admission.yaml.
func configurations(t *testing.T) (mutating admissionregistrationv1.MutatingWebhookConfiguration, validating admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	text, err := os.ReadFile("../../manifests/base/admission.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	if len(documents) != 2 {
		t.Fatalf("%d documents, want 2", len(documents))
	}
	for i, into := range []any{&mutating, &validating} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	return mutating, validating
}

// Deletions of what others depend on are sent, and nothing of them waits for a webhook that is away.
func checkDeletions(t *testing.T, webhook admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	if *webhook.FailurePolicy != admissionregistrationv1.Ignore || *webhook.TimeoutSeconds > 5 || *webhook.SideEffects != admissionregistrationv1.SideEffectClassNone {
		t.Errorf("%s: failure policy, timeout or side effects", webhook.Name)
	}
	if diff := cmp.Diff([]string{"dnszones", "bind9instances", "bind9clusters", "bind9globalclusters", "clusterbind9providers"}, webhook.Rules[0].Resources); diff != "" {
		t.Errorf("%s: kinds (-want +got):\n%s", webhook.Name, diff)
	}
}

// Nothing in the cluster waits for the webhook but records and zones, and it is called for our kinds alone.
func TestConfigurationsTouchNothingElse(t *testing.T) {
	mutating, validating := configurations(t)
	rules := map[string][]admissionregistrationv1.RuleWithOperations{}
	var closed []string
	for _, webhook := range mutating.Webhooks {
		rules[webhook.Name] = webhook.Rules
		if *webhook.FailurePolicy == admissionregistrationv1.Fail {
			closed = append(closed, webhook.Name)
		}
	}
	for _, webhook := range validating.Webhooks {
		rules[webhook.Name] = webhook.Rules
		if *webhook.FailurePolicy == admissionregistrationv1.Fail {
			closed = append(closed, webhook.Name)
		}
	}
	if diff := cmp.Diff([]string{"records.bindy.firestoned.io", "changed.records.bindy.firestoned.io", "zones.bindy.firestoned.io"}, closed); diff != "" {
		t.Errorf("webhooks that fail closed (-want +got):\n%s", diff)
	}
	if n := len(mutating.Webhooks) + len(validating.Webhooks); n != len(rules) {
		t.Errorf("%d webhooks with %d names", n, len(rules))
	}
	for name, all := range rules {
		for _, rule := range all {
			groups := []string{"bindy.firestoned.io"}
			if slices.Contains(rule.Resources, "dnsendpoints") {
				groups = []string{"externaldns.k8s.io"}
			}
			if !slices.Equal(rule.APIGroups, groups) || slices.ContainsFunc(rule.Resources, func(r string) bool { return strings.ContainsAny(r, "*/") }) {
				t.Errorf("%s is called for %v of %v", name, rule.Resources, rule.APIGroups)
			}
		}
	}
}

// The configuration sends every kind that has a reviewer, to the paths that are served, and cannot hold up the cluster.
func TestConfigurationsFitTheHandlers(t *testing.T) {
	mutating, validating := configurations(t)
	var records, reviewed []string
	for _, kind := range v1beta1.RecordKinds {
		records = append(records, kind.Resource)
	}
	for _, webhook := range mutating.Webhooks {
		if path := *webhook.ClientConfig.Service.Path; path != mark.Path {
			t.Errorf("%s: marking at %s", webhook.Name, path)
		}
		if *webhook.ReinvocationPolicy != admissionregistrationv1.IfNeededReinvocationPolicy {
			t.Errorf("%s: does not see what later webhooks change", webhook.Name)
		}
		kinds := webhook.Rules[0].Resources
		if creates := slices.Contains(webhook.Rules[0].Operations, admissionregistrationv1.Create); creates {
			reviewed = append(reviewed, kinds...)
		} else if diff := cmp.Diff(records, kinds); diff != "" {
			t.Errorf("%s: kinds (-want +got):\n%s", webhook.Name, diff)
		}
		if strings.HasPrefix(webhook.Name, "mark.") && *webhook.FailurePolicy != admissionregistrationv1.Ignore {
			t.Errorf("%s: can hold up objects", webhook.Name)
		}
		checkReviewing(t, webhook.Name, *webhook.TimeoutSeconds, *webhook.SideEffects, webhook.NamespaceSelector, webhook.Rules)
	}
	if diff := cmp.Diff(append(records, "dnsendpoints"), reviewed); diff != "" {
		t.Errorf("kinds that are marked and reviewed in one call (-want +got):\n%s", diff)
	}
	for _, webhook := range validating.Webhooks {
		if webhook.Rules[0].Operations[0] == admissionregistrationv1.Delete {
			checkDeletions(t, webhook)
			continue
		}
		reviewed = append(reviewed, webhook.Rules[0].Resources...)
		if path := *webhook.ClientConfig.Service.Path; path != Path {
			t.Errorf("%s: validating at %s", webhook.Name, path)
		}
		checkReviewing(t, webhook.Name, *webhook.TimeoutSeconds, *webhook.SideEffects, webhook.NamespaceSelector, webhook.Rules)
	}
	if n := len(NewHandler(newStaticObjects()).kinds); n != len(reviewed) {
		t.Errorf("%d kinds have a reviewer, %d are sent: %q", n, len(reviewed), reviewed)
	}
}

// A webhook that is called for creations and updates waits for little, and not for the system's objects.
func checkReviewing(t *testing.T, name string, timeout int32, effects admissionregistrationv1.SideEffectClass, selector *metav1.LabelSelector, rules []admissionregistrationv1.RuleWithOperations) {
	t.Helper()
	if timeout > 5 || effects != admissionregistrationv1.SideEffectClassNone {
		t.Errorf("%s: timeout or side effects", name)
	}
	if skipped := selector.MatchExpressions[0].Values; !slices.Contains(skipped, "kube-system") || !slices.Contains(skipped, "lockstep-system") {
		t.Errorf("%s: called for the system's namespaces", name)
	}
	for _, rule := range rules {
		if slices.Contains(rule.Operations, admissionregistrationv1.Delete) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) {
			t.Errorf("%s: called for deletions", name)
		}
	}
}

package doctor

import (
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// judgeWebhooks looks for each webhook of the manifests, and compares what becomes of requests that it does not answer.
func judgeWebhooks(f *Facts) Finding {
	for _, read := range []struct {
		request string
		err     error
	}{{f.Mutating.Request, f.Mutating.Err}, {f.Validating.Request, f.Validating.Err}} {
		switch {
		case apierrors.IsNotFound(read.err):
			return failure(applyManifests, "could not %s: it does not exist, so nothing is reviewed", read.request)
		case read.err != nil:
			return unread(read.request, read.err)
		}
	}
	installed, known := policiesOf(f.Mutating.Value, f.Validating.Value), policiesOf(f.KnownMutating, f.KnownValidating)
	var missing, different []string
	for _, w := range known {
		switch policy, exists := findPolicy(installed, w.name); {
		case !exists:
			missing = append(missing, w.name)
		case policy != w.policy:
			different = append(different, fmt.Sprintf("%s has failurePolicy %s, not %s", w.name, policy, w.policy))
		}
	}
	switch {
	case len(missing) > 0:
		return failure(applyManifests, "missing: %s", joinSome(missing, ", "))
	case len(different) > 0:
		return warning(applyManifests, "%s", joinSome(different, "; "))
	}
	return ok("all %d are configured", len(known))
}

// webhookPolicy is what becomes of requests that a webhook does not answer.
type webhookPolicy struct {
	name   string
	policy admissionv1.FailurePolicyType
}

func policiesOf(m admissionv1.MutatingWebhookConfiguration, v admissionv1.ValidatingWebhookConfiguration) (all []webhookPolicy) {
	for _, w := range m.Webhooks {
		all = append(all, webhookPolicy{w.Name, ptr.Deref(w.FailurePolicy, admissionv1.Fail)})
	}
	for _, w := range v.Webhooks {
		all = append(all, webhookPolicy{w.Name, ptr.Deref(w.FailurePolicy, admissionv1.Fail)})
	}
	return all
}

func findPolicy(all []webhookPolicy, name string) (admissionv1.FailurePolicyType, bool) {
	for _, w := range all {
		if w.name == name {
			return w.policy, true
		}
	}
	return "", false
}

func judgeWebhookEndpoints(f *Facts) Finding {
	return f.judgeEndpoints(f.WebhookEndpoints, webhookName)
}

func judgeAPIServerEndpoints(f *Facts) Finding {
	return f.judgeEndpoints(f.APIServerEndpoints, apiServerName)
}

// judgeEndpoints looks for an endpoint of a Service that is ready.
func (f *Facts) judgeEndpoints(read Fact[[]discoveryv1.EndpointSlice], service string) Finding {
	if read.Err != nil {
		return unread(read.Request, read.Err)
	}
	ready, others := 0, 0
	for _, slice := range read.Value {
		for _, e := range slice.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) {
				ready += len(e.Addresses)
			} else {
				others += len(e.Addresses)
			}
		}
	}
	if ready == 0 {
		return failure(fmt.Sprintf("kubectl -n %s get deployment,pods -l app.kubernetes.io/component=%s", f.Namespace, strings.TrimPrefix(service, "lockstep-")),
			"Service %s has no endpoint that is ready, and %d that are not", service, others)
	}
	return ok("Service %s has %s", service, status.CountOf(ready, "ready endpoint"))
}

// slowAdmission is how long a review may take before writers notice.
const slowAdmission = 2 * time.Second

// judgeAdmission judges what became of a record that was created with dryRun: it was reviewed and not stored.
func judgeAdmission(f *Facts) Finding {
	remedy := fmt.Sprintf("kubectl -n %s logs deployment/%s", f.Namespace, webhookName)
	err := f.Admission.Err
	switch {
	case err != nil && strings.Contains(err.Error(), "denied the request"):
		return ok("the webhook answers: %v", err)
	case err != nil && strings.Contains(err.Error(), "failed calling webhook") && strings.Contains(err.Error(), "x509"):
		return failure("kube-apiserver does not trust the webhook: see caBundles and serving above", "no record can be created or changed: %v", err)
	case err != nil && strings.Contains(err.Error(), "failed calling webhook"):
		return failure(remedy, "no record can be created or changed: %v", err)
	case apierrors.IsNotFound(err):
		return failure("see the definitions above, or name a namespace that exists with -n", "could not %s: %v", f.Admission.Request, err)
	case err != nil:
		return unread(f.Admission.Request, err)
	case f.Admission.Value > slowAdmission:
		return warning(remedy, "a record passes, but that takes %s", f.Admission.Value.Round(time.Millisecond))
	}
	return ok("a record passes in %s (nothing is stored)", f.Admission.Value.Round(time.Millisecond))
}

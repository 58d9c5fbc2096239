package rig

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BareFinalizer is what the webhook of the bare kind sets.
const BareFinalizer = bareGroup + "/finalizer"

// StartBareWebhook has kube-apiserver call a webhook for each bare record that is created, until it is stopped. It runs in this process,
// looks at nothing, and sets a finalizer: what one call needs at least. It can only be called from this machine.
func (r *Rig) StartBareWebhook(ctx context.Context) (stop func() error, err error) {
	server := httptest.NewTLSServer(http.HandlerFunc(answerReview))
	config := newBareWebhook()
	config.Webhooks = []admissionv1.MutatingWebhook{{
		Name: bareResource + "." + bareGroup, AdmissionReviewVersions: []string{"v1"}, FailurePolicy: new(admissionv1.Fail),
		SideEffects: new(admissionv1.SideEffectClassNone),
		ClientConfig: admissionv1.WebhookClientConfig{
			URL:      new(server.URL + "/"),
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{bareGroup}, APIVersions: []string{"*"}, Resources: []string{bareResource}},
		}},
	}}
	if err := r.Client.Create(ctx, config); err != nil {
		server.Close()
		return nil, err
	}
	return func() error {
		defer server.Close()
		return r.removeBareWebhook(ctx)
	}, nil
}

func (r *Rig) removeBareWebhook(ctx context.Context) error {
	return client.IgnoreNotFound(r.Client.Delete(ctx, newBareWebhook()))
}

func newBareWebhook() *admissionv1.MutatingWebhookConfiguration {
	return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(bareGroup, ".", "-")}}
}

// answerReview marks whatever is to be created.
func answerReview(w http.ResponseWriter, r *http.Request) {
	var review struct{ Request struct{ UID string } }
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/metadata/finalizers","value":[%q]}]`, BareFinalizer)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"response": map[string]any{"uid": review.Request.UID, "allowed": true, "patchType": "JSONPatch", "patch": patch},
	})
}

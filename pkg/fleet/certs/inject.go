package certs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// FieldOwner is the field owner of every caBundle.
const FieldOwner = "lockstep-certs"

// Target is a cluster-scoped object that holds caBundles: an APIService or a webhook configuration.
type Target struct {
	Resource schema.GroupVersionResource
	Name     string
}

// APIService is the Target of an APIService.
func APIService(name string) Target {
	return Target{schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, name}
}

// MutatingWebhook is the Target of a MutatingWebhookConfiguration; every webhook in it gets the bundle.
func MutatingWebhook(name string) Target {
	return Target{schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}, name}
}

// ValidatingWebhook is the Target of a ValidatingWebhookConfiguration; every webhook in it gets the bundle.
func ValidatingWebhook(name string) Target {
	return Target{schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}, name}
}

// injectBundle makes the bundle the target's caBundle. A target that does not exist has no verifier behind it: that is no error.
func injectBundle(ctx context.Context, client dynamic.Interface, target Target, bundle []byte) error {
	objects := client.Resource(target.Resource)
	obj, err := objects.Get(ctx, target.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", target.Resource.Resource, target.Name, err)
	}
	if isCurrent(obj, bundle) {
		return nil
	}
	patch, err := json.Marshal(applyConfiguration(obj, bundle))
	if err != nil {
		return fmt.Errorf("encoding the caBundle of %s %s: %w", target.Resource.Resource, target.Name, err)
	}
	_, err = objects.Patch(ctx, target.Name, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: FieldOwner, Force: new(true)})
	if err != nil {
		return fmt.Errorf("publishing the caBundle of %s %s: %w", target.Resource.Resource, target.Name, err)
	}
	return nil
}

// isCurrent reports whether every caBundle of the object is the bundle already.
func isCurrent(obj *unstructured.Unstructured, bundle []byte) bool {
	want := base64.StdEncoding.EncodeToString(bundle)
	webhooks, isWebhook := webhooksOf(obj)
	if !isWebhook {
		have, _, _ := unstructured.NestedString(obj.Object, "spec", "caBundle")
		return have == want
	}
	return !slices.ContainsFunc(webhooks, func(webhook map[string]any) bool {
		have, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle")
		return have != want
	})
}

// applyConfiguration owns the object's caBundles and nothing else, in a server-side apply. The UID in it keeps the object from being made
// again when it has just been deleted.
func applyConfiguration(obj *unstructured.Unstructured, bundle []byte) map[string]any {
	config := map[string]any{
		"apiVersion": obj.GetAPIVersion(),
		"kind":       obj.GetKind(),
		"metadata":   map[string]any{"name": obj.GetName(), "uid": string(obj.GetUID())},
	}
	webhooks, isWebhook := webhooksOf(obj)
	if !isWebhook {
		config["spec"] = map[string]any{"caBundle": bundle}
		return config
	}
	var entries []map[string]any
	for _, webhook := range webhooks {
		entries = append(entries, map[string]any{"name": webhook["name"], "clientConfig": map[string]any{"caBundle": bundle}})
	}
	config["webhooks"] = entries
	return config
}

func webhooksOf(obj *unstructured.Unstructured) ([]map[string]any, bool) {
	list, found, err := unstructured.NestedSlice(obj.Object, "webhooks")
	if !found || err != nil {
		return nil, false
	}
	var webhooks []map[string]any
	for _, item := range list {
		if webhook, ok := item.(map[string]any); ok {
			webhooks = append(webhooks, webhook)
		}
	}
	return webhooks, true
}

package clusterapi

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrastructure "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/infrastructure/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// connectionType is the type of the Secrets that Crossplane writes (crossplane-runtime, SecretTypeConnection). No other is read: who
// may name a Secret may not be allowed to read it.
const connectionType = corev1.SecretType("connection.crossplane.io/v1alpha1")

// vpcEntry is the entry of a connection Secret that has the ID of the network, vpcPattern what an ID looks like.
const vpcEntry = "vpc_id"

var vpcPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Bounds of the outputs that are shown.
const (
	maxOutputs      = 64
	maxOutputLength = 1024
)

var workspaceKind = infrastructure.GroupVersion.WithKind("WorkspaceTemplateApply")

// readWorkspace returns a WorkspaceTemplateApply and what is known of it. An error is one that may pass.
func readWorkspace(ctx context.Context, live client.Reader, key client.ObjectKey) (*unstructured.Unstructured, status.Workspace, error) {
	found, w := &unstructured.Unstructured{}, status.Workspace{Name: key.Name}
	found.SetGroupVersionKind(workspaceKind)
	err := live.Get(ctx, key, found)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, w, nil
	case err != nil:
		w.Unread = err.Error()
		return nil, w, fmt.Errorf("reading WorkspaceTemplateApply %s: %w", key.Name, err)
	}
	w.Found, w.Generation = true, found.GetGeneration()
	w.Synced, w.Ready = verdictIn(found, "Synced"), verdictIn(found, "Ready")
	w.Outputs = outputsOf(found)
	return found, w, nil
}

// verdictIn returns a condition of a foreign object, zero if it has none that can be read.
func verdictIn(o *unstructured.Unstructured, kind string) status.Verdict {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range all {
		fields, _ := c.(map[string]any)
		if text := func(field string) string { s, _ := fields[field].(string); return s }; text("type") == kind {
			return status.Verdict{Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
		}
	}
	return status.Verdict{}
}

// outputsOf returns the outputs that a workspace's status shows: as many and as long as a status may have.
func outputsOf(o *unstructured.Unstructured) map[string]string {
	all, _, _ := unstructured.NestedMap(o.Object, "status", "outputs")
	shown := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if value, ok := all[name].(string); ok && len(name)+len(value) <= maxOutputLength && len(shown) < maxOutputs {
			shown[name] = value
		}
	}
	if len(shown) == 0 {
		return nil
	}
	return shown
}

// readVPC completes what is known of a network with its ID, from the connection Secret that the workspace names. An error is one that
// may pass.
func readVPC(ctx context.Context, live client.Reader, workspace *unstructured.Unstructured, facts *status.CAPTClusterFacts) error {
	name, _, _ := unstructured.NestedString(workspace.Object, "spec", "writeConnectionSecretToRef", "name")
	namespace, _, _ := unstructured.NestedString(workspace.Object, "spec", "writeConnectionSecretToRef", "namespace")
	switch {
	case name == "":
		facts.SecretProblem = status.NoSecretNamed(workspace.GetName())
		return nil
	case namespace != "" && namespace != workspace.GetNamespace():
		facts.SecretProblem = status.SecretElsewhere(workspace.GetName(), workspace.GetNamespace())
		return nil
	}
	secret := &corev1.Secret{}
	err := live.Get(ctx, client.ObjectKey{Namespace: workspace.GetNamespace(), Name: name}, secret)
	switch {
	case apierrors.IsForbidden(err):
		facts.SecretProblem = status.SecretForbidden(name)
		return nil
	case client.IgnoreNotFound(err) != nil:
		facts.SecretUnread = err.Error()
		return fmt.Errorf("reading Secret %s: %w", name, err)
	}
	if id := string(secret.Data[vpcEntry]); secret.Type == connectionType && vpcPattern.MatchString(id) {
		facts.VPCID = id
		return nil
	}
	facts.SecretProblem = status.SecretIncomplete(name, string(connectionType), vpcEntry)
	return nil
}

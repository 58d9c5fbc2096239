package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldOwner is the field manager of everything that the controller and the fleet manager write: different objects.
const FieldOwner = "lockstep-controller"

// Status writes the whole status of one object by server-side apply, whatever version the object has by now. status is a pointer to the typed
// status; what it leaves out is taken away from the object, whoever has written it. An object that is gone needs no status: that is not
// an error.
func Status(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, obj client.Object, status any) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("encoding the status of %s %s/%s: %w", gvk.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(obj.GetNamespace())
	u.SetName(obj.GetName())
	// An apply to a name that does not exist would create it; the UID makes sure that it is still this object.
	u.SetUID(obj.GetUID())
	err = c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner(FieldOwner))
	if isGone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of %s %s/%s: %w", gvk.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	if written, ok := u.Object["status"].(map[string]any); ok && !equality.Semantic.DeepEqual(written, fields) {
		_, err = ReplaceStatus(ctx, c, gvk, u, status) // An apply leaves what others have written.
	}
	return err
}

// jsonPatch is an operation of RFC 6902.
type jsonPatch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// ReplaceStatus replaces the whole status of an object, on condition that nobody has changed the object since it was read, and returns its
// new resource version. A status that keeps what the object had of others loses nothing of theirs. A server-side apply, which leaves it
// alone by itself, costs kube-apiserver more. An object that is gone needs no status: that is not an error.
func ReplaceStatus(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, obj client.Object, status any) (string, error) {
	patch, err := json.Marshal([]jsonPatch{{"replace", "/metadata/resourceVersion", obj.GetResourceVersion()}, {"add", "/status", status}})
	if err != nil {
		return "", fmt.Errorf("encoding the status of %s %s/%s: %w", gvk.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	// The answer is metadata alone.
	written := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	written.SetGroupVersionKind(gvk)
	err = c.Status().Patch(ctx, written, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldOwner))
	if isGone(err) {
		return obj.GetResourceVersion(), nil
	}
	if err != nil {
		return "", fmt.Errorf("writing the status of %s %s/%s: %w", gvk.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	return written.ResourceVersion, nil
}

// isGone reports whether an object could not be written because it does not exist any more, or is another one by now.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) || (apierrors.IsConflict(err) && strings.Contains(err.Error(), "UID"))
}

package syncevent

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldOwner is the server-side apply manager of every status that the controller writes.
const FieldOwner = "lockstep-controller"

// ApplyStatus writes the whole status of one object by server-side apply. status is a pointer to the typed status; what
// it leaves out is taken away from the object. An object that is gone needs no status: that is not an error.
func ApplyStatus(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, obj client.Object, status any) error {
	_, err := applyStatus(ctx, c, gvk, obj, "", status)
	return err
}

// applyStatus writes a status. With a version it is a conflict when the object has another one by now: what was read was
// not the latest, and a status made from it might forget what the latest says is in DNS.
func applyStatus(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, obj client.Object, version string, status any) (string, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return "", fmt.Errorf("encoding the status of %s %s/%s: %w", gvk.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(obj.GetNamespace())
	u.SetName(obj.GetName())
	// An apply to a name that does not exist would create it; the UID makes sure that it is still this object.
	u.SetUID(obj.GetUID())
	u.SetResourceVersion(version)
	err = c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner(FieldOwner))
	if gone(err) {
		return version, nil
	}
	if err != nil {
		return "", fmt.Errorf("writing the status of %s %s/%s: %w", gvk.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	return u.GetResourceVersion(), nil
}

// UpdateMetadata changes an object's metadata, if change makes a difference, on condition that nobody changed the
// object since it was read. An object that is gone is left alone.
func UpdateMetadata(ctx context.Context, c client.Client, obj client.Object, change func(client.Object)) error {
	_, err := updateMetadata(ctx, c, obj, change)
	return err
}

// updateMetadata is UpdateMetadata and gives the object as it is afterwards.
func updateMetadata(ctx context.Context, c client.Client, obj client.Object, change func(client.Object)) (client.Object, error) {
	next := obj.DeepCopyObject().(client.Object)
	change(next)
	if equality.Semantic.DeepEqual(obj.GetFinalizers(), next.GetFinalizers()) &&
		equality.Semantic.DeepEqual(obj.GetAnnotations(), next.GetAnnotations()) {
		return obj, nil
	}
	err := c.Patch(ctx, next, client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{}))
	if gone(err) {
		return next, nil
	}
	return next, err
}

// gone tells whether an object could not be written because it is not there any more, or is another one by now.
func gone(err error) bool {
	return apierrors.IsNotFound(err) || (apierrors.IsConflict(err) && strings.Contains(err.Error(), "UID"))
}

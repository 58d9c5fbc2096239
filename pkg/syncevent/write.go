package syncevent

import (
	"context"
	"fmt"

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
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of %s %s/%s: %w", gvk.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	return nil
}

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrForeign says that an object has the name of a child and belongs to somebody else. It is not changed, and with the
// child's owner not deleted.
var ErrForeign = errors.New("the object exists already and is somebody else's")

// writeOwned creates a child, or applies it to the object of that name if its controller is the child's. The object cannot
// be replaced by another one in between: creation fails if there is one, and the apply names the UID. A child without a
// controller is applied as it is.
func writeOwned(ctx context.Context, c client.Client, child runtime.ApplyConfiguration) error {
	wanted, err := asUnstructured(child)
	if err != nil {
		return err
	}
	owner := metav1.GetControllerOf(wanted)
	if owner == nil {
		return c.Apply(ctx, child, client.FieldOwner(FieldOwner), client.ForceOwnership)
	}
	live, err := readOrCreate(ctx, c, wanted)
	if live == nil || err != nil {
		return err
	}
	if holder := metav1.GetControllerOf(live); holder == nil || holder.UID != owner.UID {
		return fmt.Errorf("%w: delete or rename it, or give %s %s another name", ErrForeign, owner.Kind, owner.Name)
	}
	if err := adoptCreatedFields(ctx, c, live); err != nil {
		return err
	}
	wanted.SetUID(live.GetUID())
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner(FieldOwner), client.ForceOwnership)
}

func asUnstructured(child runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(child)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(text)
}

// readOrCreate returns the object that has the child's name, past the cache, or nil after it has created the child.
func readOrCreate(ctx context.Context, c client.Client, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	const attempts = 2 // Siblings may create a child that they share at the same time.
	for attempt := 1; ; attempt++ {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(wanted.GroupVersionKind())
		if err := c.Get(ctx, client.ObjectKeyFromObject(wanted), live); !apierrors.IsNotFound(err) {
			return live, err
		}
		err := c.Create(ctx, wanted.DeepCopy(), client.FieldOwner(FieldOwner))
		if !apierrors.IsAlreadyExists(err) || attempt == attempts {
			return nil, err
		}
	}
}

// adoptCreatedFields makes the fields that the controller set by creating an object fields that it applied: otherwise those
// that a later configuration leaves out would stay.
func adoptCreatedFields(ctx context.Context, c client.Client, live client.Object) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(FieldOwner), FieldOwner)
	if err != nil || patch == nil {
		return err
	}
	return c.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch))
}

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// ErrForeign says that an object has the name of a child and belongs to somebody else. It is not changed, and with the
// child's owner not deleted.
var ErrForeign = errors.New("the object exists already and is somebody else's")

// Predecessors names, as the end of a sentence, the object of an error that still belongs to a deleted owner of the same kind and name;
// empty for any other error. Kubernetes deletes the object in a moment.
func Predecessors(err error) string {
	var foreign *foreignError
	if !errors.As(err, &foreign) || !isPredecessor(foreign.holder, foreign.owner) {
		return ""
	}
	return fmt.Sprintf("the deletion of %s, which a former %s %s left", foreign.object, foreign.owner.Kind, foreign.owner.Name)
}

// CheckPredecessor fails with an error for Predecessors if a predecessor of the owner controls the object.
func CheckPredecessor(o client.Object, kind string, owner metav1.OwnerReference) error {
	if holder := metav1.GetControllerOf(o); isPredecessor(holder, &owner) {
		return &foreignError{object: nameOf(kind, o.GetNamespace(), o.GetName()), owner: &owner, holder: holder}
	}
	return nil
}

func isPredecessor(holder, owner *metav1.OwnerReference) bool {
	return holder != nil && holder.Kind == owner.Kind && holder.Name == owner.Name && holder.UID != owner.UID
}

// foreignError is an ErrForeign: an object has the name of a child of owner and is controlled by holder, or by nobody.
type foreignError struct {
	object        string
	owner, holder *metav1.OwnerReference
}

func (e *foreignError) Error() string {
	return fmt.Sprintf("%v: delete or rename it, or give %s %s another name", ErrForeign, e.owner.Kind, e.owner.Name)
}

func (e *foreignError) Unwrap() error { return ErrForeign }

// writeOwned creates a child, or applies it to the object of that name if its controller is the child's, and returns the
// object. It cannot be replaced by another one in between: creation fails if there is one, and the apply names the UID. A
// child without a controller is applied as it is.
func writeOwned(ctx context.Context, c client.Client, child runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	wanted, err := asUnstructured(child)
	if err != nil {
		return nil, err
	}
	if owner := metav1.GetControllerOf(wanted); owner != nil {
		live, created, err := readOrCreate(ctx, c, wanted)
		if created || err != nil {
			return live, err
		}
		if holder := metav1.GetControllerOf(live); holder == nil || holder.UID != owner.UID {
			return nil, &foreignError{nameOf(live.GetKind(), live.GetNamespace(), live.GetName()), owner, holder}
		}
		if err := adoptCreatedFields(ctx, c, live); err != nil {
			return nil, err
		}
		wanted.SetUID(live.GetUID())
	}
	return wanted, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner(FieldOwner), client.ForceOwnership)
}

// OutliveChildren has an object stay, once it is deleted, until Kubernetes has deleted its children: foreground deletion, unless the
// request to delete it says otherwise. The garbage collector learns of owners by watching them. One that came and went while it did not
// watch their kind would leave its children behind, and with the kind's definition gone for good.
func OutliveChildren(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, owner client.Object) error {
	if controllerutil.ContainsFinalizer(owner, metav1.FinalizerDeleteDependents) || owner.GetDeletionTimestamp() != nil {
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(owner.GetNamespace())
	u.SetName(owner.GetName())
	u.SetUID(owner.GetUID())
	u.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(FieldOwner), client.ForceOwnership)
	if err != nil && !isGone(err) {
		return fmt.Errorf("putting a finalizer on %s: %w", nameOf(gvk.Kind, owner.GetNamespace(), owner.GetName()), err)
	}
	return nil
}

func asUnstructured(child runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(child)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(text)
}

// readOrCreate reads the object with the child's name past the cache, and creates it if there is none.
func readOrCreate(ctx context.Context, c client.Client, wanted *unstructured.Unstructured) (live *unstructured.Unstructured, created bool, err error) {
	const attempts = 2 // Siblings may create a child that they share at the same time.
	for attempt := 1; ; attempt++ {
		live = &unstructured.Unstructured{}
		live.SetGroupVersionKind(wanted.GroupVersionKind())
		if err := c.Get(ctx, client.ObjectKeyFromObject(wanted), live); !apierrors.IsNotFound(err) {
			return live, false, err
		}
		live = wanted.DeepCopy()
		err := c.Create(ctx, live, client.FieldOwner(FieldOwner))
		if !apierrors.IsAlreadyExists(err) || attempt == attempts {
			return live, err == nil, err
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

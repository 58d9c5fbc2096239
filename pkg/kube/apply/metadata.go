package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Marks are the finalizers and annotations that a write adds to an object's metadata or removes from it, each by its name. All of
// them have the prefix of our API group: Metadata refuses to write anybody else's.
type Marks struct {
	AddFinalizers, RemoveFinalizers []string
	// SetAnnotations has values by name.
	SetAnnotations    map[string]string
	RemoveAnnotations []string
}

// Metadata adds and removes marks if that makes a difference, on condition that nobody has changed the object since it was read. It
// returns the object as it is afterwards. An object that is gone is left alone.
//
// The patch names the marks that change, and never comes from comparing two objects: what the cache drops from an object would look
// like something to delete. Only the list of finalizers is written as a whole, because a merge patch cannot change one entry; the
// cache keeps all of it, and the resource version guards it.
func Metadata(ctx context.Context, c client.Client, obj client.Object, marks Marks) (client.Object, error) {
	if err := marks.check(); err != nil {
		return obj, err
	}
	changes := marks.changesTo(obj)
	if len(changes) == 0 {
		return obj, nil
	}
	patch, err := MergePatch(obj.GetResourceVersion(), changes, nil)
	if err != nil {
		return obj, err
	}
	written := emptyLike(obj)
	err = c.Patch(ctx, written, patch)
	if isGone(err) {
		return obj, nil
	}
	return written, err
}

// MergePatch makes a JSON merge patch of fields of an object's metadata and of fields beside it, whose nested keys are all that it
// changes. With a resource version it fails with a conflict if the object has another one by now.
func MergePatch(resourceVersion string, metadata, fields map[string]any) (client.Patch, error) {
	object, own := map[string]any{}, map[string]any{}
	maps.Copy(object, fields)
	maps.Copy(own, metadata)
	if resourceVersion != "" {
		own["resourceVersion"] = resourceVersion
	}
	if len(own) > 0 {
		object["metadata"] = own
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return client.RawPatch(types.MergePatchType, text), nil
}

func (m Marks) check() error {
	names := slices.Concat(m.AddFinalizers, m.RemoveFinalizers, m.RemoveAnnotations)
	for name := range m.SetAnnotations {
		names = append(names, name)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, v1beta1.GroupName+"/") {
			return fmt.Errorf("%s is not a mark of %s, and is not to be changed", name, v1beta1.GroupName)
		}
	}
	return nil
}

// changesTo has the metadata in which an object differs from the marks, for a merge patch.
func (m Marks) changesTo(obj client.Object) map[string]any {
	changes, annotations := map[string]any{}, map[string]any{}
	have := obj.GetAnnotations()
	for name, value := range m.SetAnnotations {
		if was, ok := have[name]; !ok || was != value {
			annotations[name] = value
		}
	}
	for _, name := range m.RemoveAnnotations {
		if _, ok := have[name]; ok {
			annotations[name] = nil
		}
	}
	if len(annotations) > 0 {
		changes["annotations"] = annotations
	}
	was := obj.GetFinalizers()
	next := slices.DeleteFunc(append([]string{}, was...), func(name string) bool { return slices.Contains(m.RemoveFinalizers, name) })
	for _, name := range m.AddFinalizers {
		if !slices.Contains(next, name) {
			next = append(next, name)
		}
	}
	if !slices.Equal(was, next) {
		changes["finalizers"] = next
	}
	return changes
}

// emptyLike makes an object of the same type, kind and name with nothing else in it: decoding an answer would leave in place what the
// answer does not have.
func emptyLike(obj client.Object) client.Object {
	o := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	o.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	o.SetNamespace(obj.GetNamespace())
	o.SetName(obj.GetName())
	return o
}

package uninstall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// maxPatches is how many objects are patched at once.
const maxPatches = 32

// removeFinalizersUntilGone works again and again, because a reconciler that runs beside it may put its finalizer on an
// object once more, until the definition is gone or the process ends (from then on completeUninstall does it).
func (u *Uninstaller) removeFinalizersUntilGone(stopped context.Context, client metadata.Interface, resource schema.GroupVersionResource) {
	for {
		if _, gone := u.releaseObjects(stopped, client, resource); gone || !sleepFor(stopped, checkInterval) {
			return
		}
	}
}

// releaseObjects removes our finalizers once. It reports whether there were any, or may be some left, and whether the
// resource is gone.
func (u *Uninstaller) releaseObjects(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource) (more, gone bool) {
	count, err := u.removeFinalizers(ctx, client, resource)
	switch {
	case apierrors.IsNotFound(err):
		return false, true
	case err != nil && ctx.Err() == nil:
		u.log.Error(err, "Cannot release all objects; trying again", "resource", resource.Resource)
	case count > 0:
		u.log.Info("Released", "resource", resource.Resource, "objects", count)
	}
	return count > 0 || err != nil, false
}

// removeFinalizers removes our finalizers from every object of the resource, and returns how many had one. The error is
// NotFound when the resource is served no more.
func (u *Uninstaller) removeFinalizers(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource) (count int, err error) {
	objects := client.Resource(resource)
	list := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) }))
	var group errgroup.Group
	group.SetLimit(maxPatches)
	err = list.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		item := o.(*metav1.PartialObjectMetadata)
		if rest, ours := foreignFinalizers(item.Finalizers); ours {
			count++
			group.Go(func() error { return patchFinalizers(ctx, objects, item, rest) })
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("listing %s: %w", resource.Resource, err)
	}
	if patchErr := group.Wait(); patchErr != nil {
		err = errors.Join(err, fmt.Errorf("releasing %s: %w", resource.Resource, patchErr))
	}
	return count, err
}

// patchFinalizers sets the finalizers. An object that is gone, or that somebody changed meanwhile, is no error: the next round sees.
func patchFinalizers(ctx context.Context, client metadata.Getter, item *metav1.PartialObjectMetadata, finalizers []string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": item.ResourceVersion, "finalizers": finalizers,
	}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	objects := metadata.ResourceInterface(client)
	if item.Namespace != "" {
		objects = client.Namespace(item.Namespace)
	}
	_, err = objects.Patch(ctx, item.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: apply.UninstallAccount})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s/%s: %w", item.Namespace, item.Name, err)
	}
	return nil
}

// foreignFinalizers returns the finalizers that are not ours, never nil, and whether any was ours.
func foreignFinalizers(finalizers []string) (rest []string, ours bool) {
	rest = []string{}
	for _, finalizer := range finalizers {
		if strings.HasPrefix(finalizer, v1beta1.GroupName+"/") {
			ours = true
		} else {
			rest = append(rest, finalizer)
		}
	}
	return rest, ours
}

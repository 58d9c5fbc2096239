package uninstall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

const (
	// pageSize is how many objects are listed at once.
	pageSize = 500
	// workers is how many objects are patched at once.
	workers = 32
)

// stripUntilGone strips again and again, because a reconciler that runs beside it may put its finalizer on an object once
// more, until the definition is gone or the controller ends (from then on complete does it).
func (u *Uninstaller) stripUntilGone(stopped context.Context, client metadata.Interface, resource schema.GroupVersionResource) {
	for {
		left, err := u.strip(stopped, client, resource)
		switch {
		case apierrors.IsNotFound(err):
			return
		case err != nil && stopped.Err() == nil:
			u.log.Error(err, "Cannot let go all objects; trying again", "resource", resource.Resource)
		case left > 0:
			u.log.Info("Let go", "resource", resource.Resource, "objects", left)
		}
		if !sleep(stopped, pace) {
			return
		}
	}
}

// strip takes our finalizers off every object of the resource, and gives how many had one. The error is NotFound when the
// resource is served no more.
func (u *Uninstaller) strip(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource) (int, error) {
	count := 0
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.Resource(resource).List(ctx, options)
		if err != nil {
			return count, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		n, err := stripPage(ctx, client.Resource(resource), page.Items)
		count += n
		if err != nil {
			return count, fmt.Errorf("letting go %s: %w", resource.Resource, err)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return count, nil
		}
	}
}

// stripPage patches the objects in parallel.
func stripPage(ctx context.Context, client metadata.Getter, items []metav1.PartialObjectMetadata) (int, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		errs  []error
		count int
		slots = make(chan struct{}, workers)
	)
	for _, item := range items {
		rest, ours := others(item.Finalizers)
		if !ours {
			continue
		}
		count++
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := patch(ctx, client, item, rest); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return count, errors.Join(errs...)
}

// patch sets the finalizers. An object that is gone, or that somebody changed meanwhile, is no error: the next round sees.
func patch(ctx context.Context, client metadata.Getter, item metav1.PartialObjectMetadata, finalizers []string) error {
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
	_, err = objects.Patch(ctx, item.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: Account})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s/%s: %w", item.Namespace, item.Name, err)
	}
	return nil
}

// others gives the finalizers that are not ours, never nil, and whether any was ours.
func others(finalizers []string) (rest []string, ours bool) {
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

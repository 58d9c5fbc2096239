package cachehealth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// drainTimeout is how long an informer may take to store what it was given last.
const drainTimeout = 5 * time.Second

// isExpired reports whether a watch cannot begin where it should: kube-apiserver has forgotten that version, as after each of its starts.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// catchUp watches from the last version that the informer was given: first come, by a list, the events that it has missed. client-go
// would list as well, after a pause that doubles with each such gap within two minutes.
func (w *monitored) catchUp(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	given := w.given.Load()
	if w.store == nil || given == nil {
		return nil, apierrors.NewResourceExpired("the informer has to list")
	}
	if err := w.waitDrained(ctx, *given); err != nil {
		return nil, apierrors.NewResourceExpired(err.Error())
	}
	list, err := untilAnswered(ctx, w, func() (runtime.Object, error) {
		return w.from.ListWithContext(ctx, metav1.ListOptions{ResourceVersion: *given})
	})
	if err != nil {
		return nil, err
	}
	missed, err := w.missedEvents(list, *given)
	if err != nil {
		return nil, err
	}
	if o.ResourceVersion, err = meta.NewAccessor().ResourceVersion(list); err != nil {
		return nil, fmt.Errorf("reading the version of a list: %w", err)
	}
	live, err := untilAnswered(ctx, w, func() (watch.Interface, error) { return w.from.WatchWithContext(ctx, o) })
	w.reportOutcome(ctx, err)
	if err != nil {
		return nil, err
	}
	return w.follow(ctx, live, missed), nil
}

// waitDrained waits until the informer has stored what it was given up to a version: what it stores later would be missing below.
func (w *monitored) waitDrained(ctx context.Context, given string) error {
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, drainTimeout, true, func(context.Context) (bool, error) {
		order, err := resourceversion.CompareResourceVersion(w.store.LastStoreSyncResourceVersion(), given)
		return err == nil && order >= 0, nil
	})
}

// missedEvents turn what the informer holds into a list. Their versions never decrease: wherever the informer stops reading them, it can
// go on from the last. Deletions come first, and the last event has the version of the list.
func (w *monitored) missedEvents(list runtime.Object, given string) ([]watch.Event, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, fmt.Errorf("reading a list: %w", err)
	}
	var events []watch.Event
	listed := make(map[string]bool, len(items))
	for _, item := range items {
		key, err := cache.MetaNamespaceKeyFunc(item)
		if err != nil {
			return nil, err
		}
		listed[key] = true
		held, found, err := w.store.GetByKey(key)
		switch {
		case err != nil:
			return nil, err
		case !found:
			events = append(events, watch.Event{Type: watch.Added, Object: item})
		case versionOf(held) != versionOf(item):
			events = append(events, watch.Event{Type: watch.Modified, Object: item})
		}
	}
	var unordered error
	slices.SortStableFunc(events, func(a, b watch.Event) int {
		order, err := resourceversion.CompareResourceVersion(versionOf(a.Object), versionOf(b.Object))
		unordered = cmp.Or(unordered, err)
		return order
	})
	if unordered != nil {
		return nil, unordered
	}
	var deletions []watch.Event
	for _, key := range w.store.ListKeys() {
		if held, found, _ := w.store.GetByKey(key); found && !listed[key] {
			deletions = append(deletions, watch.Event{Type: watch.Deleted, Object: withVersion(held.(runtime.Object), given)})
		}
	}
	end := watch.Event{Type: watch.Bookmark, Object: withVersion(w.example, versionOf(list))}
	return slices.Concat(deletions, events, []watch.Event{end}), nil
}

// versionOf is "" for an object or a list without a version.
func versionOf(o any) string {
	if of, err := meta.CommonAccessor(o); err == nil {
		return of.GetResourceVersion()
	}
	return ""
}

// withVersion copies an object and sets its version.
func withVersion(o runtime.Object, version string) runtime.Object {
	changed := o.DeepCopyObject()
	if of, err := meta.CommonAccessor(changed); err == nil {
		of.SetResourceVersion(version)
	}
	return changed
}

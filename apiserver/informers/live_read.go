package informers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// Bounds of the wait for a cache to show what the caller may just have written. They are independent of how long DNS servers
// are waited for: a Kubernetes cluster that is slow for a moment is no reason to refuse an answer.
const (
	cacheTimeout = 10 * time.Second
	cachePoll    = 2 * time.Millisecond
	// rereadInterval is after how long the object is read again: one that was deleted may exist again.
	rereadInterval = 100 * time.Millisecond
)

// WaitForCaches waits while a cache does not follow the Kubernetes cluster, as after a restart of kube-apiserver: what it holds of
// other objects may decide about any. When it does not follow in time, it returns an API error.
func (i *Informers) WaitForCaches(ctx context.Context) error {
	var problem error
	follow := func(context.Context) (bool, error) {
		problem = i.caches.Failing(0)
		return problem == nil, nil
	}
	if wait.PollUntilContextTimeout(ctx, cachePoll, cacheTimeout, true, follow) == nil {
		return nil
	}
	return apierrors.NewServiceUnavailable(problem.Error())
}

// WaitForObject waits until the cache is at least as new as the object is in the Kubernetes cluster now, so that a client that
// asks about an object right after writing it never gets an answer about an older version. When the cache does not follow in
// time, it returns an API error.
func (i *Informers) WaitForObject(ctx context.Context, key source.ObjectKey) error {
	within, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	err := i.waitForObject(within, key)
	switch {
	case err != nil && ctx.Err() != nil:
		return apierrors.NewTimeoutError(err.Error(), 1)
	case err != nil:
		return apierrors.NewServiceUnavailable(err.Error())
	}
	return nil
}

func (i *Informers) waitForObject(ctx context.Context, key source.ObjectKey) error {
	kind, _, ok := subject.ParseName(subject.Name(key.Kind, key.Name))
	if !ok {
		return fmt.Errorf("%s is not a kind that has a SyncStatus", key.Kind)
	}
	for ctx.Err() == nil {
		live, err := i.live(ctx, kind, key.Namespace, key.Name)
		gone := apierrors.IsNotFound(err)
		if err != nil && !gone {
			return fmt.Errorf("reading %s %s/%s: %w", key.Kind, key.Namespace, key.Name, err)
		}
		caughtUp := func(context.Context) (bool, error) { return i.isCaughtUp(key, live, gone), nil }
		if wait.PollUntilContextTimeout(ctx, cachePoll, rereadInterval, true, caughtUp) == nil {
			return nil
		}
	}
	return fmt.Errorf("the cache of %s has not caught up with %s/%s", kind.Resource, key.Namespace, key.Name)
}

func (i *Informers) isCaughtUp(key source.ObjectKey, live metav1.Object, gone bool) bool {
	o, cached := Get[metav1.Object](i, key.Kind, key.Namespace, key.Name)
	if gone {
		return !cached
	}
	if cached && o.GetResourceVersion() == live.GetResourceVersion() {
		return true
	}
	// The object may have been changed or deleted since it was read.
	return !isOlder(i.byKind[key.Kind].LastSyncResourceVersion(), live.GetResourceVersion()) &&
		(!cached || !isOlder(o.GetResourceVersion(), live.GetResourceVersion()))
}

// isOlder compares resource versions of one resource in kube-apiserver, which are ordered numbers.
func isOlder(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX != nil || errY != nil || x < y
}

// WaitForKind waits until the cache is at least as new as all objects of a kind in a namespace are in the Kubernetes cluster now,
// and returns these and those that the cache had beside them. It returns none, and does not wait, if there are too many.
func (i *Informers) WaitForKind(ctx context.Context, kind subject.Kind, namespace string) ([]source.ObjectKey, error) {
	if i.list == nil || len(List[metav1.Object](i, kind.Kind, namespace)) > maxListed {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	all, version, err := i.list(ctx, kind, namespace)
	if err != nil || version == "" {
		return nil, err
	}
	live := map[source.ObjectKey]metav1.Object{}
	for _, o := range all {
		live[source.ObjectKey{Kind: kind.Kind, Namespace: namespace, Name: o.GetName()}] = o
	}
	for _, o := range List[metav1.Object](i, kind.Kind, namespace) {
		key := source.ObjectKey{Kind: kind.Kind, Namespace: namespace, Name: o.GetName()}
		if _, exists := live[key]; !exists && isOlder(o.GetResourceVersion(), version) {
			live[key] = nil
		}
	}
	for key, o := range live {
		caughtUp := func(context.Context) (bool, error) { return i.isCaughtUp(key, o, o == nil), nil }
		if err := wait.PollUntilContextCancel(ctx, cachePoll, true, caughtUp); err != nil {
			return nil, err
		}
	}
	return slices.Collect(maps.Keys(live)), nil
}

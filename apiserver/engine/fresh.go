package engine

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// Bounds of the wait for a cache to show what the caller may just have written. It has nothing to do with how long DNS
// servers are waited for: a cluster that is slow for a moment is no reason to refuse an answer.
const (
	freshWithin = 10 * time.Second
	freshEvery  = 2 * time.Millisecond
)

// fresh waits until the cache is at least as new as the object is in the cluster now, so that whoever asks about an
// object by name right after writing it is never told about the version before. It is bounded: when the cache cannot
// follow, the answer is an error, never an old verdict.
func (i *Informers) fresh(ctx context.Context, kind syncstatus.Kind, namespace, name string) error {
	ctx, cancel := context.WithTimeout(ctx, freshWithin)
	defer cancel()
	live, err := i.live(ctx, kind, namespace, name)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return fmt.Errorf("reading %s %s/%s: %w", kind.Kind, namespace, name, err)
	}
	inf := i.byKind[kind.Kind]
	ticker := time.NewTicker(freshEvery)
	defer ticker.Stop()
	for !caughtUp(inf, namespace, name, live, gone) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cache of %s has not caught up with %s/%s", kind.Resource, namespace, name)
		case <-ticker.C:
		}
	}
	return nil
}

func caughtUp(inf cache.SharedIndexInformer, namespace, name string, live metav1.Object, gone bool) bool {
	o, cached := get[metav1.Object](inf, namespace, name)
	if gone {
		return !cached
	}
	if cached && o.GetResourceVersion() == live.GetResourceVersion() {
		return true
	}
	// The object may have moved on, or gone, since it was read.
	return !older(inf.LastSyncResourceVersion(), live.GetResourceVersion()) &&
		(!cached || !older(o.GetResourceVersion(), live.GetResourceVersion()))
}

// older compares resource versions of one resource in kube-apiserver, which are ordered numbers.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX != nil || errY != nil || x < y
}

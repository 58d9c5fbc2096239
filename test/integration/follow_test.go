package integration

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// followObjects calls seen with each version of the objects of a kind in a namespace, in order, until ctx ends. It returns once seen has
// had the present ones: what changes afterwards is not missed. The objects belong to a cache and may not be changed.
func followObjects[T client.Object](ctx context.Context, t testing.TB, namespace string, kind T, seen func(T)) {
	t.Helper()
	objects, err := cache.New(kube.Config(t), cache.Options{Scheme: kube.Client(t).Scheme(), DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = objects.Start(ctx) }()
	informer, err := objects.GetInformer(ctx, kind)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { seen(o.(T)) },
		UpdateFunc: func(_, o any) { seen(o.(T)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		t.Fatal("the present objects were not listed")
	}
}

// retryWhile repeats do while its error is one that passes, with pauses that grow, and returns the last error.
func retryWhile(ctx context.Context, limit kube.Patience, passes func(error) bool, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit.Duration())
	defer cancel()
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 100, Cap: 2 * time.Second}
	var last error
	err := pause.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if last = do(ctx); last != nil && passes(last) {
			return false, nil
		}
		return true, last
	})
	if err == nil {
		return nil
	}
	if last == nil {
		return err
	}
	return last
}

package rig

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// createdKinds are the kinds that benchmarks create in number.
var createdKinds = []schema.GroupVersionKind{
	v1beta1.GroupVersion.WithKind("ARecord"),
	v1alpha1.GroupVersion.WithKind("DNSEndpoint"),
	v1beta1.GroupVersion.WithKind("DNSZone"),
}

// removeEverything takes away everything of the rig, and what is beside it.
func (r *Rig) removeEverything(ctx context.Context) error {
	other := r.beside()
	err := r.Client.Get(ctx, client.ObjectKey{Name: other.Namespace}, &corev1.Namespace{})
	if err == nil {
		err = other.removeNamespace(ctx)
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	return r.removeNamespace(ctx)
}

// removeNamespace takes away a namespace with all that is in it. The objects go first, while there are servers that their data can be taken off,
// and are deleted one by one but many at a time: a namespace that is deleted takes them in turn. The zones follow the
// records at once, so that their records need not be taken out of DNS one by one.
func (r *Rig) removeNamespace(ctx context.Context) error {
	began := time.Now()
	total, err := r.RemoveObjects(ctx)
	if err != nil {
		return err
	}
	if err := r.RemoveBareKind(ctx); err != nil {
		return err
	}
	if err := r.deleteNamespace(ctx); err != nil {
		return err
	}
	fmt.Printf("cleared %d objects and the namespace in %.1f s\n", total, time.Since(began).Seconds())
	return nil
}

// RemoveObjects deletes the records, the endpoints and the zones of the rig, waits until they are gone, and returns how many they were.
func (r *Rig) RemoveObjects(ctx context.Context) (total int, err error) {
	for _, kind := range createdKinds {
		objects, err := r.listMetadata(ctx, kind)
		if err != nil {
			return total, err
		}
		total += len(objects)
		err = ForEachParallel(ctx, maxRequests, kind.Kind+"s deleted", objects, func(ctx context.Context, o client.Object) error {
			return client.IgnoreNotFound(r.Client.Delete(ctx, o))
		})
		if err != nil {
			return total, fmt.Errorf("clearing namespace %s: %w", r.Namespace, err)
		}
	}
	for _, kind := range createdKinds {
		if err := r.waitDeleted(ctx, kind, 3*time.Minute+time.Duration(total)*10*time.Millisecond); err != nil {
			return total, fmt.Errorf("%w; see kubectl --namespace lockstep-system logs deployment/lockstep-controller, then try again with: %s", err, clearCommand(r.name))
		}
	}
	return total, nil
}

func (r *Rig) listMetadata(ctx context.Context, kind schema.GroupVersionKind) ([]client.Object, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := r.Client.List(ctx, list, client.InNamespace(r.Namespace)); err != nil {
		return nil, err
	}
	objects := make([]client.Object, len(list.Items))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
		objects[i] = &list.Items[i]
	}
	return objects, nil
}

// waitDeleted waits until no object of a kind is left.
func (r *Rig) waitDeleted(ctx context.Context, kind schema.GroupVersionKind, limit time.Duration) error {
	said := time.Now()
	return PollUntil(ctx, limit, 500*time.Millisecond, func() error {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := r.Client.List(ctx, list, client.InNamespace(r.Namespace), client.Limit(1)); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return nil
		}
		left := int64(1)
		if list.RemainingItemCount != nil {
			left += *list.RemainingItemCount
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			fmt.Printf("  %d %ss are still held by their finalizers\n", left, kind.Kind)
		}
		return fmt.Errorf("%d %ss of namespace %s are still held by their finalizers", left, kind.Kind, r.Namespace)
	})
}

func (r *Rig) deleteNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, ns)); err != nil {
		return err
	}
	return PollUntil(ctx, 3*time.Minute, 500*time.Millisecond, func() error {
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("namespace %s is still there: %w", ns.Name, err)
	})
}

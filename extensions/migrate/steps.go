package migrate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// step is one of the steps that lead to servers of Lockstep, in an order in which each query finds a server that knows the answer.
type step struct {
	title string
	// objects are what it is about; there is nothing to do if there are none.
	objects []string
	// take takes the step. It is nil for one that a person has to take.
	take func(ctx context.Context, c client.Client) error
}

// byHand is said of a step that a person has to take.
const byHand = "this step is yours; run the command again when it is done"

// steps returns what is left to do.
func (i *inventory) steps(timeout time.Duration) []step {
	var install []string
	if i.systemNamespace == "" {
		install = []string{"kubectl apply -k manifests/overlays/default"}
	}
	return []step{
		{"stop Bindy; its servers go on answering", namesOf("Deployment", pointers(i.operators)), i.stopOperators},
		{"delete its admission policies", namesOf("", i.policies), func(ctx context.Context, c client.Client) error { return deleteAll(ctx, c, i.policies) }},
		{"install Lockstep", install, nil},
		{"remove Bindy's finalizers", countKinds(i.finalized), i.removeFinalizers},
		{"give instances of ClusterBind9Providers to these", i.innerNames(), i.dissolveClusters},
		{"wait until Lockstep's servers are ready and in the Services", i.waitingServers(), func(ctx context.Context, c client.Client) error { return i.waitServers(ctx, c, timeout) }},
		{"delete the former servers", namesOf("Deployment", i.deployments()), i.deleteServers},
		{"delete what served them", namesOf("", i.leftovers), i.deleteLeftovers},
	}
}

func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	all := make([]client.Object, len(items))
	for n := range items {
		all[n] = P(&items[n])
	}
	return all
}

// namesOf returns how people know objects: "Deployment team/dns". kind is that of typed objects, which do not have their own.
func namesOf(kind string, objects []client.Object) []string {
	names := make([]string, len(objects))
	for n, o := range objects {
		own := cmp.Or(o.GetObjectKind().GroupVersionKind().Kind, kind)
		names[n] = strings.TrimSpace(own + " " + strings.TrimPrefix(client.ObjectKeyFromObject(o).String(), "/"))
	}
	return names
}

func (i *inventory) deployments() []client.Object {
	all := make([]client.Object, len(i.servers))
	for n := range i.servers {
		all[n] = &i.servers[n].deployment
	}
	return all
}

// unneeded returns the Deployments of servers that no query needs any more.
func (i *inventory) unneeded() (all []client.Object) {
	for n := range i.servers {
		if i.servers[n].waits == "" {
			all = append(all, &i.servers[n].deployment)
		}
	}
	return all
}

// waitingError says which former servers are still needed. It holds up nothing but what these need themselves: an instance that never
// becomes ready may be anybody's.
type waitingError struct{ servers []string }

func (e *waitingError) Error() string {
	return "these former servers stay, because queries need them: " + strings.Join(e.servers, "; ")
}

func (i *inventory) waitingServers() (waiting []string) {
	for _, s := range i.servers {
		if s.waits != "" {
			waiting = append(waiting, fmt.Sprintf("%s/%s (%s)", s.deployment.Namespace, s.deployment.Name, s.waits))
		}
	}
	return waiting
}

func (i *inventory) innerNames() (names []string) {
	for _, inner := range i.inner {
		names = append(names, fmt.Sprintf("%d of Bind9Cluster %s/%s", len(inner.instances), inner.cluster.Namespace, inner.cluster.Name))
	}
	return names
}

// countKinds returns how many objects there are of each kind.
func countKinds(objects []metav1.PartialObjectMetadata) (counts []string) {
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.Kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		counts = append(counts, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	return counts
}

// stopOperators scales the operators down: started again, they go on as before.
func (i *inventory) stopOperators(ctx context.Context, c client.Client) error {
	for n := range i.operators {
		d := &i.operators[n]
		if err := patchOwn(ctx, c, d, "", nil, map[string]any{"spec": map[string]any{"replicas": 0}}); err != nil {
			return fmt.Errorf("stopping Deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
	}
	return nil
}

// patchOwn writes the given fields of an object, and no others.
func patchOwn(ctx context.Context, c client.Client, o client.Object, resourceVersion string, metadata, fields map[string]any) error {
	patch, err := apply.MergePatch(resourceVersion, metadata, fields)
	if err != nil {
		return err
	}
	written, err := metadataOf(c, o)
	if err != nil {
		return err
	}
	return c.Patch(ctx, written, patch)
}

// metadataOf returns an object's kind and name.
func metadataOf(c client.Client, o client.Object) (*metav1.PartialObjectMetadata, error) {
	kind, err := c.GroupVersionKindFor(o)
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
	m.SetGroupVersionKind(kind)
	return m, err
}

// changeList changes a list in an object's metadata, which a patch writes as a whole: it is read first, and read again if somebody has
// changed the object meanwhile. An object that is gone is left alone.
func changeList(ctx context.Context, c client.Client, o client.Object, change func(*metav1.PartialObjectMetadata) map[string]any) error {
	return client.IgnoreNotFound(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := metadataOf(c, o)
		if err == nil {
			err = c.Get(ctx, client.ObjectKeyFromObject(o), current)
		}
		if err != nil || current.UID != o.GetUID() {
			return err
		}
		return patchOwn(ctx, c, current, current.ResourceVersion, change(current), nil)
	}))
}

// removeFinalizers lets objects go that are being deleted, now or later. Lockstep works on them at the same time.
func (i *inventory) removeFinalizers(ctx context.Context, c client.Client) error {
	for n := range i.finalized {
		o := &i.finalized[n]
		err := changeList(ctx, c, o, func(current *metav1.PartialObjectMetadata) map[string]any {
			ours := v1beta1.FinalizersOfBindy(current)
			return map[string]any{"finalizers": slices.DeleteFunc(append([]string{}, current.Finalizers...), func(name string) bool { return slices.Contains(ours, name) })}
		})
		if err != nil {
			return fmt.Errorf("removing the finalizer of %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
		}
	}
	return nil
}

// dissolveClusters gives the instances of clusters that Bindy made for providers to the providers, and deletes the clusters. What Lockstep has
// made for a cluster meanwhile, its disruption budgets and keys, goes with it: the provider could not use what belongs to nobody.
func (i *inventory) dissolveClusters(ctx context.Context, c client.Client) error {
	for n := range i.inner {
		inner := &i.inner[n]
		owner := metav1.NewControllerRef(&inner.provider, v1beta1.GroupVersion.WithKind("ClusterBind9Provider"))
		for m := range inner.instances {
			o := &inner.instances[m]
			err := changeList(ctx, c, o, func(current *metav1.PartialObjectMetadata) map[string]any {
				others := slices.DeleteFunc(slices.Clone(current.OwnerReferences), func(r metav1.OwnerReference) bool { return r.UID == inner.cluster.UID || r.UID == owner.UID })
				return map[string]any{"ownerReferences": append(others, *owner)}
			})
			if err != nil {
				return fmt.Errorf("giving Bind9Instance %s/%s to ClusterBind9Provider %s: %w", o.Namespace, o.Name, inner.provider.Name, err)
			}
		}
		permitted := map[string]any{"annotations": map[string]string{v1beta1.AllowDeletionAnnotation: "true"}}
		if err := patchOwn(ctx, c, &inner.cluster, "", permitted, nil); err != nil {
			return fmt.Errorf("annotating Bind9Cluster %s/%s: %w", inner.cluster.Namespace, inner.cluster.Name, err)
		}
		if err := deleteAll(ctx, c, []client.Object{&inner.cluster}, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
	}
	return nil
}

// waitServers waits until no query needs a former server.
func (i *inventory) waitServers(ctx context.Context, c client.Client, timeout time.Duration) error {
	waiting := i.waitingServers()
	err := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, func(ctx context.Context) (bool, error) {
		now := &inventory{}
		if err := now.addServers(ctx, c); err != nil {
			return false, err
		}
		waiting = now.waitingServers()
		return len(waiting) == 0, nil
	})
	if wait.Interrupted(err) {
		return &waitingError{waiting}
	}
	return err
}

// proxyDelay is how long the nodes may take to follow a Service that has changed: until then they send queries to the former pods.
const proxyDelay = 10 * time.Second

// deleteServers deletes the former servers that no query has needed for long enough, and those alone.
func (i *inventory) deleteServers(ctx context.Context, c client.Client) error {
	unneeded := i.unneeded()
	if len(unneeded) == 0 {
		return &waitingError{i.waitingServers()}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(proxyDelay):
	}
	now := &inventory{}
	if err := now.addServers(ctx, c); err != nil {
		return err
	}
	still := slices.DeleteFunc(now.unneeded(), func(o client.Object) bool {
		return !slices.ContainsFunc(unneeded, func(was client.Object) bool { return was.GetUID() == o.GetUID() })
	})
	if err := deleteAll(ctx, c, still); err != nil {
		return err
	}
	if len(still) < len(now.servers) {
		return &waitingError{now.waitingServers()} // One of them may be needed no more by now: it goes the next time.
	}
	return nil
}

// deleteLeftovers deletes what former servers needed, once there are none.
func (i *inventory) deleteLeftovers(ctx context.Context, c client.Client) error {
	if len(i.servers) > 0 {
		return &waitingError{i.waitingServers()}
	}
	return deleteAll(ctx, c, i.leftovers)
}

func deleteAll(ctx context.Context, c client.Client, objects []client.Object, options ...client.DeleteOption) error {
	for _, o := range objects {
		if err := client.IgnoreNotFound(c.Delete(ctx, o, append(options, client.Preconditions{UID: new(o.GetUID())})...)); err != nil {
			return fmt.Errorf("deleting %s: %w", o.GetName(), err)
		}
	}
	return nil
}

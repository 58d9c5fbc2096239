package gitops

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/engine"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// argo is an application of Argo CD: its engine, with tracking by label.
type argo struct {
	*testing.T
	engine    engine.GitOpsEngine
	client    client.Client
	health    luaHealth
	namespace string
}

func newArgo(t *testing.T) argo {
	t.Helper()
	namespace := kube.Namespace(t, "argo")
	config := throughProxy(t, kube.Config(t))
	isOwn := func(o *unstructured.Unstructured) bool { return o.GetLabels()[appLabel] == namespace }
	resources := cache.NewClusterCache(config, cache.SetNamespaces([]string{namespace}), cache.SetLogr(logr.Discard()),
		cache.SetPopulateResourceInfoHandler(func(o *unstructured.Unstructured, _ bool) (any, bool) { return isOwn(o), isOwn(o) }))
	e := engine.NewEngine(config, resources, engine.WithLogr(logr.Discard()))
	stop, err := e.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop() })
	return argo{t, e, kube.Client(t), guideHealth(t), namespace}
}

// throughProxy returns a configuration without credentials for what another may do. The engine calls kubectl with a file of its own,
// which would lose for whom the test's user acts.
func throughProxy(t *testing.T, config *rest.Config) *rest.Config {
	t.Helper()
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
		Transport:     transport,
		FlushInterval: -1, // Watches are passed on at once.
	})
	t.Cleanup(proxy.Close)
	return &rest.Config{Host: proxy.URL}
}

// trySync applies objects and prunes what belongs to the application beside them.
func (a argo) trySync(ctx context.Context, policy metav1.DeletionPropagation, objects ...*unstructured.Unstructured) error {
	isOwn := func(r *cache.Resource) bool { return r.Info == true }
	results, err := a.engine.Sync(ctx, objects, isOwn, "revision", a.namespace, sync.WithPrune(true), sync.WithPrunePropagationPolicy(&policy), sync.WithHealthOverride(a.health),
		sync.WithLogr(logr.Discard()))
	if err != nil {
		return fmt.Errorf("syncing: %w", err)
	}
	for _, r := range results {
		if r.ResourceKey.Kind == "SyncStatus" {
			return fmt.Errorf("a SyncStatus is part of the application: %+v", r)
		}
		if r.Status == common.ResultCodeSyncFailed {
			return fmt.Errorf("syncing %s: %s", r.ResourceKey, r.Message)
		}
	}
	return nil
}

// sync does once what Argo CD does for a commit, and waits until all objects are healthy.
func (a argo) sync(objects ...*unstructured.Unstructured) {
	a.Helper()
	if err := a.trySync(a.Context(), metav1.DeletePropagationBackground, objects...); err != nil {
		a.Fatal(err)
	}
	kube.Eventually(a, kube.Start, func(ctx context.Context) error {
		for _, o := range objects {
			stored := o.DeepCopy()
			if err := a.client.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil {
				return err
			}
			got, err := health.GetResourceHealth(stored, a.health)
			if err != nil || got == nil || got.Status != health.HealthStatusHealthy {
				return fmt.Errorf("%s %s is %+v: %w", o.GetKind(), o.GetName(), got, err)
			}
		}
		return nil
	})
}

// syncInTwo brings the application to what a folder has in two commits, without a wait for health in between: first the new objects come,
// then the old ones go.
func (a argo) syncInTwo(before, objects []*unstructured.Unstructured) {
	a.Helper()
	both := slices.Clone(objects)
	for _, old := range before {
		stays := func(o *unstructured.Unstructured) bool {
			return o.GetKind() == old.GetKind() && o.GetName() == old.GetName()
		}
		if !slices.ContainsFunc(objects, stays) {
			both = append(both, old)
		}
	}
	if len(objects) > 0 && len(both) > len(objects) {
		if err := a.trySync(a.Context(), metav1.DeletePropagationBackground, both...); err != nil {
			a.Fatal(err)
		}
		kube.Eventually(a, kube.Settle, func(ctx context.Context) error { return a.checkSeen(ctx, objects) })
	}
	a.sync(objects...)
}

// checkSeen returns which of the objects no status is about yet.
func (a argo) checkSeen(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		stored := o.DeepCopy()
		if err := a.client.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil {
			return err
		}
		if seen, _, _ := unstructured.NestedInt64(stored.Object, "status", "observedGeneration"); seen < stored.GetGeneration() {
			return fmt.Errorf("nobody has seen generation %d of %s %s", stored.GetGeneration(), o.GetKind(), o.GetName())
		}
	}
	return nil
}

// Argo CD applies a folder, changes a record, renames one and prunes everything, with one attempt for each.
func TestArgo(t *testing.T) {
	kube.Isolated(t)
	a := newArgo(t)
	a.sync(folder(t, a.namespace, map[string]string{"www": "192.0.2.1", "mail": "192.0.2.2"})...)
	waitPropagated(t, a.namespace, "www")
	requireSelected(t, a.namespace)

	a.sync(folder(t, a.namespace, map[string]string{"www": "192.0.2.7", "mail": "192.0.2.2"})...)
	waitPropagated(t, a.namespace, "www")

	a.sync(folder(t, a.namespace, map[string]string{"web": "192.0.2.7", "mail": "192.0.2.2"})...)
	waitPropagated(t, a.namespace, "web")
	kube.Kubectl(t, "", "-n", a.namespace, "wait", "--for=delete", "arecord/www", "--timeout=120s")

	a.sync()
	waitGone(t, a.client, a.namespace, "Bind9Cluster", "DNSZone", "ARecord")
}

// In the foreground, which is Argo CD's default, attempts are repeated until nothing is left.
func TestArgoInTheForeground(t *testing.T) {
	kube.Isolated(t)
	a := newArgo(t)
	a.sync(folder(t, a.namespace, map[string]string{"www": "192.0.2.1"})...)
	kube.Eventually(t, kube.Start, func(ctx context.Context) error { return a.trySync(ctx, metav1.DeletePropagationForeground) })
	waitGone(t, a.client, a.namespace, "Bind9Cluster", "DNSZone", "ARecord")
}

// One commit turns an alias into addresses, and back. Argo CD removes the old object first, so the name may be empty for a moment, which two
// commits avoid (TestDemo); but one attempt brings every server to what the commit says, and nothing stays.
func TestArgoAliasInOneCommit(t *testing.T) {
	kube.Isolated(t)
	a := newArgo(t)
	common := folder(t, a.namespace, nil)
	bring := func(text, status, gone string) {
		t.Helper()
		a.sync(append(slices.Clone(common), parse(t, a.namespace, text)...)...)
		kube.Kubectl(t, "", "-n", a.namespace, "wait", "--for=condition=Propagated", "syncstatus/"+status, "--timeout=120s")
		if gone != "" {
			kube.Kubectl(t, "", "-n", a.namespace, "wait", "--for=delete", gone, "--timeout=120s")
		}
	}
	bring(alias, "cnamerecord.www-alias", "")
	bring(addresses, "arecord.www", "cnamerecord/www-alias")
	bring(alias, "cnamerecord.www-alias", "arecord/www")
	a.sync()
	waitGone(t, a.client, a.namespace, "Bind9Cluster", "DNSZone", "ARecord", "CNAMERecord")
}

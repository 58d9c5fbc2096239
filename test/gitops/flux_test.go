package gitops

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// flux is a Kustomization of Flux: its engine, which remembers what it has applied.
type flux struct {
	*testing.T
	manager *ssa.ResourceManager
	applied []*unstructured.Unstructured
}

func newFlux(t *testing.T, c client.Client) *flux {
	t.Helper()
	poller := polling.NewStatusPoller(c, c.RESTMapper(), polling.Options{})
	return &flux{T: t, manager: ssa.NewResourceManager(c, poller, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})}
}

// reconcile does once what Flux does for a commit: apply, prune what is gone, wait.
func (f *flux) reconcile(objects ...*unstructured.Unstructured) {
	f.Helper()
	f.manager.SetOwnerLabels(objects, "dns", "flux-system")
	changes, err := f.manager.ApplyAllStaged(f.Context(), objects, ssa.DefaultApplyOptions())
	if err != nil {
		f.Fatal(err)
	}
	var gone []*unstructured.Unstructured
	for _, old := range f.applied {
		stays := false
		for _, o := range objects {
			stays = stays || o.GetKind() == old.GetKind() && o.GetName() == old.GetName()
		}
		if !stays {
			gone = append(gone, old)
		}
	}
	if _, err := f.manager.DeleteAll(f.Context(), gone, ssa.DefaultDeleteOptions()); err != nil {
		f.Fatal(err)
	}
	options := ssa.DefaultWaitOptions()
	options.Timeout = kube.Start.Duration()
	if err := f.manager.WaitForTermination(gone, options); err != nil {
		f.Fatal(err)
	}
	if err := f.manager.WaitForSetWithContext(f.Context(), changes.ToObjMetadataSet(), options); err != nil {
		f.Fatal(err)
	}
	f.applied = objects
}

// Flux applies a folder, changes a record, renames one and prunes everything, with one attempt for each.
func TestFlux(t *testing.T) {
	kube.Isolated(t)
	c, namespace := kube.Client(t), kube.Namespace(t, "flux")
	f := newFlux(t, c)
	f.reconcile(folder(t, namespace, map[string]string{"www": "192.0.2.1", "mail": "192.0.2.2"})...)
	waitPropagated(t, namespace, "www")
	requireSelected(t, namespace)

	f.reconcile(folder(t, namespace, map[string]string{"www": "192.0.2.7", "mail": "192.0.2.2"})...)
	waitPropagated(t, namespace, "www")

	f.reconcile(folder(t, namespace, map[string]string{"web": "192.0.2.7", "mail": "192.0.2.2"})...)
	waitPropagated(t, namespace, "web")

	f.reconcile()
	waitGone(t, c, namespace, "Bind9Cluster", "DNSZone", "ARecord")
}

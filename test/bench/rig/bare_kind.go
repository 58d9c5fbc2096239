package rig

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A bare kind has the schema of ARecords, in a group of its own, for which there are no webhooks and no controller: what
// kube-apiserver itself needs for such objects.
const (
	// BareAPIVersion and BareKind are what its objects name.
	BareAPIVersion = bareGroup + "/v1beta1"
	BareKind       = "BareRecord"

	bareGroup    = "bench.lockstep.invalid"
	bareResource = "barerecords"
)

// BarePath returns the path of the rig's bare records, or of the one that is named.
func (r *Rig) BarePath(name string) string {
	return r.resourcePath("/apis/"+BareAPIVersion, bareResource, name)
}

// CreateBareKind adds the kind and waits until kube-apiserver serves it.
func (r *Rig) CreateBareKind(ctx context.Context) error {
	records := newDefinition("arecords.bindy.firestoned.io")
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(records), records); err != nil {
		return err
	}
	spec := records.Object["spec"].(map[string]any)
	delete(spec, "conversion")
	spec["group"] = bareGroup
	spec["names"] = map[string]any{"kind": BareKind, "listKind": BareKind + "List", "plural": bareResource, "singular": "barerecord"}
	bare := newDefinition(bareResource + "." + bareGroup)
	bare.Object["spec"] = spec
	if err := r.Client.Create(ctx, bare); err != nil {
		return fmt.Errorf("defining %s: %w", BareKind, err)
	}
	return PollUntil(ctx, time.Minute, 250*time.Millisecond, func() error {
		_, _, err := r.ReadPath(ctx, r.BarePath("")+"?limit=1")
		return err
	})
}

// RemoveBareKind removes the kind, if it is there, and all of its objects, whatever finalizers they have.
func (r *Rig) RemoveBareKind(ctx context.Context) error {
	if err := r.removeBareWebhook(ctx); err != nil {
		return err
	}
	bare := newDefinition(bareResource + "." + bareGroup)
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(bare), bare); err != nil {
		return client.IgnoreNotFound(err)
	}
	left := &unstructured.UnstructuredList{}
	left.SetAPIVersion(BareAPIVersion)
	left.SetKind(BareKind + "List")
	if err := r.Client.List(ctx, left, client.InNamespace(r.Namespace)); err != nil {
		return err
	}
	err := ForEachParallel(ctx, maxRequests, BareKind+"s released", left.Items, func(ctx context.Context, o unstructured.Unstructured) error {
		return r.ReleaseBare(ctx, o.GetName())
	})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, bare))
}

// ReleaseBare takes the finalizers off a bare record.
func (r *Rig) ReleaseBare(ctx context.Context, name string) error {
	_, err := r.SendRequest(ctx, http.MethodPatch, r.BarePath(name), MergePatch, []byte(`{"metadata":{"finalizers":null}}`))
	return err
}

// MergePatch is the content type of a patch of RFC 7396.
const MergePatch = "application/merge-patch+json"

func newDefinition(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("apiextensions.k8s.io/v1")
	o.SetKind("CustomResourceDefinition")
	o.SetName(name)
	return o
}

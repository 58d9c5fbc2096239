package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// measureLeast returns what any way through objects takes at least: to create as many of a bare kind, for each of which a webhook is
// called that looks at nothing.
func measureLeast(ctx context.Context, r *rig.Rig, wanted []rig.Address) (took time.Duration, err error) {
	if err := r.CreateBareKind(ctx); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.RemoveBareKind(ctx)) }()
	if _, err := r.StartBareWebhook(ctx); err != nil {
		return 0, err
	}
	var objects []client.Object
	for _, record := range r.DeclareRecords(rig.Objects, "none", ourZone, wanted) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(record)
		if err != nil {
			return 0, err
		}
		o := &unstructured.Unstructured{Object: content}
		o.SetAPIVersion(rig.BareAPIVersion)
		o.SetKind(rig.BareKind)
		objects = append(objects, o)
	}
	created, err := r.CreateAll(ctx, objects)
	fmt.Println("bare objects:", created)
	return created.Duration(), err
}

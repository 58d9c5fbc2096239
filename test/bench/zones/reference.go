package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// measureBareBIND adds as many zones to three servers without Kubernetes.
func (b *zonesBench) measureBareBIND(ctx context.Context) (time.Duration, error) {
	bare, err := rig.StartBare(ctx)
	if err != nil {
		return 0, err
	}
	defer bare.Close()
	var wanted []rig.Address
	for _, name := range b.names[1:] {
		wanted = append(wanted, rig.Address{Name: "www." + name + ".", IP: address})
	}
	began := time.Now()
	if err := bare.AddZones(ctx, b.names[1:], address); err != nil {
		return 0, err
	}
	added := time.Now()
	at, err := rig.SweepServers(ctx, bare.Addresses(), wanted, *limit)
	fmt.Printf("bare BIND: %d zones added in %.2f s, all served everywhere after %.2f s\n", len(wanted), added.Sub(began).Seconds(), at.Sub(began).Seconds())
	return at.Sub(began), err
}

// measureBareWrites creates as many objects of a bare kind as the zones need, and writes a status of each, as the client of the zones
// would without webhooks and controller.
func (b *zonesBench) measureBareWrites(ctx context.Context) (took time.Duration, err error) {
	if err := b.CreateBareKind(ctx); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.RemoveBareKind(ctx)) }()
	began := time.Now()
	numbers := make([]int, 2**count)
	for i := range numbers {
		numbers[i] = i
	}
	// The status of a record that is ready.
	const status = `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"ReconcileSucceeded","message":"","observedGeneration":1,"lastTransitionTime":"2026-11-22T00:00:00Z"},
	{"type":"Accepted","status":"True","reason":"ReconcileSucceeded","message":"","observedGeneration":1,"lastTransitionTime":"2026-11-22T00:00:00Z"},
	{"type":"Programmed","status":"True","reason":"ReconcileSucceeded","message":"","observedGeneration":1,"lastTransitionTime":"2026-11-22T00:00:00Z"}],"observedGeneration":1,"zone":"z.example"}}`
	err = rig.ForEachParallel(ctx, 32, "bare objects created and status-patched", numbers, func(ctx context.Context, i int) error {
		record := &v1beta1.ARecord{ObjectMeta: b.ObjectMeta(fmt.Sprintf("bare-%d", i), rig.ZoneLabels(zoneObject(i)))}
		record.Finalizers = []string{"bench.lockstep.invalid/finalizer"}
		record.Spec.Name, record.Spec.IPv4Addresses = "host-0", []string{address}
		body, err := json.Marshal(map[string]any{"apiVersion": rig.BareAPIVersion, "kind": rig.BareKind, "metadata": record.ObjectMeta, "spec": record.Spec})
		if err != nil {
			return err
		}
		if _, err = b.SendRequest(ctx, http.MethodPost, b.BarePath(""), "application/json", body); err != nil {
			return err
		}
		_, err = b.SendRequest(ctx, http.MethodPatch, b.BarePath(record.Name)+"/status", rig.MergePatch, []byte(status))
		return err
	})
	took = time.Since(began)
	fmt.Printf("kube-apiserver: %d bare objects created and their statuses written in %.2f s\n", len(numbers), took.Seconds())
	return took, err
}

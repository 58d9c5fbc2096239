package integration

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

func (w *randomWorld) anyPaused() bool {
	return slices.ContainsFunc(w.zones, func(z *zoneState) bool { return z.paused })
}

func (w *randomWorld) anyFrozen() bool {
	return slices.ContainsFunc(w.zones, func(z *zoneState) bool { return z.frozen })
}

func (w *randomWorld) stepPause() bool {
	z := pick(w, w.zones...)
	if !z.paused {
		w.foreignEverywhere()
	}
	w.pause(z, !z.paused)
	return true
}

func (w *randomWorld) pause(z *zoneState, paused bool) {
	w.Helper()
	z.paused = paused
	w.writeZone(z)
	w.logStep("zone %s paused: %t", z.Object, paused)
}

// writeZone brings the zone's object to what the model has.
func (w *randomWorld) writeZone(z *zoneState) {
	w.Helper()
	next := w.zoneObject(z)
	change(w.fixture, w.dnsZone(z.Object, z.dnsName()), func(o *v1beta1.DNSZone) { o.Spec, o.Annotations = next.Spec, next.Annotations })
}

// stepSelector changes which records a zone selects; two zones may select the same.
func (w *randomWorld) stepSelector() bool {
	z := pick(w, w.zones...)
	if w.anyFrozen() {
		return false
	}
	w.touchAll()
	before := z.selects
	z.selects = pick(w, []string{z.Object}, []string{z.Object, "extra"}, []string{"extra"}, []string{"main", "child"})
	w.touchAll()
	denied := w.isRefused(func(ctx context.Context) error {
		o := w.dnsZone(z.Object, z.dnsName())
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		o.Spec = w.zoneObject(z).Spec
		return w.client.Update(ctx, o, client.DryRunAll)
	})
	if denied {
		w.logStep("zone %s selects %v: refused", z.Object, z.selects)
		z.selects = before
		return true
	}
	w.writeZone(z)
	w.logStep("zone %s selects %v", z.Object, z.selects)
	return true
}

// isRefused reports whether admission refuses a dry run, such as of a zone whose selector matches records of an older one.
func (w *randomWorld) isRefused(dryRun func(context.Context) error) bool {
	w.Helper()
	var was bool
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		err := dryRun(ctx)
		if was = refused(err); was {
			return nil
		}
		return err
	})
	return was
}

// touchAll touches the names of all things.
func (w *randomWorld) touchAll() {
	for _, t := range w.objects {
		w.touch(t)
	}
}

// stepEditZone changes what the zone's object itself declares.
func (w *randomWorld) stepEditZone() bool {
	z := pick(w, w.zones...)
	if z.frozen {
		return false
	}
	switch w.rng.IntN(3) {
	case 0:
		z.TTL = pick[int64](w, 3600, 1800)
	case 1:
		z.refresh = pick[int64](w, 3600, 7200)
	default:
		z.NameServers = z.NameServers[:1:1]
		z.Addresses = map[string][]string{}
		for _, server := range []string{"ns2." + z.Name, "ns3.example.net."} {
			if w.rng.IntN(2) == 0 {
				z.NameServers = append(z.NameServers, server)
				z.Addresses[server] = []string{w.value("A")}
			}
		}
	}
	w.writeZone(z)
	w.logStep("zone %s: ttl %d, refresh %d, name servers %v %v", z.Object, z.TTL, z.refresh, z.NameServers, z.Addresses)
	return true
}

// stepRecreateZone deletes a zone, with all that others put there, and declares it again.
func (w *randomWorld) stepRecreateZone() bool {
	z := pick(w, w.zones...)
	if w.anyFrozen() || w.anyPaused() {
		return false
	}
	w.touchAll()
	o := w.zoneObject(z)
	w.logStep("delete zone %s", z.Object)
	w.deleteAnyway(o)
	kube.Eventually(w, kube.Settle, func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("zone %s is still there, with finalizers %v: %w", o.Name, o.Finalizers, err)
		}
		return nil
	})
	for _, selects := range [][]string{z.selects, {z.Object}, {"none-of-" + z.Object}} {
		z.selects = selects
		if !w.isRefused(func(ctx context.Context) error { return w.client.Create(ctx, w.zoneObject(z), client.DryRunAll) }) {
			break // It is the youngest now: admission refuses it the records of others.
		}
	}
	w.createZone(z)
	w.touchAll()
	w.logStep("create zone %s, which selects %v", z.Object, z.selects)
	return true
}

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// A secondary that has lost the zone gets it again, and one that was away catches up.
func writeSecondaryLosesZone(f *fixture) {
	f.create(f.a("lost-one", "one", "192.0.2.1"))
	f.inLockstep(settle, has("one.lost.example. 3600 A 192.0.2.1"))
	f.kubectl("exec", "dns-secondary-0-0", "-c", "bindcar", "--", "/lockstep", "rndc", "delzone", "lost.example")
	f.create(f.a("lost-two", "two", "192.0.2.2"))
	f.inLockstep(settle, has("one.lost.example. 3600 A 192.0.2.1", "two.lost.example. 3600 A 192.0.2.2"))

	f.kubectl("exec", "dns-secondary-0-0", "-c", "bindcar", "--", "/lockstep", "rndc", "halt")
	f.create(f.a("lost-three", "three", "192.0.2.3"))
	f.inLockstep(bringUp, has("three.lost.example. 3600 A 192.0.2.3"))
}

// The controller dies in the middle of a burst of creations, and again in the middle of their deletion: every record is
// published once, and every one of them goes.
func writeBurst(f *fixture) {
	const count = 200
	var records []v1beta1.Record
	var lines []string
	for i := range count {
		records = append(records, f.a(fmt.Sprint("burst-", i), fmt.Sprint("h", i), "192.0.2.1"))
		lines = append(lines, fmt.Sprintf("h%d.burst.example. 3600 A 192.0.2.1", i))
	}
	began := time.Now()
	for i, r := range records {
		f.create(r)
		if i == count/2 {
			f.killController(0)
		}
	}
	f.inLockstep(bringUp, has(lines...))
	f.ready(records...)
	f.Logf("%d records are ready %s after the first was made", count, time.Since(began).Round(time.Millisecond))

	began = time.Now()
	for i, r := range records {
		if err := f.client.Delete(f.Context(), r); err != nil {
			f.Fatal(err)
		}
		if i == count/2 {
			f.killController(30)
		}
	}
	for _, r := range records {
		f.goneWithin(bringUp, r)
	}
	f.Logf("%d records are gone %s after the first was deleted", count, time.Since(began).Round(time.Millisecond))
	f.inLockstep(settle, func(lines []string) error {
		if len(lines) != 2 { // the zone's NS and its address
			return fmt.Errorf("the zone still holds\n%s", strings.Join(lines, "\n"))
		}
		return nil
	})
}

func (f *fixture) killController(grace int64) {
	f.Helper()
	if err := killController(f.Context(), f.client, grace); err != nil {
		f.Fatal(err)
	}
}

// While one primary is away the other servers go on, and say what is missing; when it is back it has everything.
func writePrimaryDown(f *fixture) {
	before := f.a("down-before", "before", "192.0.2.1")
	leaving := f.a("down-leaving", "leaving", "192.0.2.2")
	f.create(before, leaving)
	f.ready(before, leaving)
	f.inLockstep(settle, has("before.down.example. 3600 A 192.0.2.1"))

	// With the quota Kubernetes does not make the pod again.
	f.kubectl("create", "quota", "none", "--hard=pods=0")
	f.kubectl("delete", "pod", "dns-primary-1-0", "--grace-period=0", "--force")
	during := f.a("down-during", "during", "192.0.2.3")
	f.create(during)
	if err := f.client.Delete(f.Context(), leaving); err != nil {
		f.Fatal(err)
	}
	kube.Eventually(f, settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		for _, pod := range []string{"dns-primary-0-0", "dns-secondary-0-0"} {
			got, err := ask(servers[pod], "during.down.example.", dns.TypeA)
			if err != nil || !slices.Equal(got, []string{"192.0.2.3"}) {
				return fmt.Errorf("%s answers %v: %w", pod, got, err)
			}
		}
		return nil
	})
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	condition(f, zone, zoneConditions, "Ready", metav1.ConditionFalse, "PrimaryFailed", "dns-primary-1-0", "1 of 2 primaries")
	condition(f, v1beta1.Record(during), recordConditions, "Programmed", metav1.ConditionFalse, "PrimaryFailed", "dns-primary-1-0")
	condition(f, v1beta1.Record(before), recordConditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded")

	f.kubectl("delete", "quota", "none")
	f.kubectl("annotate", "statefulset", "dns-primary-1", "test/retry=now") // else Kubernetes waits longer after each refusal
	f.inLockstep(bringUp, both(has("before.down.example. 3600 A 192.0.2.1", "during.down.example. 3600 A 192.0.2.3"), hasNot("leaving.down.example.")))
	f.ready(during)
	f.gone(leaving)
	condition(f, zone, zoneConditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded")
}

// Whatever is deleted first, nothing waits for ever: the servers go while the zone and its records are still there.
func writeServersGoFirst(f *fixture) {
	deleted, kept := f.a("last-deleted", "deleted", "192.0.2.1"), f.a("last-kept", "kept", "192.0.2.2")
	f.create(deleted, kept)
	f.ready(deleted, kept)
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: f.meta("dns", nil)}
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	for _, o := range []client.Object{cluster, deleted} {
		f.deleteAnyway(o)
	}
	f.goneWithin(bringUp, cluster)
	f.goneWithin(bringUp, deleted)
	condition(f, zone, zoneConditions, "Ready", metav1.ConditionFalse, "NoPrimaryInstances")
	for _, o := range []client.Object{zone, kept} {
		f.deleteAnyway(o)
	}
	f.goneWithin(bringUp, zone)
	f.goneWithin(bringUp, kept)
	kube.Eventually(f, bringUp, func(ctx context.Context) error {
		if servers, err := f.servers(ctx); err == nil {
			return fmt.Errorf("there are still the servers %v", servers)
		}
		return nil
	})
}

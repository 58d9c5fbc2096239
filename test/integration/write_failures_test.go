package integration

import (
	"context"
	"fmt"
	"slices"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// A secondary that has lost the zone gets it again, and one that was away catches up.
func writeSecondaryLosesZone(f *fixture) {
	f.create(f.aRecord("lost-one", "one", "192.0.2.1"))
	f.waitSameContent(kube.Settle, contains("one.lost.example. 3600 A 192.0.2.1"))
	f.kubectl("exec", "dns-secondary-0-0", "-c", "bindcar", "--", "/lockstep", "rndc", "delzone", "lost.example")
	f.create(f.aRecord("lost-two", "two", "192.0.2.2"))
	f.waitSameContent(kube.Settle, contains("one.lost.example. 3600 A 192.0.2.1", "two.lost.example. 3600 A 192.0.2.2"))

	f.kubectl("exec", "dns-secondary-0-0", "-c", "bindcar", "--", "/lockstep", "rndc", "halt")
	f.create(f.aRecord("lost-three", "three", "192.0.2.3"))
	f.waitSameContent(kube.Start, contains("three.lost.example. 3600 A 192.0.2.3"))
}

// While one primary is away the other servers go on, and say what is missing; when it is back it has everything.
func writePrimaryDown(f *fixture) {
	before := f.aRecord("down-before", "before", "192.0.2.1")
	leaving := f.aRecord("down-leaving", "leaving", "192.0.2.2")
	f.create(before, leaving)
	f.waitReady(before, leaving)
	f.waitSameContent(kube.Settle, contains("before.down.example. 3600 A 192.0.2.1"))

	// With the quota Kubernetes does not make the pod again.
	f.kubectl("create", "quota", "none", "--hard=pods=0")
	f.kubectl("delete", "pod", "dns-primary-1-0", "--grace-period=0", "--force")
	during := f.aRecord("down-during", "during", "192.0.2.3")
	f.create(during)
	if err := f.client.Delete(f.Context(), leaving); err != nil {
		f.Fatal(err)
	}
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		for _, pod := range []string{"dns-primary-0-0", "dns-secondary-0-0"} {
			got, err := queryRdata(servers[pod], "during.down.example.", dns.TypeA)
			if err != nil || !slices.Equal(got, []string{"192.0.2.3"}) {
				return fmt.Errorf("%s answers %v: %w", pod, got, err)
			}
		}
		return nil
	})
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	waitCondition(f, zone, zoneConditions, "Ready", metav1.ConditionFalse, "PrimaryFailed", "dns-primary-1-0", "1 of 2 primaries")
	waitCondition(f, v1beta1.Record(during), recordConditions, "Programmed", metav1.ConditionFalse, "PrimaryFailed", "dns-primary-1-0")
	waitCondition(f, v1beta1.Record(before), recordConditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded")

	f.kubectl("delete", "quota", "none")
	f.kubectl("annotate", "statefulset", "dns-primary-1", "test/retry=now") // else Kubernetes waits longer after each refusal
	f.waitSameContent(kube.Start, passesBoth(contains("before.down.example. 3600 A 192.0.2.1", "during.down.example. 3600 A 192.0.2.3"), containsNo("leaving.down.example.")))
	f.waitReady(during)
	f.waitGone(leaving)
	waitCondition(f, zone, zoneConditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded")
}

// Whatever is deleted first, nothing waits for ever: the servers go while the zone and its records are still there.
func writeServersGoFirst(f *fixture) {
	deleted, kept := f.aRecord("last-deleted", "deleted", "192.0.2.1"), f.aRecord("last-kept", "kept", "192.0.2.2")
	f.create(deleted, kept)
	f.waitReady(deleted, kept)
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: f.meta("dns", nil)}
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	for _, o := range []client.Object{cluster, deleted} {
		f.deleteAnyway(o)
	}
	f.waitGoneWithin(kube.Start, cluster)
	f.waitGoneWithin(kube.Start, deleted)
	waitCondition(f, zone, zoneConditions, "Ready", metav1.ConditionFalse, "NoPrimaryInstances")
	for _, o := range []client.Object{zone, kept} {
		f.deleteAnyway(o)
	}
	f.waitGoneWithin(kube.Start, zone)
	f.waitGoneWithin(kube.Start, kept)
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
		if servers, err := f.servers(ctx); err == nil {
			return fmt.Errorf("there are still the servers %v", servers)
		}
		return nil
	})
}

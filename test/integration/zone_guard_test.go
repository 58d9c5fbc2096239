package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// What exceeds the guard of a zone does not vanish from any server, while the controller and a primary are killed, until its plan is
// confirmed; what is added meanwhile is served.
func TestGuard(t *testing.T) {
	kube.Disruptive(t, nil)
	f := newFixture(t, "guard.example", 2, 1)
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	change(f, zone, func(z *v1beta1.DNSZone) {
		z.Spec.Guard = &v1beta1.ZoneGuard{Removed: &v1beta1.GuardLimit{Count: new(int32(0))}, NeverEmpty: []string{"www"}}
	})
	var records []v1beta1.Record
	for i := range 4 {
		records = append(records, f.aRecord(fmt.Sprint("host-", i), fmt.Sprint("host-", i), "192.0.2.1"))
		f.create(records[i])
	}
	f.waitReady(records...)
	f.waitServed("host-0.guard.example", "A", "192.0.2.1")
	stop := f.expectNeverEmpty("host-0.guard.example.", "host-1.guard.example.", "host-2.guard.example.")
	for _, r := range records[:3] {
		if err := f.client.Delete(f.Context(), r); err != nil {
			f.Fatal(err)
		}
	}
	held := func() (plan string) {
		f.Helper()
		waitCondition(f, zone, zoneConditions, "Ready", metav1.ConditionFalse, "Held", "RRsets that would be removed: 3", "bindy.firestoned.io/confirm=")
		if plan = zone.Status.HeldPlan; plan == "" || zone.Status.FailureReason != "Held" {
			f.Errorf("plan %q, failure %q", plan, zone.Status.FailureReason)
		}
		return plan
	}
	plan := held()
	added := f.aRecord("added", "added", "192.0.2.2")
	f.create(added)
	f.waitReady(added)
	f.waitServed("added.guard.example", "A", "192.0.2.2")
	for name, want := range map[string]syncv1.ServerState{"arecord.host-0": syncv1.StateHeld, "dnszone.main": syncv1.StateHeld, "arecord.host-3": syncv1.StateInSync} {
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			s, err := f.status(ctx, name)
			if err != nil {
				return err
			}
			for _, row := range s.Servers {
				if row.State != want {
					return fmt.Errorf("%s: %s is %s, want %s", name, row.Pod, row.State, want)
				}
			}
			return nil
		})
	}

	f.killController(0)
	if err := f.client.Delete(f.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "dns-primary-0-0"}}, client.GracePeriodSeconds(0)); err != nil {
		f.Fatal(err)
	}
	later := f.aRecord("later", "later", "192.0.2.3")
	f.create(later)
	f.waitReady(later)
	f.waitServed("later.guard.example", "A", "192.0.2.3")
	if again := held(); again != plan {
		f.Errorf("the plan %s has become %s", plan, again)
	}
	f.annotateZone(v1beta1.ConfirmAnnotation, "0123456789abcdef0123456789abcdef")
	f.waitServed("host-2.guard.example", "A", "192.0.2.1")
	stop()

	plugin := &pluginTest{f, pluginFolder(t)}
	plugin.expectOutput(2, "holds back plan "+plan+", and not f00d", "confirm", f.object, "--plan=f00d")
	plugin.expectOutput(0, `(?s)vanishes +host-0\.guard\.example\. +A .*vanishes +host-1\..*vanishes +host-2\..*0 appear, 0 change, 3 vanish\n.*is confirmed\n`,
		"confirm", f.object, "--plan="+plan)
	for i, r := range records[:3] {
		f.waitGone(r.(client.Object))
		f.waitServed(fmt.Sprintf("host-%d.guard.example", i), "A")
	}
	f.waitServed("host-3.guard.example", "A", "192.0.2.1")
	waitCondition(f, zone, zoneConditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded")
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(zone), zone); err != nil {
			return err
		}
		if _, there := zone.Annotations[v1beta1.ConfirmAnnotation]; there || zone.Status.HeldPlan != "" {
			return fmt.Errorf("the confirmation is still there, or the plan: %v, %q", zone.Annotations, zone.Status.HeldPlan)
		}
		return nil
	})
	var events eventsv1.EventList
	if err := f.client.List(f.Context(), &events, client.InNamespace(f.namespace)); err != nil {
		f.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == "Held" && e.Regarding.Kind == "DNSZone" {
			return
		}
	}
	f.Error("the zone has no Event Held")
}

// expectNeverEmpty asks every server that answers for names until it is stopped: each answer has to have an address. A pod that has just
// started, and does not serve the zone yet, refuses.
func (f *fixture) expectNeverEmpty(names ...string) (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	var asking sync.WaitGroup
	asked := 0
	asking.Go(func() {
		for ctx.Err() == nil {
			servers, err := f.servers(ctx)
			if err != nil {
				continue
			}
			for pod, server := range servers {
				for _, name := range names {
					reply, err := kube.Query(server, name, dns.TypeA, kube.QueryTimeout)
					if err != nil || reply.Rcode == dns.RcodeRefused || reply.Rcode == dns.RcodeServerFailure {
						continue
					}
					if asked++; len(reply.Answer) == 0 {
						f.Errorf("%s answers %s without an address for %s", pod, dns.RcodeToString[reply.Rcode], name)
					}
				}
			}
		}
	})
	return func() {
		cancel()
		if asking.Wait(); asked == 0 {
			f.Error("nothing was asked")
		}
	}
}

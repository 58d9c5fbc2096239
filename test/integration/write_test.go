package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// What reaches the servers, and what status and Events report. All tests share two primaries and a secondary; each has a zone of
// its own there. Those that do harm to the servers, or look at them when nothing changes, come last and one by one.
func TestWrite(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "write.example", 2, 1)
	run := func(t *testing.T, zone string, test func(*fixture)) {
		t.Run(zone, func(t *testing.T) { test(f.newZone(t, zone)) })
	}
	t.Run("together", func(t *testing.T) {
		var together errgroup.Group // t.Parallel would put them at the end of the queue of all tests
		together.SetLimit(6)
		for _, test := range []struct {
			zone string
			run  func(*fixture)
		}{
			{"life.example", writeRecordLife},
			{"kinds.example", writeEveryKind},
			{"names.example", writeNames},
			{"text.example", writeText},
			{"servers.example", writeNameServers},
			{"united.example", writeUnited},
			{"zonelife.example", writeZoneLife},

			{"expressions.example", writeExpressions},
			{"older.example", writeTwoZonesSelect},
			{"twice.example", writeDuplicateZone},
			{"elsewhere.example", writeInstanceElsewhere},
			{"offered.example", writeRecordElsewhere},

			{"losers.example", writeConflicts},
			{"replaced.example", writeAliasReplaced},
			{"blocked.example", writeForeignAlias},
			{"alone.example", writeRefusedAlone},
			{"meanwhile.example", writeForeignMeanwhile},

			{"events.example", writeEvents},
			{"wrap.example", writeSerialWraps},
			{"overwritten.example", writeOverwritten},
		} {
			together.Go(func() error {
				run(t, test.zone, test.run)
				return nil
			})
		}
		_ = together.Wait()
	})
	run(t, "quiet.example", writeStatusIsQuiet)
	run(t, "lost.example", writeSecondaryLosesZone)
	run(t, "down.example", writePrimaryDown)
	run(t, "last.example", writeServersGoFirst)
}

// What happens to one record in its life, each step seen in the answers of every server.
func writeRecordLife(f *fixture) {
	record := f.aRecord("life-www", "www", "192.0.2.1")

	f.create(record)
	f.waitServed("www.life.example", "A", "192.0.2.1")
	f.waitRecordStatus(record, v1beta1.RecordStatus{Zone: "life.example", PublishedName: "www.life.example", Addresses: "192.0.2.1"})
	first := record.Status.RecordHash

	change(f, record, func(r *v1beta1.ARecord) { r.Spec.IPv4Addresses = []string{"192.0.2.3", "192.0.2.2"} })
	f.waitServed("www.life.example", "A", "192.0.2.2", "192.0.2.3")

	change(f, record, func(r *v1beta1.ARecord) { r.Spec.Name = "Web.Eu" })
	f.waitServed("web.eu.life.example", "A", "192.0.2.2", "192.0.2.3")
	f.waitServed("www.life.example", "A")
	f.waitRecordStatus(record, v1beta1.RecordStatus{Zone: "life.example", PublishedName: "web.eu.life.example", Addresses: "192.0.2.2,192.0.2.3"})
	second := record.Status.RecordHash
	if second == first {
		f.Errorf("the hash of the record is %s as before, with other data", second)
	}

	change(f, record, func(r *v1beta1.ARecord) { r.Labels = map[string]string{"zone": "none"} })
	f.waitServed("web.eu.life.example", "A")
	f.waitReleased(record)

	change(f, record, func(r *v1beta1.ARecord) { r.Labels = f.labels() })
	f.waitServed("web.eu.life.example", "A", "192.0.2.2", "192.0.2.3")
	f.waitRecordStatus(record, v1beta1.RecordStatus{Zone: "life.example", PublishedName: "web.eu.life.example", Addresses: "192.0.2.2,192.0.2.3"})
	if record.Status.RecordHash != second {
		f.Errorf("the hash of the record is %s, and was %s with the same data", record.Status.RecordHash, second)
	}

	if err := f.client.Delete(f.Context(), record); err != nil {
		f.Fatal(err)
	}
	f.waitServed("web.eu.life.example", "A")
	f.waitGone(record)
}

// A changed selector lets records go, a changed SOA reaches every server, a deleted zone leaves its servers, and nothing
// of it is left on the records.
func writeZoneLife(f *fixture) {
	record := f.aRecord("zonelife-www", "www", "192.0.2.1")
	f.create(record)
	f.waitServed("www.zonelife.example", "A", "192.0.2.1")

	zone := &v1beta1.DNSZone{ObjectMeta: f.meta(f.object, nil)}
	change(f, zone, func(z *v1beta1.DNSZone) { z.Spec.RecordsFrom[0].Selector.MatchLabels["zone"] = "other" })
	f.waitServed("www.zonelife.example", "A")
	f.waitReleased(record)
	change(f, zone, func(z *v1beta1.DNSZone) {
		z.Spec.RecordsFrom[0].Selector.MatchLabels["zone"] = f.object
		z.Spec.SOARecord.Refresh = 1234
	})
	f.waitServed("www.zonelife.example", "A", "192.0.2.1")
	f.waitEveryServer(func(server string) error {
		soa, err := queryRdata(server, "zonelife.example.", dns.TypeSOA)
		if err != nil || len(soa) != 1 {
			return fmt.Errorf("%v %w", soa, err)
		}
		if got, err := rrset.ParseSOA(soa[0]); err != nil || got.Refresh != 1234 {
			return fmt.Errorf("the SOA is still %s", soa[0])
		}
		return nil
	})

	f.deleteAnyway(zone)
	f.waitGone(zone)
	f.waitReleased(record)
	f.waitEveryServer(func(server string) error {
		if _, err := queryRdata(server, "zonelife.example.", dns.TypeSOA); err == nil || err.Error() != "answered REFUSED" {
			return fmt.Errorf("it still serves the zone (%w)", err)
		}
		return nil
	})
}

// A primary that comes back with nothing has the complete zone, foreign data included, on the serial its secondaries
// know, before it answers anything.
func TestWritePrimaryComesBackEmpty(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "replay.example", 1, 1)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitServed("www.replay.example", "A", "192.0.2.1")
	f.updateByHand("dns-primary-0-0", addRecords("legacy.replay.example. 300 A 192.0.2.99"))
	f.waitServed("legacy.replay.example", "A", "192.0.2.99")
	before := f.waitSameContent(kube.Settle, contains("legacy.replay.example. 300 A 192.0.2.99")).serial

	old := &corev1.Pod{ObjectMeta: f.meta("dns-primary-0-0", nil)}
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
		t.Fatal(err)
	}
	if err := f.client.Delete(t.Context(), old, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	kube.Throughout(t, kube.Start, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		server, ok := servers["dns-primary-0-0"]
		pod := &corev1.Pod{}
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(old), pod); err != nil || !ok || pod.UID == old.UID {
			return errors.New("the pod is not back yet")
		}
		got, err := queryRdata(server, "www.replay.example.", dns.TypeA)
		if err != nil {
			return err // Refused or unreachable: resolvers turn to the other servers.
		}
		if len(got) != 1 {
			t.Fatalf("the primary answers %v from an empty zone", got)
		}
		return nil
	})
	t.Logf("the records were served again after %s", time.Since(began).Round(10*time.Millisecond))
	after := f.waitSameContent(kube.Settle, contains("legacy.replay.example. 300 A 192.0.2.99", "www.replay.example. 3600 A 192.0.2.1")).serial
	if after != before {
		t.Errorf("the zone came back with serial %d, its secondaries know %d", after, before)
	}
	f.waitForeignCount(1)
}

// waitRecordStatus waits until a record is ready and its status says what is expected.
func (f *fixture) waitRecordStatus(record v1beta1.Record, want v1beta1.RecordStatus) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		got := record.GetRecordStatus()
		if !meta.IsStatusConditionTrue(got.Conditions, "Ready") || got.ObservedGeneration != record.GetGeneration() ||
			got.Zone != want.Zone || got.PublishedName != want.PublishedName || got.Addresses != want.Addresses {
			return fmt.Errorf("the status is %+v", got)
		}
		if zone := record.GetAnnotations()[v1beta1.ZoneAnnotation]; zone != want.Zone {
			return fmt.Errorf("the annotation says zone %q", zone)
		}
		return nil
	})
}

// waitCondition waits until a condition of an object has the status and the reason, and its message all of the words.
func waitCondition[T client.Object](f *fixture, o T, conditions func(T) []metav1.Condition, kind string, status metav1.ConditionStatus, reason string, words ...string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		c := meta.FindStatusCondition(conditions(o), kind)
		if c == nil || c.Status != status || c.Reason != reason || !containsAll(c.Message, words) || c.ObservedGeneration != o.GetGeneration() {
			return fmt.Errorf("condition %s of %s (generation %d) is %+v, want %s %s with %q", kind, o.GetName(), o.GetGeneration(), c, status, reason, words)
		}
		return nil
	})
}

func recordConditions(r v1beta1.Record) []metav1.Condition { return r.GetRecordStatus().Conditions }
func zoneConditions(z *v1beta1.DNSZone) []metav1.Condition { return z.Status.Conditions }

// waitReady waits until records are ready for their present generation.
func (f *fixture) waitReady(records ...v1beta1.Record) {
	f.Helper()
	for _, r := range records {
		waitCondition(f, r, recordConditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded")
	}
}

// waitReleased waits until nothing on a record says any more that it is in a zone.
func (f *fixture) waitReleased(record v1beta1.Record) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(record.GetRecordStatus().Conditions, "Ready")
		switch {
		case controllerutil.ContainsFinalizer(record, v1beta1.Finalizer):
			return errors.New("the finalizer is still there")
		case record.GetAnnotations()[v1beta1.ZoneAnnotation] != "":
			return errors.New("the zone annotation is still there")
		case record.GetRecordStatus().Zone != "" || record.GetRecordStatus().PublishedName != "":
			return fmt.Errorf("the status is %+v", record.GetRecordStatus())
		case ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != "NotSelected":
			return fmt.Errorf("condition Ready is %+v", ready)
		}
		return nil
	})
}

func (f *fixture) waitGone(o client.Object) {
	f.Helper()
	f.waitGoneWithin(kube.Settle, o)
}

// waitGoneWithin waits until an object is gone.
func (f *fixture) waitGoneWithin(limit kube.Patience, o client.Object) {
	f.Helper()
	kube.Eventually(f, limit, func(ctx context.Context) error {
		err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil {
			return fmt.Errorf("%s is still there with finalizers %v", o.GetName(), o.GetFinalizers())
		}
		return client.IgnoreNotFound(err)
	})
}

// waitEveryServer waits until every server passes the check.
func (f *fixture) waitEveryServer(check func(server string) error) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		for pod, server := range servers {
			if err := check(server); err != nil {
				return fmt.Errorf("%s: %w", pod, err)
			}
		}
		return nil
	})
}

package integration

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// stalledCache is a cache that stays as it was.
type stalledCache struct {
	client.Reader
	object client.Object
}

func (c stalledCache) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(c.object.DeepCopyObject()).Elem())
	return nil
}

// A status that changes from A to B and back is written both times, although the cache has A all the while.
func TestWriteStatusBesideAStalledCache(t *testing.T) {
	kube.Isolated(t)
	f := &fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it")}
	record := f.aRecord("www", "www", "192.0.2.1")
	f.create(record)
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		// The controller says that no zone selects the record. When the writes take long, it says so again between two of them.
		waitCondition(f, v1beta1.Record(record), recordConditions, "Ready", metav1.ConditionFalse, "NotSelected")
		return changeStatusAndBack(ctx, f, record)
	})
	waitCondition(f, v1beta1.Record(record), recordConditions, "Ready", metav1.ConditionFalse, "NotSelected")
}

// changeStatusAndBack writes a record's status four times, by a client whose cache keeps the record as it is.
func changeStatusAndBack(ctx context.Context, f *fixture, record *v1beta1.ARecord) error {
	f.Helper()
	current, err := apply.NewClient(kube.Config(f), client.Options{
		Scheme: f.client.Scheme(), Cache: &client.CacheOptions{Reader: stalledCache{object: record.DeepCopy()}},
	})
	if err != nil {
		return err
	}
	kind := v1beta1.GroupVersion.WithKind("ARecord")
	was := record.Status
	failed := *was.DeepCopy()
	status.Set(&failed.Conditions, "Ready", status.False(status.ReconcileFailed, "dns-primary-0-0: SERVFAIL"), record.Generation, time.Now())
	for i, next := range []v1beta1.RecordStatus{failed, was, failed, was} {
		read := &v1beta1.ARecord{}
		if err := current.Get(ctx, client.ObjectKeyFromObject(record), read); err != nil {
			return err
		}
		if reflect.DeepEqual(read.Status, next) {
			if read.ResourceVersion == record.ResourceVersion {
				f.Fatalf("write %d would not be sent: the status is read as it was at first", i+1)
			}
			return errors.New("the controller has put the status right meanwhile")
		}
		if i < 2 {
			_, err = apply.ReplaceStatus(ctx, current, kind, read, &next)
		} else {
			err = apply.Status(ctx, current, kind, read, &next)
		}
		if err != nil {
			return err
		}
	}
	if _, err := apply.ReplaceStatus(ctx, current, kind, record, &failed); !apierrors.IsConflict(err) {
		f.Errorf("a status made from an older object was written: %v", err)
	}
	return nil
}

// The only server of a zone loses it to an "rndc delzone", and has it again with all that was in it: also when it was written by
// hand a moment before, so that a pass finds the zone missing first.
func TestWriteZoneDeletedByHand(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "delzone.example", 1, 0)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitServed("www.delzone.example", "A", "192.0.2.1")
	var legacy []string
	for i := range 5 {
		legacy = append(legacy, fmt.Sprintf("legacy%d.delzone.example", i))
		f.updateByHand("dns-primary-0-0", addRecords(legacy[i]+". 300 A 192.0.2.99"))
		f.kubectl("exec", "dns-primary-0-0", "-c", "bindcar", "--", "/lockstep", "rndc", "delzone", "delzone.example")
		began := time.Now()
		f.waitServed("www.delzone.example", "A", "192.0.2.1")
		for _, name := range legacy {
			f.waitServed(name, "A", "192.0.2.99")
		}
		t.Logf("the zone was back after %s", time.Since(began).Round(10*time.Millisecond))
	}
}

// waitForeignCount waits until the zone's status counts so many RRsets that nobody declares.
func (f *fixture) waitForeignCount(want int32) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		zone := &v1beta1.DNSZone{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: f.object}, zone); err != nil {
			return err
		}
		if zone.Status.ForeignRRsetsCount != want {
			return fmt.Errorf("foreignRRsetsCount is %d, want %d", zone.Status.ForeignRRsetsCount, want)
		}
		return nil
	})
}

// A controller whose pod was deleted by force is replaced without waiting for its lease to expire. A successor that waited would lead no
// earlier than a whole lease after its own start: it can only count from what it has seen itself. On a busy machine the start alone may
// take that long; then the next one shows it.
func TestWriteControllerReplaced(t *testing.T) {
	kube.Disruptive(t, nil)
	c := kube.Client(t)
	if err := kube.KillControllers(t.Context(), c, 0); err != nil {
		t.Fatal(err)
	}
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		lease, pod := &coordinationv1.Lease{}, &corev1.Pod{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: system, Name: "lockstep-controller"}, lease); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || lease.Spec.AcquireTime == nil || lease.Spec.LeaseDurationSeconds == nil {
			return errors.New("nobody holds the lease")
		}
		if err := c.Get(ctx, client.ObjectKey{Namespace: system, Name: *lease.Spec.HolderIdentity}, pod); err != nil {
			return fmt.Errorf("the lease is that of a pod that is gone: %w", err)
		}
		if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Running == nil {
			return fmt.Errorf("pod %s does not run", pod.Name)
		}
		expiry := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
		waited := lease.Spec.AcquireTime.Sub(pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time)
		t.Logf("pod %s leads %s after its start", pod.Name, waited.Round(100*time.Millisecond))
		if waited < expiry && pod.Status.ContainerStatuses[0].RestartCount == 0 {
			return nil
		}
		return errors.Join(
			fmt.Errorf("pod %s leads %s after the start of its container, which began anew %d times; a lease takes %s to expire",
				pod.Name, waited, pod.Status.ContainerStatuses[0].RestartCount, expiry),
			c.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	})
}

// A zone that a primary refuses to change fails in the server's words, and so does what waits for it, a record and a DNSEndpoint; all end with
// the refusal.
func TestWriteFrozenZone(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "frozen.example", 1, 0)
	record := f.aRecord("www", "www", "192.0.2.1")
	endpoint := f.dnsEndpoint("api", endpointEntry("api.frozen.example", "A", 0, "192.0.2.1"))
	held := map[string][]string{"main": {"api.frozen.example./A"}}
	f.create(record, endpoint)
	f.waitReady(record)
	f.waitProgrammed(endpoint, held)
	f.checkColumns("dnsendpoint/api", "NAME ACCEPTED PROGRAMMED READY AGE", "api True True True")
	synced := endpoint.Status.LastSyncTime
	rndc := func(command string) {
		f.kubectl("exec", "dns-primary-0-0", "-c", "bindcar", "--", "/lockstep", "rndc", command, "frozen.example")
	}
	rndc("freeze")
	change(f, record, func(r *v1beta1.ARecord) { r.Spec.IPv4Addresses = []string{"192.0.2.2"} })
	change(f, endpoint, func(e *v1alpha1.DNSEndpoint) { e.Spec.Endpoints[0].Targets = []string{"192.0.2.2"} })
	zone := &v1beta1.DNSZone{ObjectMeta: f.meta("main", nil)}
	waitCondition(f, zone, zoneConditions, "Ready", metav1.ConditionFalse, "PrimaryFailed", "REFUSED")
	for _, kind := range []string{"Programmed", "Ready"} {
		waitCondition(f, endpoint, endpointConditions, kind, metav1.ConditionFalse, "PrimaryFailed", "spec.endpoints[0] api.frozen.example./A: ", "dns-primary-0-0", "answered REFUSED")
	}
	waitCondition(f, endpoint, endpointConditions, "Accepted", metav1.ConditionTrue, "Accepted", "1 endpoint is part of zone frozen.example")
	if !endpoint.Status.LastSyncTime.Equal(synced) {
		t.Errorf("a change that was refused moved lastSyncTime from %s to %s", synced, endpoint.Status.LastSyncTime)
	}
	f.checkColumns("dnsendpoint/api", "NAME ACCEPTED PROGRAMMED READY AGE", "api True False False")
	refusal := regexp.MustCompile(`nsupdate sent.* zone="frozen\.example" server="dns-primary-0-0" .* problem=".*REFUSED`)
	kube.Eventually(f, kube.Settle, func(context.Context) error {
		if !refusal.MatchString(kube.Kubectl(f, "", "-n", system, "logs", "deployment/lockstep-controller", "--since=5m")) {
			return errors.New("the controller's log does not mention the refusal")
		}
		return nil
	})
	f.checkColumns("dnszone/main", "NAME ZONE PROVIDER RECORDS INSTANCES TTL READY AGE", "main frozen.example dns")
	if zone.Status.FailureReason != "Refused" || !strings.Contains(zone.Status.FailureMessage, "answered REFUSED") {
		t.Errorf("the zone's failure is %q: %q", zone.Status.FailureReason, zone.Status.FailureMessage)
	}
	f.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "syncstatus/arecord.www", "--timeout=120s")
	if got := f.kubectl("get", "syncstatus/arecord.www", "-o", "jsonpath={.status.failureReason}: {.status.failureMessage}"); !strings.HasPrefix(got, "Refused: ") || !strings.Contains(got, "answered REFUSED") {
		t.Errorf("the record's SyncStatus says %q", got)
	}
	if got := f.kubectl("get", "events", "--field-selector", "involvedObject.name=main,reason=Refused", "-o", "name"); got == "" {
		t.Error("the zone has no Event")
	}
	rndc("thaw")
	f.waitServed("www.frozen.example", "A", "192.0.2.2")
	f.waitServed("api.frozen.example", "A", "192.0.2.2")
	f.waitProgrammed(endpoint, held)
	waitCondition(f, zone, zoneConditions, "Ready", metav1.ConditionTrue, "ReconcileSucceeded")
	if zone.Status.FailureReason != "" {
		t.Errorf("the failure stays: %s", zone.Status.FailureReason)
	}
	f.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
}

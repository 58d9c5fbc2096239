package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// What a controller does whose predecessor was killed.
func TestControllerKilled(t *testing.T) {
	var f *fixture
	kube.Disruptive(t, func() { f = newFixture(t, "killed.example", 2, 1) })
	t.Run("burst", func(t *testing.T) { killedInBurst(f.newZone(t, "burst.example", withoutGuard)) })
	f.runSub("replaced status", killedAfterReplacedStatus)
	f.runSub("rotation", killedAmidstRotation)
}

func (f *fixture) killController(grace int64) {
	f.Helper()
	if err := kube.KillControllers(f.Context(), f.client, grace); err != nil {
		f.Fatal(err)
	}
}

// withoutGuard lets a zone lose all records at once.
func withoutGuard(z *v1beta1.DNSZone) {
	z.Spec.Guard = &v1beta1.ZoneGuard{Removed: &v1beta1.GuardLimit{Percent: new(int32(100))}}
}

// The controller dies in the middle of a burst of creations, and again in the middle of their deletion: every record is
// published once, and every one of them goes.
func killedInBurst(f *fixture) {
	const count = 200
	var records []v1beta1.Record
	var lines []string
	for i := range count {
		records = append(records, f.aRecord(fmt.Sprint("burst-", i), fmt.Sprint("h", i), "192.0.2.1"))
		lines = append(lines, fmt.Sprintf("h%d.%s. 3600 A 192.0.2.1", i, f.zone))
	}
	began := time.Now()
	for i, r := range records {
		f.create(r)
		if i == count/2 {
			f.killController(0)
		}
	}
	f.waitSameContent(kube.Start, contains(lines...))
	f.waitReady(records...)
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
		f.waitGoneWithin(kube.Start, r)
	}
	f.Logf("%d records are gone %s after the first was deleted", count, time.Since(began).Round(time.Millisecond))
	f.waitSameContent(kube.Settle, func(lines []string) error {
		if len(lines) != 2 { // the zone's NS and its address
			return fmt.Errorf("the zone still holds\n%s", strings.Join(lines, "\n"))
		}
		return nil
	})
}

// The controller dies after somebody has replaced the status of a DNSEndpoint: data leaves a zone that does not take the object any more.
func killedAfterReplacedStatus(f *fixture) {
	o := f.replacedEndpoint()
	f.waitProgrammed(o, f.replacedServed())
	if ready := meta.FindStatusCondition(o.Status.Conditions, "Ready"); ready == nil || ready.Status != metav1.ConditionTrue || o.Status.LastSyncTime == nil {
		f.Errorf("condition Ready is %+v, the last sync %v", ready, o.Status.LastSyncTime)
	}
	f.killController(0)
	f.leaveZone(o)
}

// The controller dies while keys are replaced, before and after the switch: its successor goes on where the rings say that it was.
func killedAmidstRotation(f *fixture) {
	old := map[string]*wire.Key{}
	for _, role := range []named.KeyRole{named.KeyUpdate, named.KeyTransfer} {
		old[named.KeyringSecretName("dns", role)] = f.activeKey(f.Context(), "dns", role)
	}
	pods := f.podStates()
	fresh := f.replaceKeys()
	for ring := range old { // Each has two keys for named.KeyGrace at least.
		f.waitRing(ring, func(names layout.KeyNames) bool { return len(names.Accepted) == 2 })
	}
	f.killController(0)
	for ring, key := range old {
		f.waitRing(ring, func(names layout.KeyNames) bool { return names.Active != key.Name })
	}
	f.killController(0)
	for ring, key := range old {
		f.age(ring, named.KeyGrace)
		f.waitRotated(ring, key)
	}
	if after := f.podStates(); !slices.Equal(pods, after) {
		f.Errorf("pods %v became %v", pods, after)
	}
	f.oldKeysAreWorthNothing(old)
	f.freshKeysWork(fresh)
}

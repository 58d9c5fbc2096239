package integration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// Two objects that exclude each other, applied at the same instant: exactly one wins. The other is refused, or is stored and
// gets a condition; never do both win, and never both lose.
func TestMainJobRaceOfConflictingApplies(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "race.example", 1, 0)
	for round := range 20 {
		name := fmt.Sprint("n", round)
		address := f.aRecord("a-"+name, name, "192.0.2.1")
		alias := &v1beta1.CNAMERecord{ObjectMeta: f.meta("c-"+name, f.labels())}
		alias.Spec.Name, alias.Spec.Target = name, "other.example.net."
		racers := []client.Object{address, alias}
		errs := make([]error, len(racers))
		start := make(chan struct{})
		var all sync.WaitGroup
		for i, o := range racers {
			all.Go(func() {
				<-start
				errs[i] = f.client.Create(f.Context(), o)
			})
		}
		close(start)
		all.Wait()
		var stored []v1beta1.Record
		for i, o := range racers {
			if errs[i] == nil {
				stored = append(stored, o.(v1beta1.Record))
			} else if !apierrors.IsInvalid(errs[i]) {
				t.Fatal(errs[i])
			}
		}
		f.waitOneWinner(stored)
	}
}

// waitOneWinner waits until one of the records is accepted and the others report the conflict.
func (f *fixture) waitOneWinner(records []v1beta1.Record) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		won := 0
		for _, record := range records {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
				return err
			}
			c := meta.FindStatusCondition(record.GetRecordStatus().Conditions, "Accepted")
			switch {
			case c == nil:
				return fmt.Errorf("%s has no condition yet", record.GetName())
			case c.Status == metav1.ConditionTrue:
				won++
			case c.Reason != "Conflict":
				return fmt.Errorf("%s: Accepted=%s, %s: %s", record.GetName(), c.Status, c.Reason, c.Message)
			}
		}
		if won != 1 {
			return fmt.Errorf("%d of %d records are accepted, want one", won, len(records))
		}
		return nil
	})
}

// Two namespaces declare a zone of one name on shared servers at the same instant: one has it, and admission says so of the same one as
// the controller and SyncStatus do.
func TestRaceForNamesOnSharedServers(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	cluster.Spec.Namespace = f.namespace
	cluster.Spec.Primary = &v1beta1.RoleConfig{Replicas: new(int32(1))}
	f.create(cluster)
	t.Cleanup(func() {
		kube.Kubectl(t, "", "annotate", "bind9globalcluster", cluster.Name, v1beta1.AllowDeletionAnnotation+"=true")
		kube.Kubectl(t, "", "delete", "bind9globalcluster", cluster.Name, "--timeout=120s")
	})
	kube.Kubectl(t, "", "wait", "--for=condition=Ready", "bind9globalcluster/"+cluster.Name, "--timeout=120s")
	spaces := []string{kube.Namespace(t, "it"), kube.Namespace(t, "it")}
	both := 0
	for round := range 20 {
		zones, errs := make([]*v1beta1.DNSZone, 2), make([]error, 2)
		start := make(chan struct{})
		var all sync.WaitGroup
		for i, space := range spaces {
			zones[i] = f.dnsZone(fmt.Sprint("z", round), fmt.Sprintf("z%d.%s.example", round, f.namespace))
			zones[i].Namespace, zones[i].Spec.ClusterRef = space, cluster.Name
			all.Go(func() {
				<-start
				errs[i] = f.client.Create(f.Context(), zones[i])
			})
		}
		close(start)
		all.Wait()
		for i := range errs {
			if errs[i] != nil && !(apierrors.IsInvalid(errs[i]) && errs[1-i] == nil) {
				t.Fatal(errs)
			}
		}
		if errs[0] == nil && errs[1] == nil {
			both++
			f.requireOneHolder(zones)
		}
	}
	t.Logf("in %d of 20 rounds both zones were stored", both)
}

// requireOneHolder requires that the older one of two zones of a name is served, the other is not, and that admission takes a change of
// the one only.
func (f *fixture) requireOneHolder(zones []*v1beta1.DNSZone) {
	f.Helper()
	slices.SortFunc(zones, func(a, b *v1beta1.DNSZone) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	for i, want := range []string{"", "DuplicateZone"} {
		zone := zones[i]
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(zone), zone); err != nil {
				return err
			}
			s := &syncv1.SyncStatus{}
			if err := f.client.Get(ctx, client.ObjectKey{Namespace: zone.Namespace, Name: "dnszone." + zone.Name}, s); err != nil {
				return err
			}
			ready, accepted := meta.FindStatusCondition(zone.Status.Conditions, "Ready"), meta.FindStatusCondition(s.Status.Conditions, "Accepted")
			if ready == nil || accepted == nil || (want == "") != (ready.Status == metav1.ConditionTrue) || (want == "") != (accepted.Status == metav1.ConditionTrue) ||
				want != "" && (ready.Reason != want || accepted.Reason != want) {
				return fmt.Errorf("%s: Ready %v, Accepted %v, want %q", client.ObjectKeyFromObject(zone), ready, accepted, want)
			}
			return nil
		})
		zone.Spec.SOARecord.Refresh++
		if err := f.client.Update(f.Context(), zone, client.DryRunAll); (want == "") != (err == nil) || err != nil && !apierrors.IsInvalid(err) {
			f.Errorf("a change of %s, which is %q, is answered with %v", client.ObjectKeyFromObject(zone), want, err)
		}
	}
}

package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
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
	kube.Eventually(f, settleTimeout, func(ctx context.Context) error {
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

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// More values of a name than named takes by default wait, are say so with the field to raise, and are served by all servers once that is
// raised, without a word to the record. The zone around them is served all the time.
func TestManyValues(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "many.example", 1, 1)
	var addresses []string
	for i := range 250 {
		addresses = append(addresses, fmt.Sprintf("192.0.2.%d", i))
	}
	many, few := f.aRecord("many", "many", addresses...), f.aRecord("few", "few", "192.0.2.1")
	f.create(many, few)
	f.waitReady(few)
	waitCondition[v1beta1.Record](f, many, recordConditions, "Accepted", metav1.ConditionFalse, "Unsupported",
		"would have 250 values", "at most 100", "raise spec.global.maxRecordsPerType of its cluster dns")
	f.waitServed("many.many.example", "A")

	cluster := &v1beta1.Bind9Cluster{ObjectMeta: f.meta("dns", nil)}
	change(f, cluster, func(c *v1beta1.Bind9Cluster) {
		c.Spec.Global = &v1beta1.Bind9Config{MaxRecordsPerType: new(int32(300))}
	})
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
		var instances v1beta1.Bind9InstanceList
		if err := f.client.List(ctx, &instances, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		for i := range instances.Items {
			if of := &instances.Items[i]; of.Status.MaxRecordsPerType != 300 {
				return fmt.Errorf("the pods of %s take %d values, want 300", of.Name, of.Status.MaxRecordsPerType)
			}
		}
		return nil
	})
	f.waitReady(many)
	slices.Sort(addresses)
	f.waitServed("many.many.example", "A", addresses...)
	f.waitServed("few.many.example", "A", "192.0.2.1")
}

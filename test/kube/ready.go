package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// WaitReady waits until objects of a namespace are ready, in their present generation. They are named as kubectl names them, for example
// bind9cluster/dns.
func WaitReady(t testing.TB, c client.Client, namespace string, limit Patience, names ...string) {
	t.Helper()
	Eventually(t, limit, func(ctx context.Context) error {
		for _, name := range names {
			if err := isReady(ctx, c, namespace, name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

func isReady(ctx context.Context, c client.Client, namespace, name string) error {
	kind, name, _ := strings.Cut(name, "/")
	var object client.Object
	var conditions *[]metav1.Condition
	switch kind {
	case "bind9cluster":
		o := &v1beta1.Bind9Cluster{}
		object, conditions = o, &o.Status.Conditions
	case "bind9instance":
		o := &v1beta1.Bind9Instance{}
		object, conditions = o, &o.Status.Conditions
	case "dnszone":
		o := &v1beta1.DNSZone{}
		object, conditions = o, &o.Status.Conditions
	default:
		return fmt.Errorf("the kind %s is not known here", kind)
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return err
	}
	if ready := meta.FindStatusCondition(*conditions, "Ready"); ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration < object.GetGeneration() {
		return fmt.Errorf("generation %d has conditions %+v", object.GetGeneration(), *conditions)
	}
	return nil
}

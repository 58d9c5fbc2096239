package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	endpointv1alpha1 "github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// Namespace creates a namespace for one test, which enforces the restricted Pod Security Standard, and deletes it after the
// test. The test fails when the deletion does not end.
func Namespace(t testing.TB, prefix string) string {
	t.Helper()
	c := Client(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: prefix + "-" + keyOf(t.Name()) + "-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(describeNamespace(t, ns.Name))
		}
		if err := deleteNamespace(c, ns.Name); err != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

// deleteNamespace deletes a namespace and waits until it is gone. Kubernetes begins to empty it after five seconds, begins with the pods,
// and looks again after half of their grace period; then it deletes everything else, and looks again for what has a finalizer. It
// is done the first time if pods and finalizers are gone by then.
func deleteNamespace(c client.Client, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), Settle.Duration())
	defer cancel()
	if err := c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return client.IgnoreNotFound(err)
	}
	objects := []client.Object{&endpointv1alpha1.DNSEndpoint{}}
	for _, kind := range v1beta1.RecordKinds {
		objects = append(objects, kind.New())
	}
	objects = append(objects, &v1beta1.DNSZone{}, &v1beta1.Bind9Cluster{}, &v1beta1.Bind9Instance{}, &corev1.Pod{})
	for _, object := range objects {
		_ = c.DeleteAllOf(ctx, object, client.InNamespace(name), client.GracePeriodSeconds(1)) // or Kubernetes does
	}
	deleteEvents(ctx, c, name)
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, false, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})), nil
	})
	if err != nil {
		return fmt.Errorf("namespace %s is still there: %w", name, err)
	}
	return nil
}

// deleteEvents deletes the Events of a namespace, several at a time, while its pods end. Kubernetes deletes one after the other, and
// begins anew after a minute: a test may have caused more of them than a busy machine deletes in that time.
func deleteEvents(ctx context.Context, c client.Client, namespace string) {
	var events corev1.EventList
	if err := c.List(ctx, &events, client.InNamespace(namespace)); err != nil {
		return // Kubernetes does it.
	}
	var deletions errgroup.Group
	deletions.SetLimit(8)
	for i := range events.Items {
		deletions.Go(func() error {
			_ = c.Delete(ctx, &events.Items[i])
			return nil
		})
	}
	_ = deletions.Wait()
}

// describeNamespace returns what helps to understand a failure: the objects and events of the test's namespace, and what those who
// work on them have logged of it last.
func describeNamespace(t testing.TB, namespace string) string {
	var b strings.Builder
	for _, args := range [][]string{
		{"get", "dns,pods,statefulsets,services", "-o", "wide"},
		{"get", "syncstatus", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
	} {
		out, _ := runKubectl(t, "", append([]string{"--namespace", namespace}, args...)...)
		b.WriteString(out + "\n")
	}
	for _, deployment := range []string{"lockstep-fleet", "lockstep-controller"} {
		out, _ := runKubectl(t, "", "--namespace", home, "logs", "deployment/"+deployment, "--tail=1000")
		lines := slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool { return !strings.Contains(line, namespace) })
		b.WriteString(deployment + ":\n" + strings.Join(lines[max(0, len(lines)-lastLines):], "\n") + "\n")
	}
	return b.String()
}

// lastLines is how much of a log is shown: few enough for a reader to find what the test said itself.
const lastLines = 12

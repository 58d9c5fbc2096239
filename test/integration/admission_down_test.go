package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// While no webhook answers, specifications of records and zones cannot change, and everything else goes on: other kinds,
// status, finalizers, deletion. What is stored without marks gets them from the controller.
func TestAdmissionDown(t *testing.T) {
	var f *fixture
	var record *v1beta1.ARecord
	kube.Disruptive(t, func() {
		f = newAdmission(t)
		record = f.aRecord("www", "www", "192.0.2.1")
		record.Finalizers = []string{"example.com/held"}
		f.create(record)
	})
	f.down()
	t.Run("fails closed", func(t *testing.T) { f.failsClosed(t, record) })
	t.Run("holds up nothing else", func(t *testing.T) { f.goesOn(t, record) })
	t.Run("the controller marks", func(t *testing.T) { f.marksLater(t, record) })
	if err := f.client.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	change(f, record, func(r *v1beta1.ARecord) {
		controllerutil.RemoveFinalizer(r, "example.com/held")
		controllerutil.RemoveFinalizer(r, "example.com/second")
	})
	f.waitGone(record)
	scaleWebhook(t, 1)
	f.waitWebhookAnswers()
}

// down takes the webhook away until the end of the test. One that is about to end goes on answering for some seconds, on
// connections that kube-apiserver has: only when no pod is left nobody answers.
func (f *fixture) down() {
	f.Helper()
	scaleWebhook(f, 0)
	f.Cleanup(func() { scaleWebhook(f, 1) })
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := f.client.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "webhook"}); err != nil {
			return err
		}
		if n := len(pods.Items); n > 0 {
			return fmt.Errorf("%d webhooks are left", n)
		}
		return nil
	})
}

func scaleWebhook(t testing.TB, replicas int) {
	t.Helper()
	kube.Kubectl(t, "", "-n", system, "scale", "deployment/lockstep-webhook", fmt.Sprintf("--replicas=%d", replicas))
	kube.Kubectl(t, "", "-n", system, "rollout", "status", "deployment/lockstep-webhook", "--timeout=120s")
}

// failsClosed checks that nothing is stored without a review.
func (f *fixture) failsClosed(t *testing.T, record *v1beta1.ARecord) {
	renamed, relabelled := record.DeepCopy(), record.DeepCopy()
	renamed.Spec.Name = "web"
	relabelled.Labels["zone"] = "none"
	for what, err := range map[string]error{
		"a new record":       f.client.Create(t.Context(), f.aRecord("new", "new", "192.0.2.1"), client.DryRunAll),
		"a new zone":         f.client.Create(t.Context(), f.dnsZone("new", "new.example"), client.DryRunAll),
		"another name":       f.client.Patch(t.Context(), renamed, client.MergeFrom(record), client.DryRunAll),
		"a record's zone":    f.client.Patch(t.Context(), relabelled, client.MergeFrom(record), client.DryRunAll),
		"a zone's selectors": f.reselect(t),
	} {
		if !apierrors.IsInternalError(err) {
			t.Errorf("%s: %v, want it to wait for the webhook", what, err)
		}
	}
}

// reselect asks for other selectors of the zone.
func (f *fixture) reselect(t *testing.T) error {
	zone := &v1beta1.DNSZone{}
	if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "main"}, zone); err != nil {
		t.Fatal(err)
	}
	before := zone.DeepCopy()
	zone.Spec.RecordsFrom = nil
	return f.client.Patch(t.Context(), zone, client.MergeFrom(before), client.DryRunAll)
}

// goesOn checks what the webhook has no say in.
func (f *fixture) goesOn(t *testing.T, record *v1beta1.ARecord) {
	f.create(&corev1.ConfigMap{ObjectMeta: f.meta("other", nil)})
	none := int32(0)
	instance := &v1beta1.Bind9Instance{ObjectMeta: f.meta("new", nil), Spec: v1beta1.Bind9InstanceSpec{ClusterRef: "nowhere", Role: v1beta1.RolePrimary, Replicas: &none}}
	for _, o := range []client.Object{instance, f.cluster("new", 0, 0)} {
		if err := f.client.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("creating a %T: %v", o, err)
		}
	}
	change(f, record, func(r *v1beta1.ARecord) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, "note", "x") })
	change(f, record, func(r *v1beta1.ARecord) { controllerutil.AddFinalizer(r, "example.com/second") })
	record.Status.Zone = "status.example"
	if err := f.client.Status().Update(t.Context(), record); err != nil && !apierrors.IsConflict(err) {
		t.Errorf("writing status: %v", err)
	}
}

// marksLater checks that marks that nobody set or kept at admission are set by the controller.
func (f *fixture) marksLater(t *testing.T, record *v1beta1.ARecord) {
	change(f, record, func(r *v1beta1.ARecord) {
		r.Annotations[v1beta1.ZoneAnnotation] = "mine.example"
		controllerutil.RemoveFinalizer(r, v1beta1.Finalizer)
	})
	f.waitMarked(record, f.zone)
	endpoint := f.singleEndpoint("shop", "shop."+f.zone, "A", "192.0.2.1")
	if err := f.client.Create(t.Context(), endpoint); err != nil {
		t.Fatal(err)
	}
	if controllerutil.ContainsFinalizer(endpoint, v1beta1.Finalizer) {
		t.Error("marked at admission, without a webhook")
	}
	f.waitHeld(endpoint)
	if err := f.client.Delete(t.Context(), endpoint); err != nil {
		t.Fatal(err)
	}
	f.waitGone(endpoint)
}

// waitHeld waits until the object has the finalizer.
func (f *fixture) waitHeld(endpoint *v1alpha1.DNSEndpoint) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(endpoint), endpoint); err != nil {
			return err
		}
		if !controllerutil.ContainsFinalizer(endpoint, v1beta1.Finalizer) {
			return errors.New("not marked")
		}
		return nil
	})
}

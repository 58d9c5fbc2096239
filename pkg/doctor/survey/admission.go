package survey

import (
	"context"
	"encoding/base64"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/doctor"
)

// apiServiceKind is not in the scheme: its Go types would bring another module.
var apiServiceKind = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}

// readAdmission reads what is between kube-apiserver and the other two servers.
func (s *Survey) readAdmission(ctx context.Context, f *doctor.Facts) {
	f.APIService = s.readAPIService(ctx, "v1alpha1.sync.bindy.firestoned.io")
	f.AdmissionAPIService = s.readAPIService(ctx, "v1.admission.bindy.firestoned.io")
	f.Mutating = fact[admissionv1.MutatingWebhookConfiguration]("get mutatingwebhookconfiguration lockstep-webhook", "")
	f.Mutating.Err = s.client.Get(ctx, client.ObjectKey{Name: "lockstep-webhook"}, &f.Mutating.Value)
	f.Validating = fact[admissionv1.ValidatingWebhookConfiguration]("get validatingwebhookconfiguration lockstep-webhook", "")
	f.Validating.Err = s.client.Get(ctx, client.ObjectKey{Name: "lockstep-webhook"}, &f.Validating.Value)
	f.WebhookEndpoints = s.readEndpoints(ctx, "lockstep-webhook")
	f.APIServerEndpoints = s.readEndpoints(ctx, "lockstep-apiserver")
	f.Admission = s.tryAdmission(ctx)
}

func (s *Survey) readAPIService(ctx context.Context, name string) doctor.Fact[doctor.APIService] {
	read := fact[doctor.APIService]("get apiservice "+name, "")
	read.Value.Name = name
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(apiServiceKind)
	err := s.client.Get(ctx, client.ObjectKey{Name: name}, o)
	if read.Value.Exists = err == nil; !read.Value.Exists {
		read.Err = client.IgnoreNotFound(err)
		return read
	}
	text, _, _ := unstructured.NestedString(o.Object, "spec", "caBundle")
	read.Value.CABundle, read.Err = base64.StdEncoding.DecodeString(text)
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Available" {
			text := func(field string) string { value, _, _ := unstructured.NestedString(c, field); return value }
			read.Value.Available = metav1.Condition{Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
		}
	}
	return read
}

func (s *Survey) readEndpoints(ctx context.Context, service string) doctor.Fact[[]discoveryv1.EndpointSlice] {
	read := fact[[]discoveryv1.EndpointSlice]("list endpointslices", s.System)
	var slices discoveryv1.EndpointSliceList
	read.Err = s.client.List(ctx, &slices, client.InNamespace(s.System), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	read.Value = slices.Items
	return read
}

// tryAdmission creates a record that no zone selects, with dryRun: it passes admission and is not stored.
func (s *Survey) tryAdmission(ctx context.Context) doctor.Fact[time.Duration] {
	read := fact[time.Duration]("create arecords", s.TryIn)
	record := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: s.TryIn, GenerateName: "lockstep-doctor-"}}
	record.Spec.Name, record.Spec.IPv4Addresses = "lockstep-doctor", []string{"192.0.2.1"}
	// The first request may have to connect: that is not the webhook's time.
	_ = s.client.Get(ctx, client.ObjectKey{Namespace: s.TryIn, Name: "lockstep-doctor"}, &v1beta1.ARecord{})
	began := time.Now()
	if read.Err = s.client.Create(ctx, record, client.DryRunAll); apierrors.IsAlreadyExists(read.Err) {
		read.Err = nil
	}
	read.Value = time.Since(began)
	return read
}

package review

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
	"github.com/lockstep-dns/lockstep/webhook/review/trap"
)

// Result is what a review found. Problems refuse the object: each names the field, its value and what to write instead.
// Warnings and traps are shown to the user, and the object is stored.
type Result struct {
	Problems field.ErrorList
	// basis are the objects of the caches on which problems rest: what these say may not be so any more.
	basis    []client.Object
	Warnings []string
	Traps    []trap.Found
}

// warnings are all that the user is shown, of traps the first few.
func (r Result) warnings() []string {
	all := slices.Clone(r.Warnings)
	for i, found := range r.Traps {
		if i == maxWarnings {
			return append(all, fmt.Sprintf("%d more values look wrong: lockstep validate lists them", len(r.Traps)-i))
		}
		all = append(all, found.Text)
	}
	return all
}

// Path is where the handler is served, as in manifests/base/admission.yaml.
const Path = "/validate"

// reviewFunc judges the object of a request. An error means that it could not be judged, which refuses it for now.
type reviewFunc func(ctx context.Context, req admission.Request) (Result, error)

// Handler validates objects of every kind that it has a review for, and lets all others pass.
type Handler struct {
	// Limits are for new objects. They are set before the first review.
	Limits  Limits
	objects Objects
	kinds   map[schema.GroupKind]reviewFunc
	// deletions reviews deletions of every kind that others depend on.
	deletions deletionReviewer
	// timeout bounds what a review waits for. Caches do not make it wait, the API server may (live_reader.go).
	timeout time.Duration
}

// NewHandler knows every kind.
func NewHandler(o Objects) *Handler {
	r := &Handler{objects: o, kinds: map[schema.GroupKind]reviewFunc{
		v1beta1.Kind("DNSZone"):      reviewFuncOf(func() *v1beta1.DNSZone { return &v1beta1.DNSZone{} }, zoneReviewer{o}.review),
		v1beta1.Kind(instanceKind):   reviewFuncOf(func() *v1beta1.Bind9Instance { return &v1beta1.Bind9Instance{} }, instanceReviewer{o}.review),
		v1beta1.Kind(clusterKind):    reviewFuncOf(func() *v1beta1.Bind9Cluster { return &v1beta1.Bind9Cluster{} }, reviewCluster),
		v1alpha1.Kind("DNSEndpoint"): reviewFuncOf(func() *v1alpha1.DNSEndpoint { return &v1alpha1.DNSEndpoint{} }, endpointReviewer{o}.review),
		v1beta1.Kind(providerKind):   reviewFuncOf(func() *v1beta1.DNSProvider { return &v1beta1.DNSProvider{} }, providerReviewer{o}.review),
	}, deletions: deletionReviewer{o}, timeout: reviewTimeout}
	for _, kind := range v1beta1.RecordKinds {
		r.kinds[v1beta1.Kind(kind.Kind)] = reviewFuncOf(kind.New, recordReviewer{objects: o}.review)
	}
	return r
}

// reviewFuncOf makes a review of a judge of one type. The judge gets the object, and the stored one that it replaces or, on
// creation, nothing: the zero value of T. An object that is being deleted cannot change DNS any more, but for a zone that is led to
// other servers.
func reviewFuncOf[T metav1.Object](empty func() T, judge func(ctx context.Context, obj, old T) (Result, error)) reviewFunc {
	return func(ctx context.Context, req admission.Request) (Result, error) {
		obj := empty()
		if err := utiljson.Unmarshal(req.Object.Raw, obj); err != nil {
			return Result{}, fmt.Errorf("reading the object: %w", err)
		}
		var old T
		if req.Operation == admissionv1.Update {
			old = empty()
			if err := utiljson.Unmarshal(req.OldObject.Raw, old); err != nil {
				return Result{}, fmt.Errorf("reading the stored object: %w", err)
			}
			_, isZone := any(obj).(*v1beta1.DNSZone)
			if obj.GetDeletionTimestamp() != nil && !isZone {
				return Result{}, nil
			}
			restoreSystemFields(obj, old)
		} else {
			clearSystemFields(obj)
		}
		if problem := lenient.SpecProblem(obj); problem != "" {
			return Result{Problems: field.ErrorList{{Type: field.ErrorTypeInvalid, Field: "spec", BadValue: field.OmitValueType{}, Detail: problem}}}, nil
		}
		obj.SetNamespace(req.Namespace)
		return judge(ctx, obj, old)
	}
}

// clearSystemFields empties what a new object has from whoever sent it, not from kube-apiserver: a server-side apply that creates is sent to
// mutating webhooks with it. Without a time, the object is younger than all stored ones; times have a resolution of one second.
func clearSystemFields(obj metav1.Object) {
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetDeletionTimestamp(nil)
}

// restoreSystemFields gives an update what kube-apiserver does after mutating webhooks (rest.BeforeUpdate): what an object is older than
// depends on neither what a PUT leaves out nor what it makes up.
func restoreSystemFields(obj, old metav1.Object) {
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	if created := old.GetCreationTimestamp(); !created.IsZero() {
		obj.SetCreationTimestamp(created)
	}
}

// Handle implements admission.Handler.
func (r *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if req.Operation == admissionv1.Delete {
		return r.handleDeletion(ctx, req)
	}
	review, known := r.kinds[schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}]
	if !known || !canChangeDNS(req) {
		return admission.Allowed("")
	}
	refusal, err := r.Limits.refusal(ctx, r.objects, req)
	if refusal != "" {
		return admission.Denied(refusal)
	}
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	verdict, err := review(ctx, req)
	for len(verdict.Problems) > 0 && awaitChange(ctx, r.objects, verdict.basis) {
		verdict, err = review(ctx, req)
	}
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if len(verdict.Problems) > 0 {
		return refusalResponse(req, verdict)
	}
	return admission.Allowed("").WithWarnings(verdict.warnings()...)
}

// handleDeletion refuses to delete an object that others depend on if it would not wait for them, and says so if it does.
func (r *Handler) handleDeletion(ctx context.Context, req admission.Request) admission.Response {
	refusal, waits, err := r.deletions.review(ctx, req)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case refusal != "":
		return admission.Denied(refusal)
	case waits != "":
		return admission.Allowed("").WithWarnings(waits)
	}
	return admission.Allowed("")
}

// canChangeDNS reports whether the request can change DNS. Subresources cannot; the configuration keeps them away already, and this
// holds when a cluster's own configuration is wider.
func canChangeDNS(req admission.Request) bool {
	return req.SubResource == "" && (req.Operation == admissionv1.Create || req.Operation == admissionv1.Update)
}

// maxProblems is how many problems a refusal lists: a DNSEndpoint can have thousands, and they go into logs too.
const maxProblems = 20

// refusalResponse is the answer that kubectl shows as it shows violations of a schema: one line for each field.
func refusalResponse(req admission.Request, v Result) admission.Response {
	problems := v.Problems
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(slices.Clone(problems[:maxProblems]), &field.Error{
			Type: field.ErrorTypeInvalid, Field: "spec", BadValue: field.OmitValueType{}, Detail: fmt.Sprintf("%d more problems", more),
		})
	}
	name := req.Name
	if name == "" { // Before mutating webhooks, no name is generated yet.
		var head metav1.PartialObjectMetadata
		if err := utiljson.Unmarshal(req.Object.Raw, &head); err == nil {
			name = head.GenerateName
		}
	}
	status := apierrors.NewInvalid(schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}, name, problems).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status, Warnings: v.warnings()}}
}

// problemsOfError turns an error of package declaration or source into problems, one for each error that it joins. Their texts are "field:
// what is wrong and what to write instead"; those that name no field are about the given one.
func problemsOfError(path string, err error) field.ErrorList {
	var problems field.ErrorList
	for _, text := range errorTexts(err) {
		at := path
		if named, rest, found := strings.Cut(text, ": "); found && strings.HasPrefix(named, "spec") {
			at, text = named, rest
		}
		problems = append(problems, &field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: field.OmitValueType{}, Detail: text})
	}
	return problems
}

// errorTexts are those of the errors that an error joins.
func errorTexts(err error) []string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{err.Error()}
	}
	var all []string
	for _, one := range joined.Unwrap() {
		all = append(all, errorTexts(one)...)
	}
	return all
}

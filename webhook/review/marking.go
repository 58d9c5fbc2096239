package review

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/manifests"
	kinds "github.com/lockstep-dns/lockstep/pkg/kube/schema"
	"github.com/lockstep-dns/lockstep/webhook/mark"
)

// MarkingHandler marks records and DNSEndpoints, and reviews them in the same call if what is in DNS may change.
type MarkingHandler struct {
	marks   *mark.Handler
	reviews *Handler
	// definitions are the kinds as we define them.
	definitions func() (kinds.Kinds, error)
}

// NewMarkingHandler returns a handler that reviews with another one, and leaves the marks of trusted users as they are.
func NewMarkingHandler(reviews *Handler, trusted map[string]bool) *MarkingHandler {
	definitions := sync.OnceValues(func() (kinds.Kinds, error) { return kinds.Load(manifests.Definitions()) })
	return &MarkingHandler{mark.NewHandler(reviews.objects.zoneCache(), trusted), reviews, definitions}
}

// Handle implements admission.Handler.
func (h *MarkingHandler) Handle(ctx context.Context, req admission.Request) admission.Response {
	marked, changesData := h.marks.Mark(ctx, req)
	if !changesData {
		return marked
	}
	reviewed := h.reviews.Handle(ctx, req)
	if reviewed.Allowed {
		return marked.WithWarnings(reviewed.Warnings...)
	}
	if problems := h.violations(ctx, req); len(problems) > 0 {
		reviewed = refusalResponse(req, Result{Problems: problems, Warnings: reviewed.Warnings})
	}
	return reviewed.WithWarnings(marked.Warnings...)
}

// violations returns what the definition of its kind says about a refused object, which kube-apiserver has not asked yet: its words come
// first, and nothing passes because of them.
func (h *MarkingHandler) violations(ctx context.Context, req admission.Request) field.ErrorList {
	definitions, err := h.definitions()
	kind := definitions[schema.GroupVersionKind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind}]
	if err != nil || kind == nil {
		return nil
	}
	var object, old map[string]any
	if utiljson.Unmarshal(req.Object.Raw, &object) != nil || utiljson.Unmarshal(req.OldObject.Raw, &old) != nil && len(req.OldObject.Raw) > 0 {
		return nil
	}
	delete(object, "status")
	delete(old, "status")
	problems, err := kind.Admit(ctx, object, old)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The definition could not be evaluated", "kind", req.Kind.Kind)
		return nil
	}
	return problems
}

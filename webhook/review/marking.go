package review

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/webhook/mark"
)

// MarkingHandler marks records and DNSEndpoints, and reviews them in the same call if what is in DNS may change.
type MarkingHandler struct {
	marks   *mark.Handler
	reviews *Handler
}

// NewMarkingHandler returns a handler that compares with stored objects, and leaves the marks of trusted users as they are.
func NewMarkingHandler(o Objects, trusted map[string]bool) *MarkingHandler {
	return &MarkingHandler{mark.NewHandler(o.zoneCache(), trusted), NewHandler(o)}
}

// Handle implements admission.Handler.
func (h *MarkingHandler) Handle(ctx context.Context, req admission.Request) admission.Response {
	marked, changesData := h.marks.Mark(ctx, req)
	if !changesData {
		return marked
	}
	reviewed := h.reviews.Handle(ctx, req)
	if !reviewed.Allowed {
		return reviewed.WithWarnings(marked.Warnings...)
	}
	return marked.WithWarnings(reviewed.Warnings...)
}

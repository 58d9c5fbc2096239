package mark

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// Path is where the handler is served, as in manifests/base/admission.yaml.
const Path = "/mutate"

// Handler marks records and DNSEndpoints before they are stored, so that the controller finds on the object itself what it
// has to know after a crash: that data may be in DNS, in which zone, and under which names. It never refuses anything: what
// goes wrong here is logged, and the controller marks later.
type Handler struct {
	zones *membership.Cache
	// trusted are the users who may change every mark: the controller, and whoever uninstalls.
	trusted map[string]bool
}

// NewHandler returns a Handler that finds zones in a cache and leaves objects of trusted users as they are.
func NewHandler(zones *membership.Cache, trusted map[string]bool) *Handler {
	return &Handler{zones, trusted}
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	response, _ := h.Mark(ctx, req)
	return response
}

// Mark marks the object of a request. changesData means that the request may change what is in DNS, so that the object has to be
// reviewed.
func (h *Handler) Mark(ctx context.Context, req admission.Request) (response admission.Response, changesData bool) {
	kind := markedKindOf(req)
	if kind == nil {
		return admission.Allowed(""), false
	}
	before, after, err := parseObjects(req, kind)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Not marked: not readable", "kind", req.Kind.Kind, "namespace", req.Namespace, "name", req.Name, "reason", err)
		return admission.Allowed(""), true
	}
	changesData = before == nil || before.changesData(after)
	if h.trusted[req.UserInfo.Username] {
		return admission.Allowed(""), changesData
	}
	return h.mark(ctx, req, kind, before, after), changesData
}

// mark sets the marks of an object. before is the stored object, nil on creation.
func (h *Handler) mark(ctx context.Context, req admission.Request, kind *markedKind, before, after *objectMetadata) admission.Response {
	log := klog.FromContext(ctx).WithValues("kind", req.Kind.Kind, "namespace", req.Namespace, "name", req.Name)
	want, lost := decideMarks(before, after, func() (string, bool) { return kind.zone(h.zones, after) })
	if !kind.stamped {
		want.stamp = marksOf(after).stamp
	}
	response := admission.Patched("", marksPatch(after, want)...)
	if lost > 0 {
		log.Info("Too many former names: the oldest are forgotten, and their data may stay in DNS", "names", lost)
		response = response.WithWarnings(fmt.Sprintf("%d former names do not fit into annotation %s: their data may stay in DNS", lost, v1beta1.FormerNamesAnnotation))
	}
	if before != nil && marksOf(before).finalizer && !marksOf(after).finalizer && want.finalizer {
		response = response.WithWarnings(fmt.Sprintf("finalizer %s stays until the data has left DNS; delete the object, or change it so that no zone takes it", v1beta1.Finalizer))
	}
	return response
}

// markedKind is what differs between the kinds that get marks.
type markedKind struct {
	// names reads the RRsets that a specification declares.
	names func(spec []byte) []string
	// zone finds the zone that takes an object.
	zone func(zones *membership.Cache, m *objectMetadata) (stamp string, taken bool)
	// stamped reports whether objects of the kind carry the name of their zone. A DNSEndpoint may have several.
	stamped bool
}

// markedKindOf is nil when nothing is to be marked: for other kinds, subresources, deletions.
func markedKindOf(req admission.Request) *markedKind {
	if req.SubResource != "" || (req.Operation != admissionv1.Create && req.Operation != admissionv1.Update) {
		return nil
	}
	switch kind, record := v1beta1.RecordKindOf(req.Kind.Kind); {
	case record && req.Kind.Group == v1beta1.GroupName:
		return &markedKind{recordNames(kind), recordZone(kind), true}
	case req.Kind.Kind == source.EndpointKind && req.Kind.Group == v1alpha1.GroupVersion.Group:
		return &markedKind{endpointNames, endpointZone, false}
	}
	return nil
}

func recordZone(kind v1beta1.RecordKind) func(*membership.Cache, *objectMetadata) (string, bool) {
	return func(zones *membership.Cache, m *objectMetadata) (string, bool) {
		record := kind.New()
		record.SetNamespace(m.Namespace)
		record.SetName(m.Name)
		record.SetLabels(m.Labels)
		record.SetAnnotations(m.Annotations)
		zone := zones.ZoneOfRecord(record)
		if zone == nil {
			return "", false
		}
		return zone.Spec.ZoneName, true
	}
}

// endpointZone finds out whether a zone takes at least one of the endpoints; the name is always empty.
func endpointZone(zones *membership.Cache, m *objectMetadata) (string, bool) {
	return "", slices.ContainsFunc(m.declared, func(entry string) bool {
		return zones.ZoneOfEndpoint(m, entry[:strings.LastIndexByte(entry, '/')]) != nil
	})
}

// parseObjects reads the object of a request and, in an update, the stored one.
func parseObjects(req admission.Request, kind *markedKind) (before, after *objectMetadata, err error) {
	if after, err = parseMetadata(req.Object.Raw, kind.names); err != nil {
		return nil, nil, fmt.Errorf("reading the object: %w", err)
	}
	after.Namespace = req.Namespace
	if req.Operation == admissionv1.Update {
		if before, err = parseMetadata(req.OldObject.Raw, kind.names); err != nil {
			return nil, nil, fmt.Errorf("reading the stored object: %w", err)
		}
	}
	return before, after, nil
}

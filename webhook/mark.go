package webhook

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
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// marker puts marks on records and DNSEndpoints before they are stored, so that the controller finds on the object itself
// what it has to know after a crash: that data may be in DNS, in which zone, and under which names. It never refuses
// anything: what goes wrong here is logged, and the controller marks later.
type marker struct {
	objects objects
	// keepers are the users who may change every mark: the controller, and whoever uninstalls.
	keepers map[string]bool
}

// Handle implements admission.Handler.
func (m *marker) Handle(ctx context.Context, req admission.Request) admission.Response {
	log := klog.FromContext(ctx).WithValues("kind", req.Kind.Kind, "namespace", req.Namespace, "name", req.Name)
	if m.keepers[req.UserInfo.Username] {
		return admission.Allowed("")
	}
	kind := markedKindOf(req)
	if kind == nil {
		return admission.Allowed("")
	}
	before, after, err := read(req, kind)
	if err != nil {
		log.V(2).Info("Not marked: not readable", "reason", err)
		return admission.Allowed("")
	}
	want, lost := remember(before, after, func() (string, bool) { return kind.taken(m.objects, after) })
	if !kind.stamped {
		want.stamp = marksOf(after).stamp
	}
	response := admission.Patched("", patch(after, want)...)
	if lost > 0 {
		log.Info("Too many former names: the oldest are forgotten, and their data may stay in DNS", "names", lost)
		response = response.WithWarnings(fmt.Sprintf("%d former names do not fit into annotation %s: their data may stay in DNS", lost, v1beta1.FormerNamesAnnotation))
	}
	if before != nil && marksOf(before).finalizer && !marksOf(after).finalizer && want.finalizer {
		response = response.WithWarnings(fmt.Sprintf("finalizer %s stays until the data has left DNS; delete the object, or change it so that no zone takes it", v1beta1.Finalizer))
	}
	return response
}

// markedKind is what tells kinds that get marks apart.
type markedKind struct {
	// names reads the RRsets that a specification declares.
	names func(spec []byte) []string
	// taken finds the zone that takes an object.
	taken func(o objects, h *head) (stamp string, taken bool)
	// stamped tells whether objects of the kind carry the name of their zone. A DNSEndpoint may have several.
	stamped bool
}

// markedKindOf is the kind of a request's object, nil when it is one that gets no marks.
func markedKindOf(req admission.Request) *markedKind {
	if req.SubResource != "" {
		return nil
	}
	switch kind, record := v1beta1.RecordKindOf(req.Kind.Kind); {
	case record && req.Kind.Group == v1beta1.GroupName:
		return &markedKind{recordNames(kind), takenRecord(kind), true}
	case req.Kind.Kind == source.EndpointKind && req.Kind.Group == v1alpha1.GroupVersion.Group:
		return &markedKind{endpointNames, takenEndpoint, false}
	}
	return nil
}

func takenRecord(kind v1beta1.RecordKind) func(objects, *head) (string, bool) {
	return func(o objects, h *head) (string, bool) {
		record := kind.New()
		record.SetNamespace(h.Namespace)
		record.SetName(h.Name)
		record.SetLabels(h.Labels)
		zone := o.zones().ZoneOfRecord(record)
		if zone == nil {
			return "", false
		}
		return zone.Spec.ZoneName, true
	}
}

// takenEndpoint tells whether a zone takes at least one of the endpoints.
func takenEndpoint(o objects, h *head) (string, bool) {
	return "", slices.ContainsFunc(h.names, func(entry string) bool {
		return o.zones().ZoneOfEndpoint(h.Namespace, entry[:strings.LastIndexByte(entry, '/')]) != nil
	})
}

// read gives the object of a request and, in an update, the stored one.
func read(req admission.Request, kind *markedKind) (before, after *head, err error) {
	if after, err = readHead(req.Object.Raw, kind.names); err != nil {
		return nil, nil, fmt.Errorf("reading the object: %w", err)
	}
	after.Namespace = req.Namespace
	if req.Operation == admissionv1.Update {
		if before, err = readHead(req.OldObject.Raw, kind.names); err != nil {
			return nil, nil, fmt.Errorf("reading the stored object: %w", err)
		}
	}
	return before, after, nil
}

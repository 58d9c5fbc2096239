package webhook

import (
	"context"
	"encoding/json"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// stampPath is the annotation's place in a JSON patch (RFC 6901 escapes the slash).
var stampPath = "/metadata/annotations/" + strings.ReplaceAll(v1beta1.ZoneAnnotation, "/", "~1")

// stamper keeps the annotation bindy.firestoned.io/zone of records. It never refuses anything: what goes wrong here is
// logged, and the controller stamps later.
type stamper struct {
	objects objects
}

// Handle implements admission.Handler.
func (s *stamper) Handle(ctx context.Context, req admission.Request) admission.Response {
	log := klog.FromContext(ctx).WithValues("kind", req.Kind.Kind, "namespace", req.Namespace, "name", req.Name)
	record, err := recordHead(req)
	if err != nil || record == nil {
		log.V(2).Info("Not stamped: not readable as a record", "reason", err)
		return admission.Allowed("")
	}
	zones, err := s.objects.zones(ctx, req.Namespace)
	if err != nil {
		log.Error(err, "Not stamped; the controller will do it")
		return admission.Allowed("")
	}
	return admission.Patched("", stamp(record.GetAnnotations(), source.ZoneOf(zones, record))...)
}

// recordHead reads a record's metadata, which is all that selection goes by, so that a record with a bad specification is
// stamped like any other and refused for its specification alone. It gives nil for kinds that are not records.
func recordHead(req admission.Request) (v1beta1.Record, error) {
	kind, ok := v1beta1.RecordKindOf(req.Kind.Kind)
	if !ok || req.Kind.Group != v1beta1.GroupName {
		return nil, nil
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(req.Object.Raw, &head); err != nil {
		return nil, err
	}
	record := kind.New()
	record.SetNamespace(req.Namespace)
	record.SetName(req.Name)
	record.SetLabels(head.Labels)
	record.SetAnnotations(head.Annotations)
	return record, nil
}

// stamp gives the patch after which the annotations say that the record belongs to the zone, or to none when it is nil.
// It touches the one annotation, and is empty when that is right already.
func stamp(annotations map[string]string, zone *v1beta1.DNSZone) []jsonpatch.JsonPatchOperation {
	have, stamped := annotations[v1beta1.ZoneAnnotation]
	switch {
	case zone == nil && !stamped, zone != nil && stamped && have == zone.Spec.ZoneName:
		return nil
	case zone == nil:
		return []jsonpatch.JsonPatchOperation{jsonpatch.NewOperation("remove", stampPath, nil)}
	}
	add := jsonpatch.NewOperation("add", stampPath, zone.Spec.ZoneName)
	if annotations == nil {
		return []jsonpatch.JsonPatchOperation{jsonpatch.NewOperation("add", "/metadata/annotations", map[string]string{}), add}
	}
	return []jsonpatch.JsonPatchOperation{add}
}

package mark

import (
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// objectMarks are what an object's metadata remembers for the controller.
type objectMarks struct {
	// finalizer is on while data of the object may be in DNS.
	finalizer bool
	// stamp is the name of the zone that may hold the data; "" when there is none.
	stamp string
	// former are the names, NAME/TYPE joined by commas, that the specification no longer has and DNS may.
	former string
}

func marksOf(h *objectMetadata) objectMarks {
	return objectMarks{
		finalizer: slices.Contains(h.Finalizers, v1beta1.Finalizer),
		stamp:     h.Annotations[v1beta1.ZoneAnnotation],
		former:    h.Annotations[v1beta1.FormerNamesAnnotation],
	}
}

// zoneLookup finds the zone that takes an object: it returns the zone's name for the stamp, and whether any zone does.
type zoneLookup func() (stamp string, taken bool)

// decideMarks decides on the marks of an object that a user writes. before is the stored object, nil on creation; lost counts former
// names that no longer fit. Before the finalizer is on, nothing of the object can be in DNS, and the marks say what the controller will
// do. From then on only the controller knows when data has left, so only the controller takes anything away. An object that is being
// deleted may lose its finalizer to anybody, as everywhere in Kubernetes: that is the way out when nothing else helps.
func decideMarks(before, after *objectMetadata, taken zoneLookup) (want objectMarks, lost int) {
	want = marksOf(after)
	if before == nil {
		want.former = ""
		return followZone(want, taken), 0
	}
	had, deleting := marksOf(before), isDeleting(before, after)
	if !had.finalizer {
		want.former = had.former
		if deleting {
			return want, 0
		}
		return followZone(want, taken), 0
	}
	want.finalizer = want.finalizer || !deleting
	if want.stamp = had.stamp; want.stamp == "" && !deleting {
		want = followZone(want, taken)
	}
	want.former, lost = mergeFormerNames(had.former, before.declared, after.declared, formerNamesRoom(after.Annotations))
	return want, lost
}

// followZone gives an object that holds no data yet the marks of the zone that takes it.
func followZone(m objectMarks, taken zoneLookup) objectMarks {
	stamp, ok := taken()
	m.stamp, m.finalizer = stamp, m.finalizer || ok
	return m
}

// marksPatch turns an object's marks into the wanted ones. It touches nothing else, and is empty when they are right already.
func marksPatch(h *objectMetadata, want objectMarks) []jsonpatch.JsonPatchOperation {
	have := marksOf(h)
	var ops []jsonpatch.JsonPatchOperation
	if want.finalizer && !have.finalizer {
		if len(h.Finalizers) == 0 {
			ops = append(ops, jsonpatch.NewOperation("add", "/metadata/finalizers", []string{v1beta1.Finalizer}))
		} else {
			ops = append(ops, jsonpatch.NewOperation("add", "/metadata/finalizers/-", v1beta1.Finalizer))
		}
	}
	annotations := append(annotationPatch(v1beta1.ZoneAnnotation, have.stamp, want.stamp),
		annotationPatch(v1beta1.FormerNamesAnnotation, have.former, want.former)...)
	if len(annotations) > 0 && h.Annotations == nil {
		ops = append(ops, jsonpatch.NewOperation("add", "/metadata/annotations", map[string]string{}))
	}
	return append(ops, annotations...)
}

// annotationPatch sets one annotation, or takes it away when it is to be empty.
func annotationPatch(name, have, want string) []jsonpatch.JsonPatchOperation {
	path := "/metadata/annotations/" + strings.ReplaceAll(name, "/", "~1") // RFC 6901
	switch {
	case have == want:
		return nil
	case want == "":
		return []jsonpatch.JsonPatchOperation{jsonpatch.NewOperation("remove", path, nil)}
	}
	return []jsonpatch.JsonPatchOperation{jsonpatch.NewOperation("add", path, want)}
}

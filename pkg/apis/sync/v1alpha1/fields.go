package v1alpha1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// Fields that a list or watch of syncstatuses can be selected by (--field-selector).
const (
	FieldName          = "metadata.name"
	FieldNamespace     = "metadata.namespace"
	FieldKind          = "kind" // kind of the object that the row is about, for example ARecord
	FieldZone          = "zone" // DNS name of the zone, without or with the final dot
	FieldPhase         = "status.phase"
	FieldInSync        = "status.inSync" // "true" or "false"
	FieldFailureReason = "status.failureReason"
)

// SelectableFields lists every field that a selector may name.
var SelectableFields = []string{
	FieldName, FieldNamespace, FieldKind, FieldZone, FieldPhase, FieldInSync, FieldFailureReason,
}

func convertFieldLabel(label, value string) (string, string, error) {
	if !slices.Contains(SelectableFields, label) {
		return "", "", fmt.Errorf("%q is not a known field selector: only %s", label, strings.Join(SelectableFields, ", "))
	}
	if label == FieldZone {
		value = strings.ToLower(strings.TrimSuffix(value, "."))
	}
	// A mistyped value would select nothing, and a script would take that for good news.
	if known := fieldValues[label]; known != nil && !slices.Contains(known, value) {
		return "", "", fmt.Errorf("%s is never %q: only %s", label, value, strings.Join(known, ", "))
	}
	return label, value, nil
}

// fieldValues are those of fields that have few.
var fieldValues = map[string][]string{
	FieldInSync: {"true", "false"},
	FieldPhase: {
		string(PhaseInSync), string(PhasePropagating), string(PhaseOutOfSync), string(PhaseFailed), string(PhaseUnknown),
	},
}

// Fields gives the values that field selectors are matched against.
func (s *SyncStatus) Fields() fields.Set {
	return fields.Set{
		FieldName:          s.Name,
		FieldNamespace:     s.Namespace,
		FieldKind:          s.ObjectRef.Kind,
		FieldZone:          s.Zone,
		FieldPhase:         string(s.Status.Phase),
		FieldInSync:        strconv.FormatBool(s.Status.InSync),
		FieldFailureReason: s.Status.FailureReason,
	}
}

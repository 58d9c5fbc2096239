package v1alpha1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// Fields by which a list or watch of syncstatuses can be selected (--field-selector).
const (
	FieldName          = "metadata.name"
	FieldNamespace     = "metadata.namespace"
	FieldKind          = "kind" // kind of the object that the row is about, for example ARecord
	FieldZone          = "zone" // DNS name of the zone, without or with the final dot
	FieldPhase         = "status.phase"
	FieldInSync        = "status.inSync" // "true" or "false"
	FieldFailureReason = "status.failureReason"
)

// SelectableFields lists every field that a selector may use.
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
	// A mistyped value would select nothing, which a script could mistake for success.
	if known := fieldValues[label]; known != nil && !slices.Contains(known, value) {
		return "", "", fmt.Errorf("%s is never %q: only %s", label, value, strings.Join(known, ", "))
	}
	return label, value, nil
}

// fieldValues holds the possible values of enumerated fields.
var fieldValues = map[string][]string{
	FieldInSync: {"true", "false"},
	FieldPhase: {
		string(PhaseInSync), string(PhasePropagating), string(PhaseOutOfSync), string(PhaseFailed), string(PhaseUnknown),
	},
}

// Fields are the values against which field selectors are matched.
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

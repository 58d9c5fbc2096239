package uninstall

import (
	"slices"
	"testing"
)

func TestOthers(t *testing.T) {
	tests := map[string]struct {
		finalizers, want []string
		ours             bool
	}{
		"none":           {nil, []string{}, false},
		"ours alone":     {[]string{"bindy.firestoned.io/finalizer"}, []string{}, true},
		"ours and other": {[]string{"a/b", "bindy.firestoned.io/finalizer", "foregroundDeletion"}, []string{"a/b", "foregroundDeletion"}, true},
		"a similar name": {[]string{"bindy.firestoned.io.example/x"}, []string{"bindy.firestoned.io.example/x"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rest, ours := foreignFinalizers(tc.finalizers)
			if !slices.Equal(rest, tc.want) || rest == nil || ours != tc.ours {
				t.Errorf("others(%q) = %q, %v", tc.finalizers, rest, ours)
			}
		})
	}
}
